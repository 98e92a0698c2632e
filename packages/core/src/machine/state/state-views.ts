import type { ModelRef } from '../../vocabulary/model/content.ts'
import type { FallbackModel } from '../../vocabulary/agent/agent-definition.ts'
import type { Price, MaxWebSearches } from '../../vocabulary/billing/price.ts'
import type { ToolChoice } from '../../vocabulary/model/tool-definition.ts'
import type { Call, RunState } from './state.ts'
import { placeOfCall } from './turn-calls.ts'

/** The model that the run uses now. */
export function currentModel(state: RunState): ModelRef {
  return state.model ?? state.definition.model
}

/** What one of the agent's models costs; `undefined` where that is unknown, or the agent has no such model. */
export function priceOf(state: RunState, model: ModelRef): Price | undefined {
  return modelIn(state, model)?.price
}

/** How many web searches one call may hold: none where its provider runs none, or the call allows no tool. */
export function maxWebSearchesOf(
  state: RunState,
  { model, toolChoice }: { readonly model: ModelRef; readonly toolChoice: ToolChoice },
): MaxWebSearches {
  return toolChoice.type === 'none' ? 0 : (modelIn(state, model)?.maxWebSearches ?? 0)
}

function modelIn({ definition }: RunState, { modelId, provider }: ModelRef): FallbackModel | undefined {
  const models: readonly FallbackModel[] = [definition, ...(definition.fallbacks ?? [])]
  return models.find(({ model }) => model.modelId === modelId && model.provider === provider)
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
export function callsAwaitingChild(state: RunState): readonly Call[] {
  return openTurnCalls(state).filter(({ status, child }) => status === 'deferred' && child !== undefined)
}

/** Finds a call of the current turn. */
export function findCall(state: RunState, toolCallId: string): Call | undefined {
  const calls = openTurnCalls(state)
  return calls[placeOfCall(calls, toolCallId)]
}

/** Whether a call can still report: a child run that waits, or that no process drives any more, ends once it is stopped. */
export function isAtWork({ status, child }: Call): boolean {
  return status === 'started' || (child !== undefined && (status === 'deferred' || status === 'in_doubt'))
}
