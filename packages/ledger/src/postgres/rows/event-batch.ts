import type { EventRange } from '../../read/checked-events.ts'
import { outOfOrder, storedRow, type EventRow } from '../../record/event-row.ts'
import type { StoredRow } from '../../record/stored-row.ts'
import type { Connections } from '../connection/connections.ts'
import { bytesPerBatch, eventsPerBatch, type StatementTexts } from './statements.ts'

/** Where batches come from, and what makes their rows ready to be read. */
export interface BatchSource {
  readonly connections: Connections
  readonly texts: StatementTexts
  withDecoding<Row extends EventRow>(rows: readonly Row[]): Promise<readonly Row[]>
}

/** Events of a range, as one batch. */
export async function eventBatch(
  source: BatchSource,
  { runId, fromSeq, toSeq }: EventRange,
): Promise<readonly StoredRow[]> {
  const rows = await source.connections.rows<EventRow>({
    name: 'tallystick page',
    text: source.texts.batch,
    values: [runId, fromSeq, toSeq],
  })
  let seq = fromSeq - 1
  return (await source.withDecoding(rows)).map((row) => {
    // An index that is out of order would have the same batch read for ever.
    if (!(row.seq > seq)) throw outOfOrder(`the events of run ${runId}`)
    seq = row.seq
    return storedRow(row)
  })
}

/** Events of a range, batch after batch. Between batches no connection is held. */
export async function* eventRange(source: BatchSource, range: EventRange): AsyncGenerator<StoredRow> {
  let left: EventRange | undefined = range
  while (left) {
    const batch = await eventBatch(source, left)
    yield* batch
    left = rangeAfter(batch, range)
  }
}

/** What is left of a range after a batch; `undefined` where nothing is. */
export function rangeAfter(batch: readonly StoredRow[], range: EventRange): EventRange | undefined {
  const last = batch.at(-1)
  if (last === undefined || last.seq >= range.toSeq) return undefined
  const bytes = batch.reduce((sum, { payload }) => sum + (payload?.body.length ?? 0), 0)
  // A batch that is full in neither way was all there was.
  const isFull = batch.length >= eventsPerBatch || bytes >= bytesPerBatch
  return isFull ? { ...range, fromSeq: last.seq + 1 } : undefined
}
