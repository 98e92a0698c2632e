import type {
  DueFilter,
  DueRun,
  EventQuery,
  ExpectedHead,
  InboxEntry,
  PutOptions,
  RunFilter,
  RunWait,
} from './ledger.ts'
import { ConfigurationError } from '../values/errors.ts'
import { type EventEnvelope, type EventType, eventTypes } from '../events/event.ts'
import { findNearestName } from '../values/text.ts'
import {
  anyText,
  fields,
  listOf,
  maybe,
  numberFrom,
  type Schema,
  requireOptions,
  valueThat,
} from '../values/option.ts'

/** Bounds of a read, both included. */
interface ReadRange {
  readonly fromSeq?: number | undefined
  readonly toSeq?: number | undefined
}

const wholeNumber = numberFrom(0, { whole: true })
const time = valueThat(
  'a time in milliseconds since 1970 UTC, such as Date.now()',
  (value) => typeof value === 'number' && !Number.isNaN(value),
)
const knownTypes: ReadonlySet<unknown> = new Set(eventTypes)

export const eventType: Schema = (value) => {
  if (knownTypes.has(value)) return undefined
  if (typeof value !== 'string') return anyText(value)
  const nearest = findNearestName(value, eventTypes)
  const hint = nearest === undefined ? 'Use those of eventTypes' : `Did you mean '${nearest}'?`
  return { path: '', what: `is ${JSON.stringify(value.slice(0, 40))}, which is not a type of event. ${hint}` }
}

const queryFields = fields<EventQuery>({
  sessionId: maybe(anyText),
  runId: maybe(anyText),
  turn: maybe(wholeNumber),
  toolCallId: maybe(anyText),
  types: maybe(listOf(eventType)),
  fromAt: maybe(time),
  toAt: maybe(time),
})

const eventQuery: Schema = (value) => {
  const fault = queryFields(value)
  if (fault) return fault
  const { fromAt = -Infinity, toAt = Infinity } = value as EventQuery
  if (fromAt <= toAt) return undefined
  return {
    path: 'toAt',
    what: `is before fromAt, so no event could be found. Give the earlier time as fromAt`,
  }
}

const limit = maybe(
  valueThat(
    'a whole number of at least 0',
    (value) => value === Infinity || (Number.isSafeInteger(value) && (value as number) >= 0),
  ),
)

const runFilter = fields<RunFilter>({ sessionId: maybe(anyText), before: maybe(anyText), limit })

const dueFilter = fields<DueFilter>({
  before: time,
  after: maybe(fields<DueRun>({ runId: anyText, dueAt: time })),
  limit,
})

const runWait = fields<RunWait>({ wakeAt: maybe(time), children: maybe(listOf(anyText)) })

const readRange = fields<ReadRange>({ fromSeq: maybe(wholeNumber), toSeq: maybe(wholeNumber) })

/** Refuses a wrong query of a `find`. Throws a `ConfigurationError` that names the filter. */
export function requireEventQuery(query: EventQuery): void {
  requireOptions('ledger.find', eventQuery, query)
}

/** Refuses a wrong filter of `runs`. Throws a `ConfigurationError` that names it. */
export function requireRunFilter(filter: RunFilter): void {
  requireOptions('ledger.runs', runFilter, filter)
}

/** Refuses a wrong filter of `due`. Throws a `ConfigurationError` that names it. */
export function requireDueFilter(filter: DueFilter): void {
  requireOptions('ledger.due', dueFilter, filter)
}

/** When a run is due that is let go, as stores keep it; null for never. Throws a `ConfigurationError` for a wrong wait. */
export function toDueAt(wait: RunWait): number | null {
  requireOptions('ledger.release', runWait, wait, 'the wait')
  const { wakeAt = Infinity } = wait
  return wakeAt === Infinity ? null : Math.max(0, toWholeTime(Math.ceil(wakeAt)))
}

/** A time as a whole number that every store takes. */
export function toWholeTime(at: number): number {
  return Math.floor(Math.min(Math.max(at, -1), Number.MAX_SAFE_INTEGER))
}

/** Refuses a run id that is not a text, and a wrong range of a `read`. Throws a `ConfigurationError` that names it. */
export function requireRead(runId: string, range?: ReadRange): void {
  requireTextId('ledger.read', runId)
  if (range !== undefined) requireOptions('ledger.read', readRange, range, 'the range')
}

const expectedHead = valueThat(
  'the head that the writer expects, as in { expectedSeq: 0, epoch: 1 }',
  (value) => {
    const { expectedSeq, epoch } = Object(value) as Partial<ExpectedHead>
    return typeof expectedSeq === 'number' && typeof epoch === 'number'
  },
)
const eventList = valueThat(
  'a list of events',
  (value) => Array.isArray(value) && value.every((event) => typeof event === 'object' && event !== null),
)
const inboxEntry = valueThat(
  "an entry of the inbox, as in { key, command: { type: 'cancel' }, at: Date.now() }",
  (value) => {
    // The command is judged by the writer that reads it: any process can put anything there.
    const { key, command, at } = Object(value) as Partial<InboxEntry>
    return typeof key === 'string' && command !== undefined && typeof at === 'number'
  },
)

/** Refuses a malformed append before a store looks into it. Throws a `ConfigurationError`. */
export function requireAppend(runId: unknown, expected: unknown, events: unknown): void {
  requireTextId('ledger.append', runId)
  requireOptions('ledger.append', expectedHead, expected, 'the head')
  requireOptions('ledger.append', eventList, events, 'the list of events')
}

/** Refuses a malformed entry of an inbox before a store looks into it. Throws a `ConfigurationError`. */
export function requirePut(runId: unknown, entry: unknown): void {
  requireTextId('ledger.put', runId)
  requireOptions('ledger.put', inboxEntry, entry, 'the entry')
}

/** Refuses a transaction of the caller's in a store that joins none: the entry would stay after a rollback. Throws a `ConfigurationError`. */
export function refuseTransaction({ within }: PutOptions = {}): void {
  if (within === undefined) return
  throw new ConfigurationError(
    'ledger.put: within is a transaction of the database of the ledger, and this ledger joins none, so a rollback would not take the entry back. Leave it out, or use postgresLedger.',
  )
}

/** Refuses a run id that is not a text: a store would report itself broken. A text that is not an id names no run. */
export function requireTextId(subject: string, runId: unknown): void {
  if (typeof runId !== 'string') requireOptions(subject, anyText, runId, 'the run id')
}

/** Returns true if the envelope of an event is what a query asks for; only the session is not in it. */
export function matchesQuery(
  event: EventEnvelope & { readonly type: EventType },
  query: EventQuery,
): boolean {
  const { runId, turn, toolCallId, types, fromAt = -Infinity, toAt = Infinity } = query
  return (
    (runId === undefined || event.runId === runId) &&
    (turn === undefined || event.turn === turn) &&
    (toolCallId === undefined || event.toolCallId === toolCallId) &&
    (types === undefined || types.includes(event.type)) &&
    event.at >= fromAt &&
    event.at <= toAt
  )
}
