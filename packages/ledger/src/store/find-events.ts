import type { RunId, RuntimeEvent } from '@tallystick/core'
import { isStorableName, requireEventQuery } from '@tallystick/core/store-kit'
import type { EventQuery, EventType } from '@tallystick/core/vocabulary'
import {
  genesis,
  isRunId,
  missingEvent,
  outOfOrder,
  readEvent,
  type Link,
  type ReadableRow,
} from '../format/event-row.ts'
import type { RowReader } from './read-events.ts'
import { type FoundRow, isFull, selectLinked, type StoreDatabase } from './database.ts'

/** A query with its bounds made whole: what a store compares with the columns of an event. */
export interface AskedEvents {
  readonly sessionId?: string
  readonly runId?: RunId
  readonly turn: number | null
  readonly toolCallId: string | null
  /** Each once, and at least one. */
  readonly types: readonly EventType[] | null
  readonly fromAt: number
  readonly toAt: number
}

/** Asks for every event. */
export const everyEvent: AskedEvents = {
  turn: null,
  toolCallId: null,
  types: null,
  fromAt: Number.MIN_SAFE_INTEGER,
  toAt: Number.MAX_SAFE_INTEGER,
}

/** A run that may hold what is asked for, as it stood when the search began. */
export interface SearchedRun {
  readonly runId: RunId
  /** Place of its first event. */
  readonly pos: number
  readonly headSeq: number
}

/** Events that one index finds in the order of places. Every filter of the query is applied to them. */
export type SearchSource =
  | { readonly by: 'call'; readonly run: SearchedRun }
  | { readonly by: 'run'; readonly run: SearchedRun }
  | { readonly by: 'place'; readonly fromPos: number; readonly toPos: number }

/** The event after which a batch begins, or a place before the first event. */
export interface Cursor {
  readonly pos: number
  readonly seq: number
}

/** Some events of a source. It may be empty and yet not the last. */
export interface FoundBatch {
  readonly rows: readonly FoundRow[]
  /** Where the next batch begins; absent after the last. */
  readonly next?: Cursor
}

/** `undefined` if the query can have no answer, whatever the store holds. */
function toAskedEvents(query: EventQuery): AskedEvents | undefined {
  const { sessionId, runId, turn = null, toolCallId = null, types } = query
  const { fromAt = Number.MIN_SAFE_INTEGER, toAt = Number.MAX_SAFE_INTEGER } = query
  const asked: AskedEvents = {
    ...(sessionId !== undefined && { sessionId }),
    ...(runId !== undefined && { runId }),
    turn,
    toolCallId,
    types: types ? [...new Set(types)] : null,
    fromAt: Math.max(Math.ceil(fromAt), Number.MIN_SAFE_INTEGER),
    toAt: Math.min(Math.floor(toAt), Number.MAX_SAFE_INTEGER),
  }
  const isAnswerable =
    (turn === null || Number.isSafeInteger(turn)) && types?.length !== 0 && asked.fromAt <= asked.toAt
  return isAnswerable ? asked : undefined
}

/**
 * Events of a store in the order of their places. Each is checked against the event before it in its run. Throws
 * `LedgerDamagedError` at the first that is not as it was written, and the error of a closed ledger. Holds a batch of each
 * run that is under way at the place where the search is, and no more.
 */
export async function* findEvents(
  database: StoreDatabase,
  rows: RowReader,
  query: EventQuery = {},
): AsyncGenerator<RuntimeEvent> {
  requireEventQuery(query)
  const asked = toAskedEvents(query)
  // A store that is closed refuses this query as any other.
  if (asked === undefined) return database.requireOpen()
  const waiting = [...(await findSources(database, asked))].toReversed()
  const open: { readonly source: AsyncIterator<FoundRow & ReadableRow>; head: FoundRow & ReadableRow }[] = []
  for (;;) {
    const first = open.reduce<(typeof open)[number] | undefined>(
      (least, each) => (least === undefined || each.head.pos < least.head.pos ? each : least),
      undefined,
    )
    const next = waiting.at(-1)
    if (next && (first === undefined || firstPlaceIn(next) <= first.head.pos)) {
      waiting.pop()
      const source = readSource(database, rows, asked, next)
      const { value, done } = await source.next()
      if (!done) open.push({ source, head: value })
      continue
    }
    if (first === undefined) return
    const event = readFound(first.head)
    database.requireOpen()
    yield event
    const { value, done } = await first.source.next()
    if (done) open.splice(open.indexOf(first), 1)
    else first.head = value
  }
}

/** The sources whose events, laid together by place, are what is asked for; those that begin first come first. */
async function findSources(database: StoreDatabase, asked: AskedEvents): Promise<readonly SearchSource[]> {
  const { runId, sessionId, toolCallId } = asked
  if (runId === undefined && sessionId === undefined && toolCallId === null) {
    const places = await findPlaces(database, asked)
    return places ? [{ by: 'place', ...places }] : []
  }
  const runs = [...(await findRuns(database, asked))].toSorted((left, right) => left.pos - right.pos)
  return runs.map((run) => ({ by: toolCallId === null ? 'run' : 'call', run }))
}

function firstPlaceIn(source: SearchSource): number {
  return source.by === 'place' ? source.fromPos : source.run.pos
}

