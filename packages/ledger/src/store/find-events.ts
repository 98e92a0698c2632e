import type { RunId, RuntimeEvent } from '@tallystick/core'
import { isStorableName, requireEventQuery } from '@tallystick/core/store-kit'
import type { EventQuery, EventType } from '@tallystick/core/vocabulary'
import {
  genesis,
  isRunId,
  createMissingEventError,
  createOutOfOrderError,
  readEvent,
  type Link,
  type ReadableRow,
} from '../format/event-row.ts'
import type { RowReader } from './read-events.ts'
import { type FoundRow, isFull, type RunRow, selectLinked, type StoreDatabase } from './database.ts'

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

/** Types that an index of their own finds, however many other events a ledger has. */
const rareTypes: readonly EventType[] = ['schedule_set', 'tool_deferred']
/** The condition of that index. */
export const isRareText: string = rareTypes.map((type) => `type = '${type}'`).join(' or ')

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
    if (next && (first === undefined || getFirstPlace(next) <= first.head.pos)) {
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

function getFirstPlace(source: SearchSource): number {
  return source.by === 'place' ? source.fromPos : source.run.pos
}

/** The runs that match all filters: with that id, of that session, with events of that call. */
export async function findRuns(
  { ask }: Pick<StoreDatabase, 'ask'>,
  { runId, sessionId, toolCallId }: AskedEvents,
): Promise<readonly SearchedRun[]> {
  // A name that a database cannot store matches nothing.
  if (![runId, sessionId, toolCallId].every((name) => isStorableName(name ?? ''))) return []
  const [conditions, values] = writeConditions((value) => [
    runId !== undefined && `run_id = ${value(runId)}`,
    sessionId !== undefined && `session_id = ${value(sessionId)}`,
    toolCallId !== null && `run_id in (select run_id from @.event where tool_call_id = ${value(toolCallId)})`,
  ])
  const rows = await ask<Pick<RunRow, 'run_id' | 'pos' | 'head_seq'>>(
    `select run_id, pos, head_seq from @.run where ${conditions}`,
    values,
  )
  return rows.flatMap(({ run_id, pos, head_seq }) =>
    isRunId(run_id) ? [{ runId: run_id, pos, headSeq: head_seq }] : [],
  )
}

/** The first and the last place of an event in the time that is asked for; `undefined` if there is none. */
export async function findPlaces(
  { ask }: Pick<StoreDatabase, 'ask'>,
  asked: AskedEvents,
): Promise<{ readonly fromPos: number; readonly toPos: number } | undefined> {
  const [text, values] = isTimed(asked)
    ? [
        'select min(pos + 0) as first, max(pos + 0) as last from @.event where at >= $1 and at <= $2',
        [asked.fromAt, asked.toAt],
      ]
    : // One query each, so that each reads one end of the table.
      ['select (select min(pos) from @.event) as first, (select max(pos) from @.event) as last', []]
  const [found] = await ask<{ readonly first: number | null; readonly last: number | null }>(text, values)
  const { first = null, last = null } = found ?? {}
  return first === null || last === null ? undefined : { fromPos: first, toPos: last }
}

function isTimed({ fromAt, toAt }: AskedEvents): boolean {
  return fromAt > Number.MIN_SAFE_INTEGER || toAt < Number.MAX_SAFE_INTEGER
}

/** The next events of a source that pass all filters. */
export async function searchBatch(
  { askBatch, maxScanned }: Pick<StoreDatabase, 'askBatch' | 'maxScanned'>,
  asked: AskedEvents,
  source: SearchSource,
  after: Cursor,
): Promise<FoundBatch> {
  const order = source.by === 'place' ? 'pos' : 'seq'
  const [type = ''] = source.by === 'place' && asked.types?.length === 1 ? asked.types : []
  const isRare = (rareTypes as readonly string[]).includes(type)
  // The indexes by call and by type pass over nothing, so there is no need to stop on the way.
  const last = source.by === 'place' ? source.toPos : source.run.headSeq
  const far = source.by === 'call' || isRare ? last : after[order] + maxScanned
  const scanned = { ...after, [order]: Math.min(far, last) }
  // Additions keep planners from another index than that of the source.
  const [conditions, values] = writeConditions((value) => [
    `event.${order} > ${value(after[order])} and event.${order} <= ${value(scanned[order])}`,
    source.by === 'run' && `event.run_id = ${value(source.run.runId)}`,
    source.by === 'call' &&
      `event.tool_call_id = ${value(asked.toolCallId)} and event.run_id || '' = ${value(source.run.runId)}`,
    isTimed(asked) && `event.at + 0 >= ${value(asked.fromAt)} and event.at + 0 <= ${value(asked.toAt)}`,
    asked.turn !== null && `event.turn + 0 = ${value(asked.turn)}`,
    // In the text, since a planner has to see that the index holds it.
    isRare && `event.type = '${type}'`,
    !isRare && asked.types && `event.type || '' in (${asked.types.map(value).join(', ')})`,
  ])
  const rows = await askBatch<FoundRow>(selectLinked(conditions), [order], values)
  const lastRow = rows.at(-1)
  // After the last row if there may be more of them, else after every event that was looked at.
  if (lastRow && isFull(rows)) return { rows, next: lastRow }
  return scanned[order] < last ? { rows, next: scanned } : { rows }
}

/** Joins those conditions that are asked for; `value` takes a value, and returns the name of its parameter. */
function writeConditions(
  write: (value: (each: unknown) => string) => readonly (string | false | null)[],
): readonly [text: string, values: readonly unknown[]] {
  const values: unknown[] = []
  const conditions = write((each) => `$${values.push(each)}`)
  return [conditions.filter(Boolean).join(' and '), values]
}

/** The rows of a source, batch after batch. */
async function* readSource(
  database: StoreDatabase,
  rows: RowReader,
  asked: AskedEvents,
  source: SearchSource,
): AsyncGenerator<FoundRow & ReadableRow> {
  for (let cursor: Cursor | undefined = { pos: getFirstPlace(source) - 1, seq: 0 }; cursor;) {
    const batch = await searchBatch(database, asked, source, cursor)
    let last = cursor
    for (const row of batch.rows) {
      // An index that is out of order would have the same batch read for ever.
      const isAfter = row.pos > last.pos && (source.by === 'place' || row.seq > last.seq)
      if (!isAfter)
        throw createOutOfOrderError(source.by === 'place' ? 'its events' : `the events of run ${row.run_id}`)
      last = row
    }
    yield* await rows.readable(batch.rows)
    cursor = batch.next
  }
}

/** The event of a row that was found. Throws `LedgerDamagedError` if it is not as it was written. */
export function readFound(row: FoundRow & ReadableRow): RuntimeEvent {
  const event = readEvent(toLinkBefore(row), row)
  if (event === undefined) throw createMissingEventError(row.run_id, row.seq)
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
  if (pos === null || epoch === null || hash === null) throw createMissingEventError(run_id, seq - 1)
  return { seq: seq - 1, pos, epoch, hash }
}
