import type { Ledger, RunId, RuntimeEvent } from '@tallystick/core'
import { auditSourceOf } from '../record/audit-source.ts'
import { missingEvent, recordedEventsAfter } from './checked-events.ts'
import { genesis, type Link } from '../record/link-check.ts'

/**
 * Yields the events of a run as they were recorded, older versions included, each checked against the chain. A ledger
 * from elsewhere, which exposes no rows, decides how it reads them.
 *
 * Throws `LedgerDamagedError` at the first event that was changed or is missing. Yields nothing for a run that does
 * not exist.
 */
export async function* recordedEvents(ledger: Ledger, runId: RunId): AsyncGenerator<RuntimeEvent> {
  const source = auditSourceOf(ledger)
  if (source === undefined) return yield* ledger.read(runId)
  const { seq: lastSeq = 0 } = (await ledger.head(runId)) ?? {}
  let previous: Link = genesis
  for await (const batch of source.events(runId, lastSeq)) {
    for (const stored of batch) {
      const events = recordedEventsAfter(previous, stored)
      if (events === undefined) return requireSeq(runId, previous, lastSeq)
      yield* events
      previous = stored
    }
  }
  requireSeq(runId, previous, lastSeq)
}

/** Throws where events of a run are missing after the last one. */
function requireSeq(runId: RunId, last: Link, seq: number): void {
  if (last.seq < seq) throw missingEvent(runId, last.seq + 1)
}
