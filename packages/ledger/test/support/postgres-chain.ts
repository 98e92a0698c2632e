import type { Ledger, RunId, RuntimeEvent } from '@tallystick/core'
import { findLinkFault, genesis, type Link } from '../../src/format/event-row.ts'
import { readAuditedRows, readStoredRun } from '../../src/verify/store-audit.ts'
import { storeOf } from './lent-store.ts'

/**
 * What is wrong with the chain of a run, its row and its end. For tests whose events are no legal run, so that no law
 * is asked.
 */
export async function chainFaults(ledger: Ledger, runId: RunId): Promise<readonly unknown[]> {
  const { database } = storeOf(ledger)
  let last: Link = genesis
  const faults: unknown[] = []
  for (;;) {
    const batch = await readAuditedRows(database, {
      ...{ runId, fromSeq: last.seq + 1, toSeq: Number.MAX_SAFE_INTEGER },
    })
    if (batch.length === 0) break
    for (const row of batch) {
      const fault = findLinkFault(last, row)
      if (fault) faults.push(fault)
      last = row
    }
  }
  const { row, events } = (await readStoredRun(database, runId)) ?? {}
  if (row?.head_seq !== last.seq || events !== last.seq) faults.push('the head')
  if (row && row.head_hash !== last.hash) faults.push('the hash of the head')
  return faults
}

/** The texts of a run's deltas, by their seq. */
export async function textsOf(ledger: Ledger, runId: RunId): Promise<ReadonlyMap<number, string>> {
  const events: readonly RuntimeEvent[] = await Array.fromAsync(ledger.read(runId))
  return new Map(events.map((event) => [event.seq, event.type === 'assistant_text_delta' ? event.text : '']))
}
