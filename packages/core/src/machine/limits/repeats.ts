import { defaultLimits } from '../../vocabulary/limits/limits.ts'
import { type LoggedCall, longestStreak, sameAnswers } from '../messages/call-log.ts'
import type { Call, ExecutingState, RunState } from '../state/state.ts'
import { keyOfCall, summaryOf } from '../state/turn-calls.ts'

/**
 * The equal answers in a row that a call has got since anything happened that may change them; none for a call that may
 * itself change something, or whose tool is meant to be asked again.
 */
export function repeatedAnswers({ callLog, standstill }: RunState, call: Call): readonly LoggedCall[] {
  const { name, inputDigest } = call
  if (!isComparable(call) || inputDigest === undefined) return []
  return sameAnswers(callLog, { name, inputDigest }, standstill.from)
}

function isComparable({ effect, repeats }: Call): boolean {
  return effect === 'read' && repeats !== 'allowed'
}

/** The calls that stand in a reply behind one that may still change what they answer: they run, whatever was said before. */
export function callsBehindChange({ calls }: ExecutingState): ReadonlySet<Call> {
  const place = calls.findIndex(mayChangeAnswers)
  return new Set(place === -1 ? [] : calls.slice(place + 1))
}

function mayChangeAnswers({ effect, status }: Call): boolean {
  return effect !== 'read' && status !== 'settled' && status !== 'to_settle'
}

/**
 * The calls that wait for an equal one before them in the same reply: so many equal answers that theirs would be a
 * repeat may be on their way. Once those are there, it is known whether it is one.
 */
export function callsAwaitingEqual(state: ExecutingState): ReadonlySet<Call> {
  return mayAwaitEqual(state) ? waitingCalls(state) : new Set()
}

/** Whether some call may have so many equal calls before it, answers in a row included. */
function mayAwaitEqual({ calls, callLog, limits }: ExecutingState): boolean {
  const { mostEqual } = summaryOf(calls)
  const max = limits.maxRepeats ?? defaultLimits.maxRepeats
  return mostEqual > 1 && mostEqual - 1 + longestStreak(callLog) >= max
}

function waitingCalls(state: ExecutingState): ReadonlySet<Call> {
  const { calls, limits } = state
  const max = limits.maxRepeats ?? defaultLimits.maxRepeats
  const waiting = new Set<Call>()
  const open = new Map<string, number>()
  for (const call of calls) {
    const { status, attempts } = call
    // What stands behind a change is no repeat of what stands before it.
    if (mayChangeAnswers(call)) break
    if (status === 'settled' || !isComparable(call)) continue
    const key = keyOfCall(call) ?? ''
    const before = open.get(key) ?? 0
    open.set(key, before + 1)
    const mayWait = before > 0 && attempts === 0 && (status === 'ready' || status === 'to_ask')
    if (mayWait && before + repeatedAnswers(state, call).length >= max) waiting.add(call)
  }
  return waiting
}
