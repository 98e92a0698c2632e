import { defaultLimits } from '../../vocabulary/limits/limits.ts'
import { longestStreak, sameAnswers } from '../messages/call-log.ts'
import type { Call, ExecutingState } from '../state/state.ts'
import { keyOfCall, summaryOf } from '../state/turn-calls.ts'

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

function waitingCalls({ calls, callLog, limits }: ExecutingState): ReadonlySet<Call> {
  const max = limits.maxRepeats ?? defaultLimits.maxRepeats
  const waiting = new Set<Call>()
  const open = new Map<string, number>()
  for (const call of calls) {
    const { name, inputDigest, status, attempts } = call
    if (status === 'settled' || inputDigest === undefined) continue
    const key = keyOfCall(call) ?? ''
    const before = open.get(key) ?? 0
    open.set(key, before + 1)
    const mayWait = before > 0 && attempts === 0 && (status === 'ready' || status === 'to_ask')
    if (mayWait && before + sameAnswers(callLog, { name, inputDigest }).length >= max) waiting.add(call)
  }
  return waiting
}
