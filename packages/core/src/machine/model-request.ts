import type { ModelRequest } from '../vocabulary/model-request.ts'
import type { ToolChoice } from '../vocabulary/tool-definition.ts'
import { digestOf } from './digest.ts'
import { historyDigest, messagesOf } from './history.ts'
import type { RunState, StreamingState } from './state.ts'

/** What a single call adds to the definition and the history. */
export interface CallOptions {
  readonly toolChoice: ToolChoice
  readonly maxOutputTokens?: number
}

/** The request of the attempt that is under way. */
export function modelRequest(state: StreamingState): ModelRequest {
  const { instructions, tools, parallelToolCalls } = state.definition
  const { toolChoice, maxOutputTokens } = state.attempt
  return {
    ...{ instructions, messages: messagesOf(state.history), tools, toolChoice, parallelToolCalls },
    ...(maxOutputTokens !== undefined && { maxOutputTokens }),
  }
}

/**
 * Law 7: what names a request. It takes in the model, the definition by its digest, the options of the call, and the
 * running digest of the history, so that it costs what the turn adds.
 */
export function requestDigest(state: RunState, { toolChoice, maxOutputTokens }: CallOptions): string {
  const { model, digest } = state.definition
  return digestOf({
    model: { ...model },
    definition: digest,
    toolChoice: { ...toolChoice },
    history: historyDigest(state.history),
    ...(maxOutputTokens !== undefined && { maxOutputTokens }),
  })
}
