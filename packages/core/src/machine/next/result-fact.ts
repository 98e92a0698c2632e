import type { Outcome } from '../../vocabulary/model/content.ts'
import type { FactOf } from '../../vocabulary/events/event.ts'
import { wholeGrant } from '../limits/child-grant.ts'
import { textContent } from '../messages/outcome-text.ts'
import type { Call, RunState } from '../state/state.ts'

/** The result that the runtime itself gives a call: its own words for the outcome where no `text` says more. */
export function resultFact(
  state: RunState,
  call: Call,
  outcome: Outcome,
  text?: string,
): FactOf<'tool_result'> {
  const { toolCallId, name, grant } = call
  return {
    type: 'tool_result',
    turn: state.turn,
    toolCallId,
    name,
    outcome,
    content: textContent(outcome, text),
    ...(grant && state.phase === 'executing' && { child: wholeGrant(state, call) }),
  }
}
