import type { Message } from '../../vocabulary/model/content.ts'
import { addUsage, type Usage } from '../../vocabulary/billing/usage.ts'
import { appendMessage, historyOf } from '../messages/history.ts'
import type { RunBase, RunState, Totals } from './state.ts'
import { messageTokens, requestTokens } from '../messages/token-estimate.ts'

const phaseFields = [
  'attempt',
  'failures',
  'turnStartedAt',
  'reply',
  'calls',
  'resultsChecked',
  'handoff',
  'reason',
  'detail',
]

/** The state without what belongs to its phase. */
export function baseOf(state: RunState): RunBase {
  const { phase: _phase, ...facts } = state
  for (const own of phaseFields) {
    delete (facts as Record<string, unknown>)[own]
  }
  return facts
}

/** The state with one more message in its history. */
export function withMessage<State extends RunState>(state: State, message: Message): State {
  const contextTokens = state.contextTokens + Math.ceil(messageTokens(message) * state.estimateFactor)
  return { ...state, contextTokens, history: appendMessage(state.history, message) }
}

/** The state with another history, and with what its next request then has. */
export function withHistory<State extends RunState>(state: State, messages: readonly Message[]): State {
  return {
    ...state,
    contextTokens: Math.ceil(requestTokens(state.definition, messages) * state.estimateFactor),
    reportedTokens: 0,
    history: historyOf(messages),
  }
}

/** What the run has used, with what others used for it: a child run, a model that sums up. */
export function withSpent(totals: Totals, usage: Usage, costUsd?: number): Totals {
  const spent = {
    ...totals,
    usage: addUsage(totals.usage, usage),
    settledUsage: addUsage(totals.settledUsage, usage),
  }
  if (costUsd === undefined) return spent
  const plus = (sum: number | undefined): number => (sum ?? 0) + costUsd
  return { ...spent, costUsd: plus(totals.costUsd), settledCostUsd: plus(totals.settledCostUsd) }
}
