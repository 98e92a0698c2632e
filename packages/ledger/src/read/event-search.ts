import type { RunId, RuntimeEvent } from '@tallystick/core'
import type { EventQuery, EventType } from '@tallystick/core/vocabulary'
import { maxPackedMs } from '../content/event/packed-deltas.ts'
import type { EventRow } from '../record/event-row.ts'
import { shortCallId } from '../record/segments/fact-number.ts'
import { segmentedType } from '../record/segments/segmented-body.ts'

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

/** What one index finds in the order of places. Filters that the index does not know are left to each event. */
export type SearchSource =
  /** With `isSegmented`, only segmented rows: the others are found by their call. */
  | { readonly by: 'turn'; readonly run: SearchedRun; readonly turn: number; readonly isSegmented?: true }
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
  readonly previous_hash: Uint8Array | null
}

/** Some events of a source. It may be empty and yet not the last. */
export interface FoundBatch {
  readonly rows: readonly FoundRow[]
  /** Where the next batch begins; absent after the last. */
  readonly next?: Cursor
}

/** A store as a search sees it. Each answer is the store at one moment. */
export interface SearchedStore {
  /** Returns the runs that match all filters: with that id, of that session, with events of that call. */
  runs(asked: AskedEvents): Promise<readonly SearchedRun[]>
  /** Returns the first and the last place of an event in the requested time; `undefined` if there is no such event. */
  places(asked: AskedEvents): Promise<{ readonly fromPos: number; readonly toPos: number } | undefined>
  batch(asked: AskedEvents, source: SearchSource, after: Cursor): Promise<FoundBatch>
  /** Returns whether rows of events of a type are found by an index within their run. */
  readonly hasIndexOf: (type: EventType) => boolean
  /** Throws where the ledger was closed meanwhile. */
  readonly requireOpen: () => void
}

/** Where a batch that holds `rows` ends: after the last row if it is full, else after every event that was searched. */
export function batchOf(
  rows: readonly FoundRow[],
  isFull: boolean,
  source: SearchSource,
  scanned: Cursor,
): FoundBatch {
  const last = rows.at(-1)
  if (isFull && last) return { rows, next: last }
  const isMore = source.by === 'place' ? scanned.pos < source.toPos : scanned.seq < source.run.headSeq
  return isMore ? { rows, next: scanned } : { rows }
}

/** Nothing where the query can have no answer, whatever the store holds. */
export function askedEvents(query: EventQuery): AskedEvents | undefined {
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
  return isAnswerable(asked) ? asked : undefined
}

function isAnswerable({ turn, types, fromAt, toAt }: AskedEvents): boolean {
  return (turn === null || Number.isSafeInteger(turn)) && types?.length !== 0 && fromAt <= toAt
}

/** The time of the last row that may hold an event that is asked for: a row has the time of its last event. */
export function lastRowAt({ toAt }: AskedEvents): number {
  return Math.min(toAt + maxPackedMs, Number.MAX_SAFE_INTEGER)
}

/** Whether a search is bounded in time. */
export function isTimed({ fromAt, toAt }: AskedEvents): boolean {
  return fromAt > Number.MIN_SAFE_INTEGER || toAt < Number.MAX_SAFE_INTEGER
}

/** The sources whose events, laid together by place, are what is asked for; those that begin first come first. */
export async function sourcesOf(store: SearchedStore, asked: AskedEvents): Promise<readonly SearchSource[]> {
  const { runId, sessionId, toolCallId, turn, types } = asked
  if (runId === undefined && sessionId === undefined && toolCallId === null) {
    const places = await store.places(asked)
    return places ? [{ by: 'place', ...places }] : []
  }
  const runs = [...(await store.runs(asked))].toSorted((left, right) => left.pos - right.pos)
  return runs.flatMap((run): readonly SearchSource[] => {
    if (toolCallId !== null) return sourcesOfCall(run, toolCallId)
    if (turn !== null) return [{ by: 'turn', run, turn }]
    return types ? sourcesOfTypes(store, run, types) : [{ by: 'run', run }]
  })
}

/** The turn of a call of the run itself is in its id: there, rows that say nothing of their calls may hold it. */
function sourcesOfCall(run: SearchedRun, toolCallId: string): readonly SearchSource[] {
  const [turn] = shortCallId(run.runId, toolCallId)?.split('_') ?? []
  if (turn === undefined || !Number.isSafeInteger(Number(turn))) return [{ by: 'call', run }]
  return [
    { by: 'call', run },
    { by: 'turn', run, turn: Number(turn), isSegmented: true },
  ]
}

/** The types that rows are to have, so that none with an event of these is left out; null for every row. */
export function rowTypesOf(asked: AskedEvents, source: SearchSource): readonly string[] | null {
  if (source.by === 'turn' && source.isSegmented) return [segmentedType]
  const types = source.by === 'run' ? (source.types ?? asked.types) : asked.types
  return types && [...types, segmentedType]
}

/** Whether an event of a row that was found is one that is asked for: a row has the time, the type and the call of one at most. */
export function isAsked(asked: AskedEvents, { at, type, turn, toolCallId }: RuntimeEvent): boolean {
  return (
    at >= asked.fromAt &&
    at <= asked.toAt &&
    (asked.types === null || asked.types.includes(type)) &&
    (asked.turn === null || asked.turn === turn) &&
    (asked.toolCallId === null || asked.toolCallId === toolCallId)
  )
}

/** The events of each type by its index; those of all types without an index in one walk through the run. */
function sourcesOfTypes(
  { hasIndexOf }: SearchedStore,
  run: SearchedRun,
  types: readonly EventType[],
): readonly SearchSource[] {
  const indexed = types.filter((type) => hasIndexOf(type))
  const others = types.filter((type) => !hasIndexOf(type))
  return [
    ...indexed.map((type) => ({ by: 'type', run, type }) as const),
    ...(others.length > 0 ? [{ by: 'run', run, types: others } as const] : []),
  ]
}
