import type { Ledger, RunId, RuntimeEvent } from '@tallystick/core'
import { auditSourceOf } from '../../src/record/audit-source.ts'
import { genesis, linkFault, type Link } from '../../src/record/link-check.ts'

/**
 * What is wrong with the chain of a run, its row and its end. For tests whose events are no legal run, so that no law
 * is asked.
 */
export async function chainFaults(ledger: Ledger, runId: RunId): Promise<readonly unknown[]> {
  const source = auditSourceOf(ledger)
  if (source === undefined) throw new Error('The ledger lends no rows.')
  let last: Link = genesis
  const faults: unknown[] = []
  for await (const batch of source.events(runId, Number.MAX_SAFE_INTEGER)) {
    for (const stored of batch) {
      const fault = linkFault(last, stored)
      if (fault) faults.push(fault)
      last = stored
    }
  }
  const { row, events } = (await source.run(runId)) ?? {}
  if (row?.headSeq !== last.seq || events !== last.seq) faults.push('the head')
  if (row && Buffer.compare(row.headHash, last.hash) !== 0) faults.push('the hash of the head')
  return faults
}

/** The texts of a run's deltas, by their seq. */
export async function textsOf(ledger: Ledger, runId: RunId): Promise<ReadonlyMap<number, string>> {
  const events: readonly RuntimeEvent[] = await Array.fromAsync(ledger.read(runId))
  return new Map(events.map((event) => [event.seq, event.type === 'assistant_text_delta' ? event.text : '']))
}
