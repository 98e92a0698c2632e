import type { RunId, RuntimeEvent } from '@tallystick/core'
import { isStorableName, requireEventQuery } from '@tallystick/core/store-kit'
import type { EventQuery, EventType } from '@tallystick/core/vocabulary'
import {
  genesis,
  isRunId,
  missingEvent,
  outOfOrder,
  readEvent,
  type EventRow,
  type Link,
} from '../format/event-row.ts'
import type { RowReader } from './read-events.ts'
import { isFull, isRareType, rareType, selectLinked, type StoreDatabase, Values } from './database.ts'

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
  | { readonly by: 'turn'; readonly run: SearchedRun; readonly turn: number }
  | { readonly by: 'call'; readonly run: SearchedRun }
  /** With `types`, only events of these, whatever else is asked for. */
  | { readonly by: 'run'; readonly run: SearchedRun; readonly types?: readonly EventType[] }
  | { readonly by: 'type'; readonly run: SearchedRun; readonly type: EventType }
  | { readonly by: 'place'; readonly fromPos: number; readonly toPos: number }

/** The event after which a batch begins, or a place before the first event. */
export interface Cursor {
  readonly pos: number
  readonly seq: number
}

/** An event with the link that it is chained to; nulls where the event before it is not there. */
export interface FoundRow extends EventRow {
  readonly previous_pos: number | null
  readonly previous_epoch: number | null
  readonly previous_hash: string | null
}

/** Some events of a source. It may be empty and yet not the last. */
export interface FoundBatch {
  readonly rows: readonly FoundRow[]
  /** Where the next batch begins; absent after the last. */
  readonly next?: Cursor
}

function isTimed({ fromAt, toAt }: AskedEvents): boolean {
  return fromAt > Number.MIN_SAFE_INTEGER || toAt < Number.MAX_SAFE_INTEGER
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
  const open: SourceReader[] = []
  for (;;) {
    const first = open.reduce<SourceReader | undefined>(
      (least, source) => (least === undefined || source.head.pos < least.head.pos ? source : least),
      undefined,
    )
    const next = waiting.at(-1)
    if (next && (first === undefined || firstPlaceIn(next) <= first.head.pos)) {
      waiting.pop()
      const opened = await SourceReader.open(database, rows, asked, next)
      if (opened) open.push(opened)
      continue
    }
    if (first === undefined) return
    const event = readFound(first.head)
    database.requireOpen()
    yield event
    if (!(await first.advance())) open.splice(open.indexOf(first), 1)
  }
}

/** The sources whose events, laid together by place, are what is asked for; those that begin first come first. */
async function findSources(database: StoreDatabase, asked: AskedEvents): Promise<readonly SearchSource[]> {
  const { runId, sessionId, toolCallId, turn, types } = asked
  if (runId === undefined && sessionId === undefined && toolCallId === null) {
    const places = await findPlaces(database, asked)
    return places ? [{ by: 'place', ...places }] : []
  }
  const runs = [...(await findRuns(database, asked))].toSorted((left, right) => left.pos - right.pos)
  return runs.flatMap((run): readonly SearchSource[] => {
    if (toolCallId !== null) return [{ by: 'call', run }]
    if (turn !== null) return [{ by: 'turn', run, turn }]
    return types ? toSourcesByType(run, types) : [{ by: 'run', run }]
  })
}

/** The events of each type by its index; those of all types without an index in one walk through the run. */
function toSourcesByType(run: SearchedRun, types: readonly EventType[]): readonly SearchSource[] {
  const indexed = types.filter(isRareType)
  const others = types.filter((type) => !isRareType(type))
  return [
    ...indexed.map((type) => ({ by: 'type', run, type }) as const),
    ...(others.length > 0 ? [{ by: 'run', run, types: others } as const] : []),
  ]
}

function firstPlaceIn(source: SearchSource): number {
  return source.by === 'place' ? source.fromPos : source.run.pos
}

