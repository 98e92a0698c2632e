import type { Message } from '../vocabulary/content.ts'
import { appendMessage } from './history.ts'
import type { RunFacts, RunState } from './state.ts'
import { messageTokens } from './token-estimate.ts'

/** The state without what belongs to its phase. */
export function factsOf(state: RunState): RunFacts {
  const { phase: _phase, ...facts } = state
  for (const own of ['attempt', 'failures', 'turnStartedAt', 'reply', 'calls', 'reason', 'detail']) {
    delete (facts as Record<string, unknown>)[own]
  }
  return facts
}

/** The state with one more message in its history. */
export function withMessage<State extends RunState>(state: State, message: Message): State {
  const contextTokens = state.contextTokens + messageTokens(message)
  return { ...state, contextTokens, history: appendMessage(state.history, message) }
}
