import type { ToolResult } from '../../vocabulary/model/content.ts'
import { digestOf } from '../../vocabulary/values/digest.ts'

/** A settled call, as later calls are compared with it. */
export interface LoggedCall {
  readonly toolCallId: string
  readonly name: string
  readonly inputDigest: string
  readonly result: ToolResult
  /** The digest of what the tool answered, where that is not the content of `result`. */
  readonly resultDigest?: string
}

/** The digest that answers are compared by. */
export function answerDigest(outcome: ToolResult['outcome'], content: ToolResult['content']): string {
  return digestOf([outcome, content])
}

/**
 * Every call of a run whose answer later ones are compared with, in order, found again by tool and input. Values of this type never
 * change, yet adding costs the same however long the run is: as with `History`, views of one growth share their store.
 */
export interface CallLog {
  readonly length: number
  readonly store: CallLogStore
}

/** What views of one growth share. Only grows. */
interface CallLogStore {
  readonly calls: LoggedCall[]
  readonly positions: Map<string, number[]>
  /** The digests of answers that were compared so far: most calls have no equal. */
  readonly digests: Map<number, string>
  /** For each call, how many equal calls in a row had its answer, up to it. */
  readonly streaks: number[]
  longestStreak: number
}

/** The log of a run that has called nothing. All such runs share it: a store of its own is made for the first call. */
export const emptyCallLog: CallLog = { length: 0, store: emptyStore() }

function emptyStore(): CallLogStore {
  return { calls: [], positions: new Map(), digests: new Map(), streaks: [], longestStreak: 0 }
}

/** The log with one more call at its end. */
export function logCall(log: CallLog, call: LoggedCall): CallLog {
  const store = log.length > 0 && log.store.calls.length === log.length ? log.store : copyStore(log)
  const key = keyOf(call)
  const places = store.positions.get(key)
  store.calls.push(call)
  const streak = 1 + streakBefore(store, places?.at(-1), log.length)
  if (places) places.push(log.length)
  else store.positions.set(key, [log.length])
  store.streaks.push(streak)
  store.longestStreak = Math.max(store.longestStreak, streak)
  return { length: log.length + 1, store }
}

function streakBefore(store: CallLogStore, before: number | undefined, place: number): number {
  if (before === undefined || digestAt(store, before) !== digestAt(store, place)) return 0
  return store.streaks[before] ?? 0
}

function digestAt({ calls, digests }: CallLogStore, place: number): string {
  const known = digests.get(place)
  if (known !== undefined) return known
  const { result, resultDigest } = calls[place] as LoggedCall
  const digest = resultDigest ?? answerDigest(result.outcome, result.content)
  digests.set(place, digest)
  return digest
}

/** The calls of a log, in order. */
export function callsOf({ length, store }: CallLog): readonly LoggedCall[] {
  return store.calls.slice(0, length)
}

function copyStore({ length, store }: CallLog): CallLogStore {
  if (length === 0) return emptyStore()
  let copy = emptyCallLog
  for (const call of store.calls.slice(0, length)) copy = logCall(copy, call)
  return copy.store
}

function keyOf({ name, inputDigest }: Pick<LoggedCall, 'name' | 'inputDigest'>): string {
  return `${inputDigest} ${name}`
}

/** No call of a log has got the same answer more often in a row than this. */
export function longestStreak({ store }: CallLog): number {
  return store.longestStreak
}

/**
 * Whether the last call of a log got an answer that the same call had not got when it was made before: something has
 * changed, or the model has learned something.
 */
export function endsInNews({ length, store }: CallLog): boolean {
  const last = store.calls[length - 1]
  if (last === undefined) return false
  const before = store.positions.get(keyOf(last))?.findLast((place) => place < length - 1)
  return before === undefined || digestAt(store, before) !== digestAt(store, length - 1)
}

/**
 * The answers that the same call (tool and canonical input) has got from a place of the log on, from the last
 * backwards, as long as they are the same answer. A different answer is progress: what lies before it does not count.
 */
export function sameAnswers(
  log: CallLog,
  call: Pick<LoggedCall, 'name' | 'inputDigest'>,
  from = 0,
): readonly LoggedCall[] {
  const { store } = log
  const places = store.positions.get(keyOf(call)) ?? []
  const found: LoggedCall[] = []
  let digest: string | undefined
  for (let index = places.length - 1; index >= 0; index--) {
    const place = places[index] as number
    if (place >= log.length) continue
    if (place < from) break
    digest ??= digestAt(store, place)
    if (digestAt(store, place) !== digest) break
    found.push(store.calls[place] as LoggedCall)
  }
  return found
}
