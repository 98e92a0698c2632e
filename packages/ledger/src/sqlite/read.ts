import type { RuntimeEvent } from '@tallystick/core'
import { eventAfter, missingEvent, type EventRange } from '../checked-event.ts'
import { genesis, type Link } from '../link-check.ts'
import { eventPage, eventRange } from './event-page.ts'
import type { ReadQueries } from './queries.ts'

/**
 * Events of a range as they were written. Each is checked against the chain before it is handed out. Throws
 * `LedgerDamagedError` at the first that has changed, or that is missing.
 */
export function* readEvents(reads: ReadQueries, range: EventRange): Generator<RuntimeEvent> {
  let previous = linkBefore(reads, range)
  for (const stored of eventRange(reads, range)) {
    const event = eventAfter(previous, stored)
    if (event === undefined) break
    yield event
    previous = stored
  }
  if (previous.seq < range.toSeq) throw missingEvent(range.runId, previous.seq + 1)
}

function linkBefore(reads: ReadQueries, { runId, fromSeq }: EventRange): Link {
  if (fromSeq === 1) return genesis
  const [before] = eventPage(reads, { runId, fromSeq: fromSeq - 1, toSeq: fromSeq - 1 })
  if (before === undefined) throw missingEvent(runId, fromSeq - 1)
  return before
}
