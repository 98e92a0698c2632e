import { ConfigurationError } from '../../vocabulary/errors.ts'
import { definitionInRun } from '../../vocabulary/agent/definition-in-run.ts'
import { omitUndefined } from '../../vocabulary/values/omit-undefined.ts'
import type { Action } from '../state/action.ts'
import { finish } from './finish-run.ts'
import { messagesOf } from '../messages/history.ts'
import { requireShown } from '../messages/pairing.ts'
import type { Rules } from '../state/rules.ts'
import type { InjectingState } from '../state/state.ts'

/** Hands the conversation over: to another agent, or back to the caller that started the run. */
export function nextHandoff(
  state: InjectingState,
  { to, back, tool }: NonNullable<InjectingState['handoff']>,
  rules: Rules,
): Action {
  if (back) return finish(state, 'handed_back', to)
  const taking = rules.handOff?.(tool, messagesOf(state.history))
  if (taking === undefined) {
    throw new ConfigurationError(
      `Run ${state.runId} hands over to the agent ${to}, which is no longer among the handoffs of ${state.agent}. ` +
        'Put it back, then continue the run with resume.',
    )
  }
  const { messages } = taking
  const definition = definitionInRun(taking.definition, state.givenModel)
  requireShown(messages, `The filter of the handoff to ${to}`)
  return {
    kind: 'hand_off',
    facts: [
      {
        type: 'agent_handed_off',
        turn: state.turn,
        from: state.agent,
        to,
        definition,
        ...omitUndefined({ messages }),
      },
    ],
  }
}
