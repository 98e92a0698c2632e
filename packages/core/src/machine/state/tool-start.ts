import type { FactOf } from '../../vocabulary/events/event.ts'
import { idempotencyKeyOf, type RunId } from '../../vocabulary/values/ids.ts'
import { omitUndefined } from '../../vocabulary/values/omit-undefined.ts'
import { childRunIdOf } from '../../vocabulary/values/child-run-id.ts'
import { digestOf } from '../../vocabulary/values/digest.ts'
import type { Call } from './state.ts'

/**
 * The fact that lets a call's effect begin. The key names the run and the call's place in it, and no attempt: every
 * attempt has the same, and a fork, being another run, has another even for a call that it shares.
 */
export function startOf(
  runId: RunId,
  call: Call,
  here: { readonly turn: number; readonly toolCallId: Call['toolCallId'] },
): FactOf<'tool_started'> {
  const { toolCallId, name, attempts, effect = 'write', inputDigest = digestOf(call.input) } = call
  const attempt = attempts + 1
  const idempotencyKey = idempotencyKeyOf(runId, toolCallId)
  const start = { type: 'tool_started' as const, ...here, name, attempt, idempotencyKey, effect, inputDigest }
  if (call.child === undefined && call.grant === undefined) return start
  const child = call.child === undefined ? undefined : childRunIdOf(runId, toolCallId)
  return { ...start, ...omitUndefined({ child, grant: call.grant }) }
}
