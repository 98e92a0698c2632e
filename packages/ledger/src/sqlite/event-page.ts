import type { EventRange } from '../checked-event.ts'
import { outOfOrder, storedEvent } from '../event-row.ts'
import type { StoredEvent } from '../stored-event.ts'
import type { ReadQueries } from './queries.ts'

/** A page holds at most this many events, and ends with the first that takes its bodies over this many bytes. */
export const eventsPerPage = 256
export const bytesPerPage: number = 1024 * 1024

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
    if (page.length === eventsPerPage || bytes >= bytesPerPage) break
  }
  return page
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
