import type { Fact, FinishReason } from '../../vocabulary/events/event.ts'
import type { Action } from '../state/action.ts'
import { nextModelCall } from './next-model-call.ts'
import { onLimitOf } from '../limits/deadlines.ts'
import type { RunState } from '../state/state.ts'

/**
 * Lets input that was given while the run was at work enter the history: everything that steers at once, what was
 * queued one by one, each after the answer before it.
 */
export function deliverInput(state: RunState, delivery: 'steer' | 'queue', now: number): Action | undefined {
  const waiting = state.pendingInputs.filter((input) => input.delivery === delivery)
  const due = delivery === 'steer' ? waiting : waiting.slice(0, 1)
  if (due.length === 0 || endsUnshown(state, now)) return undefined
  const facts = due.map(({ inputId }): Fact => ({
    type: 'input_settled',
    turn: state.turn,
    receipt: inputId,
    delivered: true,
  }))
  return { kind: 'deliver_input', facts }
}

/** Whether a limit ends the run in front of the model call that would show the input: it is not delivered then. */
function endsUnshown(state: RunState, now: number): boolean {
  return onLimitOf(state.limits) === 'stop' && 'limit' in nextModelCall(state, now, {})
}

/** The facts that settle input that the run ends without: each says why. */
export function undeliveredInputs(state: RunState, reason: FinishReason): readonly Fact[] {
  const why = `The run ended before it (${reason}).`
  return state.pendingInputs.map(({ inputId }): Fact => ({
    type: 'input_settled',
    turn: state.turn,
    receipt: inputId,
    delivered: false,
    why,
  }))
}
