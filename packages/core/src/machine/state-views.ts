import type { ModelRef } from '../vocabulary/content.ts'
import type { Price } from '../vocabulary/price.ts'
import type { Call, RunState } from './state.ts'

/** The model that the run uses now. */
export function currentModel(state: RunState): ModelRef {
  return state.model ?? state.definition.model
}

/** What one of the agent's models costs; `undefined` where that is unknown, or the agent has no such model. */
export function priceOf({ definition }: RunState, { modelId, provider }: ModelRef): Price | undefined {
  const models = [definition, ...(definition.fallbacks ?? [])]
  return models.find(({ model }) => model.modelId === modelId && model.provider === provider)?.price
}

/** The calls of the turn that are not yet part of the history. */
export function openTurnCalls(state: RunState): readonly Call[] {
  switch (state.phase) {
    case 'collecting':
    case 'executing':
      return state.calls
    case 'streaming':
      return state.attempt.calls
    case 'idle':
    case 'injecting':
    case 'done':
      return []
  }
}

/** The calls that wait for a child run. */
export function parkedChildCalls(state: RunState): readonly Call[] {
  return openTurnCalls(state).filter(({ status, child }) => status === 'deferred' && child !== undefined)
}

/** Finds a call of the current turn. */
export function findCall(state: RunState, toolCallId: string): Call | undefined {
  return openTurnCalls(state).find((call) => call.toolCallId === toolCallId)
}

/** Whether a call can still report: a child run that waits, or that no process drives any more, ends once it is stopped. */
export function isAtWork({ status, child }: Call): boolean {
  return status === 'started' || (child !== undefined && (status === 'deferred' || status === 'in_doubt'))
}
