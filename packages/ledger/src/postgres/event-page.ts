import type { RuntimeEvent } from '@tallystick/core'
import { eventAfter, missingEvent, type EventRange } from '../checked-event.ts'
import { outOfOrder, storedEvent, type EventRow } from '../event-row.ts'
import { genesis, type Link } from '../link-check.ts'
import type { StoredEvent } from '../stored-event.ts'
import type { Connections } from './connections.ts'
import { bytesPerPage, eventsPerPage, type StatementTexts } from './statements.ts'

/** Where pages come from, and what makes their rows ready to be read. */
export interface PageSource {
  readonly connections: Connections
  readonly texts: StatementTexts
  opened<Row extends EventRow>(rows: readonly Row[]): Promise<readonly Row[]>
}

/** Events of a range, as one page. */
async function eventPage(
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
  let { fromSeq } = range
  while (fromSeq <= range.toSeq) {
    const page = await eventPage(source, { ...range, fromSeq })
    yield* page
    const last = page.at(-1)
    if (last === undefined || isLastPage(page)) return
    fromSeq = last.seq + 1
  }
}

/** A page that is full in neither way was all there was. */
function isLastPage(page: readonly StoredEvent[]): boolean {
  const bytes = page.reduce((sum, { payload }) => sum + (payload?.body.length ?? 0), 0)
  return page.length < eventsPerPage && bytes < bytesPerPage
}

/**
 * Events of a range as they were written. Each is checked against the chain before it is handed out. Throws
 * `LedgerDamagedError` at the first that has changed, or that is missing.
 */
export async function* readEvents(source: PageSource, range: EventRange): AsyncGenerator<RuntimeEvent> {
  let previous = await linkBefore(source, range)
  for await (const stored of eventRange(source, range)) {
    const event = eventAfter(previous, stored)
    if (event === undefined) break
    yield event
    previous = stored
  }
  if (previous.seq < range.toSeq) throw missingEvent(range.runId, previous.seq + 1)
}

async function linkBefore(source: PageSource, { runId, fromSeq }: EventRange): Promise<Link> {
  if (fromSeq === 1) return genesis
  const [before] = await eventPage(source, { runId, fromSeq: fromSeq - 1, toSeq: fromSeq - 1 })
  if (before === undefined) throw missingEvent(runId, fromSeq - 1)
  return before
}
