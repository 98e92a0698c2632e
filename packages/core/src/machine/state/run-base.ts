import type { Message } from '../../vocabulary/model/content.ts'
import { appendMessage, historyTokens, type History } from '../messages/history.ts'
import { offeredTools } from '../messages/sourced-tools.ts'
import type { RunBase, RunState } from './state.ts'
import { definitionTokens, messageTokens } from '../messages/token-estimate.ts'

type KeysOf<State> = State extends unknown ? keyof State : never

/** Every field that belongs to a phase. The compiler refuses a phase with a field that is missing here. */
const phaseFields: { readonly [Field in Exclude<KeysOf<RunState>, keyof RunBase>]: true } = {
  phase: true,
  attempt: true,
  failures: true,
  turnStartedAt: true,
  reply: true,
  calls: true,
  resultsChecked: true,
  handoff: true,
  reason: true,
  detail: true,
}

/** The state without what belongs to its phase. */
export function baseOf(state: RunState): RunBase {
  // Copied field by field: an object that fields were deleted from is slow wherever it is read or copied again.
  const base: Record<string, unknown> = {}
  for (const field in state) {
    if (!Object.hasOwn(phaseFields, field)) base[field] = state[field as keyof RunState]
  }
  return base as unknown as RunBase
}

/** The state with one more message in its history. */
export function withMessage<State extends RunState>(state: State, message: Message): State {
  const contextTokens = state.contextTokens + Math.ceil(messageTokens(message) * state.estimateFactor)
  return { ...state, contextTokens, history: appendMessage(state.history, message) }
}

/** The state with another history, and with what its next request then has. */
export function withHistory<State extends RunState>(state: State, history: History): State {
  const shown = { ...state.definition, tools: offeredTools(state, undefined) }
  const tokens = definitionTokens(shown) + historyTokens(history)
  return { ...state, contextTokens: Math.ceil(tokens * state.estimateFactor), reportedTokens: 0, history }
}
