import type { EventRange } from '../../read/checked-event.ts'
import { outOfOrder, type EventRow } from '../../record/event-row.ts'
import type { ReadQueries } from './queries.ts'

/** A page holds at most this many events, and ends with the first that takes its bodies over this many bytes. */
export const eventsPerPage = 256
export const bytesPerPage: number = 1024 * 1024

/** Rows of a range, as one page: reading it holds no lock and no cursor once this has returned. */
export function eventPage(reads: ReadQueries, range: EventRange): readonly EventRow[] {
  const page: EventRow[] = []
  let [bytes, seq] = [0, range.fromSeq - 1]
  for (const row of reads.events.iterate(range)) {
    // An index that is out of order would have the same page read for ever.
    if (!(row.seq > seq)) throw outOfOrder(`the events of run ${range.runId}`)
    seq = row.seq
    page.push(row)
    bytes += row.body?.length ?? 0
    if (page.length === eventsPerPage || bytes >= bytesPerPage) break
  }
  return page
}

/** Rows of a range, page after page. */
export function* eventRows(reads: ReadQueries, range: EventRange): Generator<EventRow> {
  let { fromSeq } = range
  while (fromSeq <= range.toSeq) {
    const page = eventPage(reads, { ...range, fromSeq })
    yield* page
    const last = page.at(-1)
    if (last === undefined) return
    fromSeq = last.seq + 1
  }
}
