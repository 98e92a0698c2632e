import { changeable, withMore } from '../messages/batch-arrays.ts'
import type { Call, CallStatus } from './state.ts'

/** What the calls of a turn are together, so that the controller looks at single calls only where it has to. */
export interface CallsSummary {
  /** How many calls have each status. */
  readonly counts: Readonly<Record<CallStatus, number>>
  /** How many reads are started. */
  readonly runningReads: number
  /** How many calls are for child runs. */
  readonly ofChildren: number
  /** The largest number of calls that ask for the same: one tool with one input. */
  readonly mostEqual: number
}

/** Summaries by the calls that they are of: arrays of calls never change. */
const summaries = new WeakMap<readonly Call[], CallsSummary>()

/** The summary of the calls of a turn. */
export function summaryOf(calls: readonly Call[]): CallsSummary {
  const known = summaries.get(calls)
  if (known) return known
  const summary = countedSummary(calls)
  summaries.set(calls, summary)
  return summary
}

/** The summary, counted from every call. */
export function countedSummary(calls: readonly Call[]): CallsSummary {
  const counts = {
    requested: 0,
    to_settle: 0,
    to_ask: 0,
    awaiting_approval: 0,
    ready: 0,
    to_retry: 0,
    started: 0,
    in_doubt: 0,
    deferred: 0,
    settled: 0,
  }
  let [runningReads, ofChildren, mostEqual] = [0, 0, 0]
  // Of one call there is nothing to compare.
  const equal = calls.length > 1 ? new Map<string, number>() : undefined
  for (const call of calls) {
    counts[call.status]++
    if (isRunningRead(call)) runningReads++
    if (isOfChild(call)) ofChildren++
    const key = keyOfCall(call)
    if (key === undefined) continue
    const count = (equal?.get(key) ?? 0) + 1
    equal?.set(key, count)
    mostEqual = Math.max(mostEqual, count)
  }
  return { counts, runningReads, ofChildren, mostEqual }
}

/** What equal calls have in common: the tool and the input. `undefined` for a call that was not collected yet. */
export function keyOfCall({ inputDigest, name }: Pick<Call, 'name' | 'inputDigest'>): string | undefined {
  return inputDigest === undefined ? undefined : `${inputDigest} ${name}`
}

/** The calls with another one at a place. Costs the same however many calls there are, but for one copy of the array. */
export function withCall(calls: readonly Call[], place: number, call: Call): readonly Call[] {
  const before = calls[place] as Call
  return summarized(calls.with(place, call), summaries.get(calls), before, call)
}

/** The calls with one more at their end. */
export function withNewCall(calls: readonly Call[], call: Call): readonly Call[] {
  const more = withMore(calls, call)
  summaries.delete(more)
  return more
}

/**
 * Does what `withCall` does, and copies the array once in a batch. Only for a call that has ended, or that has started without
 * a child run: no law looks at the other calls as they were before that.
 */
export function withCallInBatch(calls: readonly Call[], place: number, call: Call): readonly Call[] {
  const before = calls[place] as Call
  const summary = summaries.get(calls)
  const changed = changeable(calls)
  changed[place] = call
  return summarized(changed, summary, before, call)
}

/** Keeps the summary of calls of which one has changed, where that of the others before is known. */
function summarized(
  changed: readonly Call[],
  known: CallsSummary | undefined,
  before: Call,
  after: Call,
): readonly Call[] {
  if (known && before.inputDigest === after.inputDigest && before.name === after.name)
    summaries.set(changed, changedSummary(known, before, after))
  else summaries.delete(changed)
  return changed
}

function changedSummary(summary: CallsSummary, before: Call, after: Call): CallsSummary {
  const counts = { ...summary.counts }
  counts[before.status]--
  counts[after.status]++
  return {
    counts,
    runningReads: summary.runningReads + Number(isRunningRead(after)) - Number(isRunningRead(before)),
    ofChildren: summary.ofChildren + Number(isOfChild(after)) - Number(isOfChild(before)),
    mostEqual: summary.mostEqual,
  }
}

function isRunningRead({ status, effect }: Call): boolean {
  return status === 'started' && effect === 'read'
}

function isOfChild({ child, grant }: Call): boolean {
  return child !== undefined || grant !== undefined
}

/** The place of a call; -1 if no call has the id. The number at the end of an id is nearly always the place. */
export function placeOfCall(calls: readonly Call[], toolCallId: string): number {
  const ordinal = Number(toolCallId.slice(toolCallId.lastIndexOf('_') + 1))
  if (calls[ordinal - 1]?.toolCallId === toolCallId) return ordinal - 1
  return calls.findIndex((call) => call.toolCallId === toolCallId)
}
