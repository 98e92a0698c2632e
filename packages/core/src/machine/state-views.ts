import type { ModelRef } from '../vocabulary/content.ts'
import type { Price } from '../vocabulary/price.ts'
import type { Call, RunState } from './state.ts'

/** The model that the run uses now. */
export function currentModel(state: RunState): ModelRef {
  return state.model ?? state.definition.model
}

/** What the model in use costs, where that is known. */
export function currentPrice(state: RunState): Price | undefined {
  const { definition } = state
  const { modelId, provider } = state.phase === 'streaming' ? state.attempt.model : currentModel(state)
  const fallback = (definition.fallbacks ?? []).find(
    (other) => other.model.modelId === modelId && other.model.provider === provider,
  )
  return fallback ? fallback.price : definition.price
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