/** The runs that match all filters: with that id, of that session, with events of that call. */
export async function findRuns(
  { query }: Pick<StoreDatabase, 'query'>,
  { runId, sessionId, toolCallId }: AskedEvents,
): Promise<readonly SearchedRun[]> {
  // A name that a database cannot store matches nothing.
  if (![runId, sessionId, toolCallId].every((name) => isStorableName(name ?? ''))) return []
  const rows = await query(({ db }) => {
    let runs = db.selectFrom('run').select(['run_id', 'pos', 'head_seq'])
    if (runId !== undefined) runs = runs.where('run_id', '=', runId)
    if (sessionId !== undefined) runs = runs.where('session_id', '=', sessionId)
    if (toolCallId === null) return runs
    return runs.where('run_id', 'in', (of) =>
      of.selectFrom('event').select('run_id').where('tool_call_id', '=', toolCallId),
    )
  })
  return rows.flatMap(({ run_id, pos, head_seq }) =>
    isRunId(run_id) ? [{ runId: run_id, pos, headSeq: head_seq }] : [],
  )
}

/** The first and the last place of an event in the time that is asked for; `undefined` if there is none. */
export async function findPlaces(
  { query }: Pick<StoreDatabase, 'query'>,
  asked: AskedEvents,
): Promise<{ readonly fromPos: number; readonly toPos: number } | undefined> {
  const [found] = await query(({ db, sql }) =>
    isTimed(asked)
      ? db
          .selectFrom('event')
          .select([sql<number | null>`min(pos + 0)`.as('first'), sql<number | null>`max(pos + 0)`.as('last')])
          .where('at', '>=', asked.fromAt)
          .where('at', '<=', asked.toAt)
      : // One query each, so that each reads one end of the table.
        db.selectNoFrom((of) => [
          of
            .selectFrom('event')
            .select(({ fn }) => fn.min('pos').as('pos'))
            .as('first'),
          of
            .selectFrom('event')
            .select(({ fn }) => fn.max('pos').as('pos'))
            .as('last'),
        ]),
  )
  const { first = null, last = null } = found ?? {}
  return first === null || last === null ? undefined : { fromPos: first, toPos: last }
}

function isTimed({ fromAt, toAt }: AskedEvents): boolean {
  return fromAt > Number.MIN_SAFE_INTEGER || toAt < Number.MAX_SAFE_INTEGER
}

/** The next events of a source that pass all filters. */
export async function searchBatch(
  { queryBatch, maxScanned }: Pick<StoreDatabase, 'queryBatch' | 'maxScanned'>,
  asked: AskedEvents,
  source: SearchSource,
  after: Cursor,
): Promise<FoundBatch> {
  const order = source.by === 'place' ? 'pos' : 'seq'
  // The index by call passes over nothing, so there is no need to stop on the way.
  const last = source.by === 'place' ? source.toPos : source.run.headSeq
  const far = source.by === 'call' ? last : after[order] + maxScanned
  const scanned = { ...after, [order]: Math.min(far, last) }
  const { types } = asked
  const rows = await queryBatch(
    (queries) => {
      const { sql } = queries
      // Additions keep planners from another index than that of the source.
      let found = selectLinked(queries)
        .where(`event.${order}`, '>', after[order])
        .where(`event.${order}`, '<=', scanned[order])
      if (source.by === 'run') found = found.where('event.run_id', '=', source.run.runId)
      if (source.by === 'call')
        found = found
          .where('event.tool_call_id', '=', asked.toolCallId)
          .where(sql<string>`event.run_id || ''`, '=', source.run.runId)
      if (isTimed(asked))
        found = found
          .where(sql<number>`event.at + 0`, '>=', asked.fromAt)
          .where(sql<number>`event.at + 0`, '<=', asked.toAt)
      if (asked.turn !== null) found = found.where(sql<number>`event.turn + 0`, '=', asked.turn)
      return types === null
        ? found
        : found.where(sql<string>`event.type || ''`, 'in', types.filter(isStorableName))
    },
    [order],
  )
  const lastRow = rows.at(-1)
  // After the last row if there may be more of them, else after every event that was looked at.
  if (lastRow && isFull(rows)) return { rows, next: lastRow }
  return scanned[order] < last ? { rows, next: scanned } : { rows }
}

/** The rows of a source, batch after batch. */
async function* readSource(
  database: StoreDatabase,
  rows: RowReader,
  asked: AskedEvents,
  source: SearchSource,
): AsyncGenerator<FoundRow & ReadableRow> {
  for (let cursor: Cursor | undefined = { pos: firstPlaceIn(source) - 1, seq: 0 }; cursor;) {
    const batch = await searchBatch(database, asked, source, cursor)
    let last = cursor
    for (const row of batch.rows) {
      // An index that is out of order would have the same batch read for ever.
      const isAfter = row.pos > last.pos && (source.by === 'place' || row.seq > last.seq)
      if (!isAfter) throw outOfOrder(source.by === 'place' ? 'its events' : `the events of run ${row.run_id}`)
      last = row
    }
    yield* await rows.readable(batch.rows)
    cursor = batch.next
  }
}

/** The event of a row that was found. Throws `LedgerDamagedError` if it is not as it was written. */
export function readFound(row: FoundRow & ReadableRow): RuntimeEvent {
  const event = readEvent(toLinkBefore(row), row)
  if (event === undefined) throw missingEvent(row.run_id, row.seq)
  return event
}

function toLinkBefore({
  run_id,
  seq,
  previous_pos: pos,
  previous_epoch: epoch,
  previous_hash: hash,
}: FoundRow): Link {
  if (seq === 1) return genesis
  if (pos === null || epoch === null || hash === null) throw missingEvent(run_id, seq - 1)
  return { seq: seq - 1, pos, epoch, hash }
}
