import { defaultLimits } from '../../vocabulary/limits/limits.ts'
import { sameAnswers } from '../messages/call-log.ts'
import type { Call, ExecutingState } from '../state/state.ts'

/**
 * The calls that wait for an equal one before them in the same reply: so many equal answers that theirs would be a
 * repeat may be on their way. Once those are there, it is known whether it is one.
 */
export function callsAwaitingEqual({ calls, callLog, limits }: ExecutingState): ReadonlySet<Call> {
  const max = limits.maxRepeats ?? defaultLimits.maxRepeats
  const open = new Map<string, number>()
  const waiting = new Set<Call>()
  for (const call of calls) {
    const { name, inputDigest, status, attempts } = call
    if (status === 'settled' || inputDigest === undefined) continue
    const key = `${inputDigest} ${name}`
    const before = open.get(key) ?? 0
    open.set(key, before + 1)
    const mayWait = before > 0 && attempts === 0 && (status === 'ready' || status === 'to_ask')
    if (mayWait && before + sameAnswers(callLog, { name, inputDigest }).length >= max) waiting.add(call)
  }
  return waiting
}
