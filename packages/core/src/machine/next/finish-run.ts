import type { Fact, FinishReason } from '../../vocabulary/events/event.ts'
import { omitUndefined } from '../../vocabulary/values/omit-undefined.ts'
import type { Action } from '../state/action.ts'
import { undeliveredInputs } from './next-inputs.ts'
import type { Reply, RunState } from '../state/state.ts'

/** Why the run ends with this reply; `undefined` when it continues. */
export function finishReasonOf({ message, failure }: Reply, hadCalls: boolean): FinishReason | undefined {
  switch (message.stopReason) {
    case 'refused':
    case 'content_filtered':
      return 'refused'
    case 'max_tokens':
      return 'output_truncated'
    case 'context_exceeded':
      return 'context_overflow'
    case 'cancelled':
      return 'cancelled'
    case 'failed':
      return failureReason(failure?.class)
    case 'paused':
    case 'compacted':
      return undefined
    case 'end':
    case 'tool_use':
    case 'other':
      return hadCalls ? undefined : 'answered'
  }
}

/** The reason that a failure of the model gives. */
export function failureReason(failureClass: string | undefined): FinishReason {
  if (failureClass === 'context_overflow' || failureClass === 'empty_reply') return failureClass
  return failureClass === 'content_filtered' || failureClass === 'refused' ? 'refused' : 'model_failed'
}

/** Returns the end of a run that was cancelled or that a guardrail blocks; else `undefined`. */
export function endIfStopped(state: RunState): ReturnType<typeof finish> | undefined {
  if (state.cancel) return finish(state, 'cancelled')
  if (state.blocked === undefined) return undefined
  const { guardrail, detail } = state.blocked
  return finish(state, 'guardrail', detail === undefined ? guardrail : `${guardrail}: ${detail}`)
}

/** Ends the run, and settles all input that it ends without. */
export function finish(
  state: RunState,
  reason: FinishReason,
  detail?: string,
): Extract<Action, { readonly facts: readonly Fact[] }> {
  const { turns, toolCalls, usage, costUsd } = state.totals
  const end: Fact = {
    type: 'run_finished',
    turn: state.turn,
    reason,
    turns,
    toolCalls,
    usage,
    ...omitUndefined({ costUsd, detail }),
  }
  return { kind: 'finish', facts: [...undeliveredInputs(state, reason), end] }
}
