import type { FactOf } from '../vocabulary/event.ts'
import { idempotencyKeyOf, type RunId } from '../vocabulary/ids.ts'
import { present } from '../vocabulary/present.ts'
import { childRunIdOf } from './child-run.ts'
import { digestOf } from './digest.ts'
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
    ...{ type: 'tool_started', ...here, name: call.name, attempt: call.attempts + 1 },
    ...{ idempotencyKey: idempotencyKeyOf(runId, call.toolCallId), effect: call.effect ?? 'write' },
    inputDigest: digestOf(call.input),
    ...(call.child !== undefined && { child: childRunIdOf(runId, call.toolCallId) }),
    ...present({ grant: call.grant }),
  }
}
