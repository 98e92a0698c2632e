import { LedgerDamagedError, type RunId, type RuntimeEvent } from '@tallystick/core'
import { genesis, linkFault, type Link } from '../link-check.ts'
import { eventOf } from '../stored-event.ts'
import { eventPage, eventRange } from './event-page.ts'
import type { EventRange, ReadQueries } from './queries.ts'

/**
 * Events of a range as they were written. Each is checked against the chain before it is handed out, so that nothing
 * is ever built on bytes that have changed. Throws `LedgerDamagedError` at the first that has, or that is missing.
 */
export function* readEvents(reads: ReadQueries, range: EventRange): Generator<RuntimeEvent> {
  let previous = linkBefore(reads, range)
  for (const stored of eventRange(reads, range)) {
    const fault = linkFault(previous, stored)
    if (fault?.what === 'seq') break
    if (fault !== undefined || stored.payload === undefined) {
      throw damaged(range.runId, stored.seq, `its ${fault?.what} is not what was written`)
    }
    yield eventOf(stored, stored.payload.body)
    previous = stored
  }
  if (previous.seq < range.toSeq) throw damaged(range.runId, previous.seq + 1, 'the event is missing')
}

function linkBefore(reads: ReadQueries, { runId, fromSeq }: EventRange): Link {
  if (fromSeq === 1) return genesis
  const [before] = eventPage(reads, { runId, fromSeq: fromSeq - 1, toSeq: fromSeq - 1 })
  if (before === undefined) throw damaged(runId, fromSeq - 1, 'the event is missing')
  return before
}

function damaged(runId: string, seq: number, what: string): LedgerDamagedError {
  return new LedgerDamagedError(
    `Run ${runId} is damaged at seq ${seq}: ${what}. What follows cannot be trusted, so reading stops here. ` +
      'Run verify for the whole picture, and restore a copy.',
  )
}

/** The part of a range that the run has now. */
export function presentRange(
  runId: RunId,
  headSeq: number,
  range?: { readonly fromSeq?: number; readonly toSeq?: number },
): EventRange {
  return {
    runId,
    fromSeq: Math.max(range?.fromSeq ?? 1, 1),
    toSeq: Math.min(range?.toSeq ?? headSeq, headSeq),
  }
}
