import { LedgerDamagedError, type RunId, type RuntimeEvent, type ToolCallId } from '@tallystick/core'
import type { StoredEvent } from '../stored-event.ts'
import type { EventRange, EventRow, ReadQueries } from './queries.ts'

/** A page holds at most this many events, and ends with the first that takes its bodies over this many bytes. */
const eventsMax = 256
const bytesMax = 1024 * 1024

/** The event that a row holds. Types are as the row says: a row that was changed by hand may hold anything. */
function storedEvent(row: EventRow): StoredEvent {
  return {
    runId: row.run_id as RunId,
    seq: row.seq,
    epoch: row.epoch,
    turn: row.turn,
    ...(row.tool_call_id !== null && { toolCallId: row.tool_call_id as ToolCallId }),
    type: row.type as RuntimeEvent['type'],
    v: row.v,
    at: row.at,
    pos: row.pos,
    ...(row.once_key !== null && { onceKey: row.once_key }),
    bodyCommit: row.body_commit,
    hash: row.hash,
    ...(row.salt !== null && row.body !== null && { payload: { salt: row.salt, body: row.body } }),
  }
}

/** Events of a range, as one page: reading it holds no lock and no cursor once this has returned. */
export function eventPage(reads: ReadQueries, range: EventRange): readonly StoredEvent[] {
  const page: StoredEvent[] = []
  let [bytes, seq] = [0, range.fromSeq - 1]
  for (const row of reads.events.iterate(range)) {
    // An index that is out of order would have the same page read for ever.
    if (!(row.seq > seq)) throw outOfOrder(`the events of run ${range.runId}`)
    seq = row.seq
    page.push(storedEvent(row))
    bytes += row.body?.length ?? 0
    if (page.length === eventsMax || bytes >= bytesMax) break
  }
  return page
}

/** Rows that do not come in the order that was asked for: an index of the file is damaged. */
export function outOfOrder(what: string): LedgerDamagedError {
  return new LedgerDamagedError(
    `An index of the ledger is damaged: ${what} come out of order. What it says cannot be trusted. ` +
      'Run verify on it, and restore a copy.',
  )
}

/** Events of a range, page after page. Between pages the store may be written. */
export function* eventRange(reads: ReadQueries, range: EventRange): Generator<StoredEvent> {
  let { fromSeq } = range
  while (fromSeq <= range.toSeq) {
    const page = eventPage(reads, { ...range, fromSeq })
    yield* page
    const last = page.at(-1)
    if (last === undefined) return
    fromSeq = last.seq + 1
  }
}
