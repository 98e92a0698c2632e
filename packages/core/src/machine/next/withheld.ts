import type { FactOf } from '../../vocabulary/events/event.ts'
import { answeredCalls, guardrailsOn } from '../state/due-checks.ts'
import { textContent } from '../messages/outcome-text.ts'
import type { CollectingState, ExecutingState } from '../state/state.ts'

const outOfTime = 'the time of the run was up before it had answered'

/** Withholds an answer that a guardrail did not pass in time. Empty if no guardrail had to check it. */
export function withheldAnswer(state: CollectingState): readonly FactOf<'guardrail_tripped'>[] {
  const [guardrail] = guardrailsOn(state, 'output')
  if (guardrail === undefined || state.reply.guarded) return []
  return [{ ...withheldFact(state.turn, guardrail), on: 'output' }]
}

/** Withholds the results of tools that a guardrail did not pass in time. */
export function withheldResults(
  state: ExecutingState,
): readonly (FactOf<'guardrail_tripped'> | FactOf<'guardrails_checked'>)[] {
  const guardrails = guardrailsOn(state, 'tool_output')
  const [guardrail = ''] = guardrails
  const on = 'tool_output' as const
  return [
    ...answeredCalls(state).map(({ toolCallId }) => ({
      ...withheldFact(state.turn, guardrail),
      on,
      toolCallId,
    })),
    { type: 'guardrails_checked', turn: state.turn, on, guardrails },
  ]
}

function withheldFact(turn: number, guardrail: string): Omit<FactOf<'guardrail_tripped'>, 'on'> {
  const replacement = textContent('denied', `This was withheld: ${outOfTime}, the guardrail ${guardrail}.`)
  return { type: 'guardrail_tripped', turn, guardrail, action: 'replace', detail: outOfTime, replacement }
}
