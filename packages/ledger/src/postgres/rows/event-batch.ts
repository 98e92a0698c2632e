import type { EventRange } from '../../read/checked-event.ts'
import { outOfOrder, storedEvent, type EventRow } from '../../record/event-row.ts'
import type { StoredEvent } from '../../record/stored-event.ts'
import type { Connections } from '../connection/connections.ts'
import { bytesPerPage, eventsPerPage, type StatementTexts } from './statements.ts'

/** Where pages come from, and what makes their rows ready to be read. */
export interface PageSource {
  readonly connections: Connections
  readonly texts: StatementTexts
  opened<Row extends EventRow>(rows: readonly Row[]): Promise<readonly Row[]>
}

/** Events of a range, as one page. */
export async function eventPage(
  source: PageSource,
  { runId, fromSeq, toSeq }: EventRange,
): Promise<readonly StoredEvent[]> {
  const rows = await source.connections.rows<EventRow>({
    name: 'tallystick page',
    text: source.texts.page,
    values: [runId, fromSeq, toSeq],
  })
  let seq = fromSeq - 1
  return (await source.opened(rows)).map((row) => {
    // An index that is out of order would have the same page read for ever.
    if (!(row.seq > seq)) throw outOfOrder(`the events of run ${runId}`)
    seq = row.seq
    return storedEvent(row)
  })
}

/** Events of a range, page after page. Between pages no connection is held. */
export async function* eventRange(source: PageSource, range: EventRange): AsyncGenerator<StoredEvent> {
  let left: EventRange | undefined = range
  while (left) {
    const page = await eventPage(source, left)
    yield* page
    left = rangeBehind(page, range)
  }
}

/** What is left of a range behind a page; `undefined` where nothing is. */
export function rangeBehind(page: readonly StoredEvent[], range: EventRange): EventRange | undefined {
  const last = page.at(-1)
  if (last === undefined || last.seq >= range.toSeq) return undefined
  const bytes = page.reduce((sum, { payload }) => sum + (payload?.body.length ?? 0), 0)
  // A page that is full in neither way was all there was.
  const isFull = page.length >= eventsPerPage || bytes >= bytesPerPage
  return isFull ? { ...range, fromSeq: last.seq + 1 } : undefined
}