/** The runs that match all filters: with that id, of that session, with events of that call. */
export async function findRuns(
  { ask }: StoreDatabase,
  { runId, sessionId, toolCallId }: AskedEvents,
): Promise<readonly SearchedRun[]> {
  // What a database cannot hold names nothing that is there.
  if (![runId, sessionId, toolCallId].every((name) => isStorableName(name ?? ''))) return []
  const values = new Values()
  const conditions = [
    ...(runId === undefined ? [] : [`run_id = ${values.add(runId)}`]),
    ...(sessionId === undefined ? [] : [`session_id = ${values.add(sessionId)}`]),
    ...(toolCallId === null
      ? []
      : [`run_id in (select run_id from @.event where tool_call_id = ${values.add(toolCallId)})`]),
  ]
  const rows = await ask<{ readonly run_id: string; readonly pos: number; readonly head_seq: number }>(
    `select run_id, pos, head_seq from @.run where ${conditions.join(' and ')}`,
    values.list,
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
  type Places = { readonly first: number | null; readonly last: number | null }
  const [found] = isTimed(asked)
    ? await ask<Places>(
        'select min(pos + 0) as first, max(pos + 0) as last from @.event where at >= $1 and at <= $2',
        [asked.fromAt, asked.toAt],
      )
    : // One query each, so that each reads one end of the table.
      await ask<Places>(
        'select (select min(pos) from @.event) as first, (select max(pos) from @.event) as last',
      )
  const { first = null, last = null } = found ?? {}
  return first === null || last === null ? undefined : { fromPos: first, toPos: last }
}

/** Indexes that SQLite would not choose: see `Dialect.using`. */
const indexOf: { readonly [By in SearchSource['by']]?: string } = { type: 'event_type', call: 'event_call' }

/** The next events of a source that pass all filters. */
export async function searchBatch(
  database: StoreDatabase,
  asked: AskedEvents,
  source: SearchSource,
  after: Cursor,
): Promise<FoundBatch> {
  const { dialect, askBatch } = database
  const scanned = limitScan(source, after, database.maxScanned)
  const order = source.by === 'place' ? 'pos' : 'seq'
  let [from, to] = [after[order], scanned[order]]
  if (source.by === 'turn') {
    from = Math.max(from, (await findTurn(database, source.run, source.turn)) - 1)
    to = (await findTurn(database, source.run, source.turn + 1)) - 1
  }
  const values = new Values()
  const types = (source.by === 'run' ? source.types : undefined) ?? asked.types
  // Additions keep planners from another index than that of the source.
  const conditions = [
    `event.${order} > ${values.add(from)} and event.${order} <= ${values.add(to)}`,
    ...(source.by === 'place' ? [] : [`event.run_id = ${values.add(source.run.runId)}`]),
    ...(source.by === 'type' ? [`event.type = ${values.add(source.type)} and event.${rareType}`] : []),
    ...(source.by === 'call' ? [`event.tool_call_id = ${values.add(asked.toolCallId)}`] : []),
    ...(isTimed(asked)
      ? [`event.at + 0 >= ${values.add(asked.fromAt)} and event.at + 0 <= ${values.add(asked.toAt)}`]
      : []),
    ...(asked.turn === null ? [] : [`event.turn + 0 = ${values.add(asked.turn)}`]),
    ...(types === null
      ? []
      : [
          `event.type || '' in (select value from ${dialect.texts(values.add(JSON.stringify(types.filter(isStorableName))))})`,
        ]),
  ]
  const index = indexOf[source.by]
  const rows = await askBatch<FoundRow>(
    `${selectLinked(`@.event as event ${index ? dialect.using(index) : ''}`)} where ${conditions.join(' and ')}`,
    [order],
    values.list,
  )
  const last = rows.at(-1)
  // After the last row if there may be more of them, else after every event that was looked at.
  if (last && isFull(rows)) return { rows, next: last }
  const isMore = source.by === 'place' ? scanned.pos < source.toPos : scanned.seq < source.run.headSeq
  return isMore ? { rows, next: scanned } : { rows }
}

/** How far a batch looks. The indexes by type and call pass over nothing, and the events of a turn are searched at once. */
function limitScan(source: SearchSource, { pos, seq }: Cursor, maxScanned: number): Cursor {
  if (source.by === 'place') return { pos: Math.min(pos + maxScanned, source.toPos), seq }
  const { headSeq } = source.run
  return { pos, seq: source.by === 'run' ? Math.min(seq + maxScanned, headSeq) : headSeq }
}

/**
 * The number of the first event of a turn or a later one; one more than the head if the run has none. Turns never fall from
 * one event to the next.
 */
async function findTurn(
  { ask }: StoreDatabase,
  { runId, headSeq }: SearchedRun,
  turn: number,
): Promise<number> {
  let [from, to] = [1, headSeq + 1]
  while (from < to) {
    const middle = Math.floor((from + to) / 2)
    const [row] = await ask<{ readonly turn: number }>(
      'select turn from @.event where run_id = $1 and seq = $2',
      [runId, middle],
    )
    if (row === undefined || row.turn >= turn) to = middle
    else from = middle + 1
  }
  return from
}

type NextBatch = (after: Cursor) => Promise<FoundBatch>

/** The batches of a source, one after the other. */
class SourceReader {
  readonly #nextBatch: NextBatch
  #batch: FoundBatch
  #index = 0
  /** The event that it is at. */
  head: FoundRow

  private constructor(nextBatch: NextBatch, batch: FoundBatch, head: FoundRow) {
    this.#nextBatch = nextBatch
    this.#batch = batch
    this.head = head
  }

  /** `undefined` if the source has no event at all. */
  static async open(
    database: StoreDatabase,
    rows: RowReader,
    asked: AskedEvents,
    source: SearchSource,
  ): Promise<SourceReader | undefined> {
    const nextBatch: NextBatch = async (after) => {
      for (let cursor = after; ;) {
        const batch = await searchBatch(database, asked, source, cursor)
        requireOrder(batch, source, cursor)
        if (batch.rows.length > 0 || batch.next === undefined) {
          return { ...batch, rows: await rows.readable(batch.rows) }
        }
        cursor = batch.next
      }
    }
    const batch = await nextBatch({ pos: firstPlaceIn(source) - 1, seq: 0 })
    const [head] = batch.rows
    return head && new SourceReader(nextBatch, batch, head)
  }

  /** Goes to the next event. Returns whether there is one. */
  async advance(): Promise<boolean> {
    this.#index++
    if (this.#index >= this.#batch.rows.length && this.#batch.next) {
      this.#batch = await this.#nextBatch(this.#batch.next)
      this.#index = 0
    }
    const head = this.#batch.rows[this.#index]
    if (head) this.head = head
    return head !== undefined
  }
}

/** An index that is out of order would have the same batch read for ever. */
function requireOrder({ rows }: FoundBatch, source: SearchSource, after: Cursor): void {
  let last = after
  for (const row of rows) {
    const isAfter = row.pos > last.pos && (source.by === 'place' || row.seq > last.seq)
    if (!isAfter) throw outOfOrder(source.by === 'place' ? 'its events' : `the events of run ${row.run_id}`)
    last = row
  }
}

/** The event of a row that was found. Throws `LedgerDamagedError` if it is not as it was written. */
export function readFound(row: FoundRow): RuntimeEvent {
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
