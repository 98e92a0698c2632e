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
  return {
    type: 'tool_started',
    ...here,
    name: call.name,
    attempt: call.attempts + 1,
    idempotencyKey: idempotencyKeyOf(runId, call.toolCallId),
    effect: call.effect ?? 'write',
    inputDigest: call.inputDigest ?? digestOf(call.input),
    ...(call.child !== undefined && { child: childRunIdOf(runId, call.toolCallId) }),
    ...omitUndefined({ grant: call.grant }),
  }
}
