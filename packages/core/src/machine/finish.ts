import type { Fact, FinishReason } from '../events/event.ts'
import type { Action } from './rules.ts'
import { nextModelCall } from './next-model-call.ts'
import { getOnLimit } from './budget.ts'
import type { Reply, RunState } from './state.ts'
import { omitUndefined } from '../values/json.ts'

/**
 * Lets input that was given while the run was at work enter the history: everything that steers at once, what was
 * queued one by one, each after the answer before it.
 */
export function deliverInput(state: RunState, delivery: 'steer' | 'queue', now: number): Action | undefined {
  const waiting = state.pendingInputs.filter((input) => input.delivery === delivery)
  const due = delivery === 'steer' ? waiting : waiting.slice(0, 1)
  if (due.length === 0) return undefined
  // Not where a limit ends the run in front of the model call that would show it.
  if (getOnLimit(state.limits) === 'stop' && 'limit' in nextModelCall(state, now, {})) return undefined
  const facts = due.map(({ inputId }): Fact => ({
    type: 'input_settled',
    turn: state.turn,
    receipt: inputId,
    delivered: true,
  }))
  return { kind: 'deliver_input', facts }
}

/** Why the run ends with this reply; `undefined` when it continues. */
export function toFinishReason({ message, failure }: Reply, hadCalls: boolean): FinishReason | undefined {
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
      return toFailureReason(failure?.class)
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
export function toFailureReason(failureClass: string | undefined): FinishReason {
  if (failureClass === 'context_overflow' || failureClass === 'empty_reply') return failureClass
  return failureClass === 'content_filtered' || failureClass === 'refused' ? 'refused' : 'model_failed'
}

/** Returns the end of a run that was cancelled or that a guardrail blocks; else `undefined`. */
export function endIfStopped(state: RunState): ReturnType<typeof finishRun> | undefined {
  if (state.cancel) return finishRun(state, 'cancelled')
  if (state.blocked === undefined) return undefined
  const { guardrail, detail } = state.blocked
  return finishRun(state, 'guardrail', detail === undefined ? guardrail : `${guardrail}: ${detail}`)
}

/** Ends the run, and settles all input that it ends without. */
export function finishRun(
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
  const why = `The run ended before it (${reason}).`
  const undelivered = state.pendingInputs.map(({ inputId }): Fact => ({
    type: 'input_settled',
    turn: state.turn,
    receipt: inputId,
    delivered: false,
    why,
  }))
  return { kind: 'finish', facts: [...undelivered, end] }
}
