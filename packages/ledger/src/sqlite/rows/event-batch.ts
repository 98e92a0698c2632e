import type { EventRange } from '../../read/checked-events.ts'
import { outOfOrder, type EventRow } from '../../record/event-row.ts'
import type { ReadQueries } from './queries.ts'
import { partedRow } from './row-bytes.ts'

/** A batch holds at most this many events, and ends with the first that takes its bodies over this many bytes. */
export const eventsPerBatch = 256
export const bytesPerBatch: number = 1024 * 1024

/** Rows of a range, as one batch: reading it holds no lock and no cursor once this has returned. */
export function eventBatch(reads: ReadQueries, range: EventRange): readonly EventRow[] {
  const batch: EventRow[] = []
  let [bytes, seq] = [0, range.fromSeq - 1]
  const whole = (pos: number): EventRow | undefined => reads.eventAt.get({ pos })
  for (const joined of reads.events.iterate(range)) {
    const row = partedRow(joined, whole)
    if (row === undefined) throw outOfOrder(`the events of run ${range.runId}`)
    // An index that is out of order would have the same batch read for ever.
    if (!(row.seq > seq)) throw outOfOrder(`the events of run ${range.runId}`)
    seq = row.seq
    batch.push(row)
    bytes += row.body?.length ?? 0
    if (batch.length === eventsPerBatch || bytes >= bytesPerBatch) break
  }
  return batch
}

/** Rows of a range, batch after batch. */
export function* eventRows(reads: ReadQueries, range: EventRange): Generator<EventRow> {
  let { fromSeq } = range
  while (fromSeq <= range.toSeq) {
    const batch = eventBatch(reads, { ...range, fromSeq })
    yield* batch
    const last = batch.at(-1)
    if (last === undefined) return
    fromSeq = last.seq + 1
  }
}
