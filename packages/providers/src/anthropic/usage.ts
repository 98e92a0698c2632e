import type { JsonObject, ModelSignal, Usage } from '@tallystick/core'
import { numberAt, objectAt } from '../shared/json-reading.ts'

/**
 * A later report over an earlier one. Reports are totals of the whole message, so every field that says something
 * replaces; adding them up would count the prompt twice.
 */
export function laterUsage(earlier: JsonObject, later: JsonObject): JsonObject {
  return { ...earlier, ...Object.fromEntries(Object.entries(later).filter(([, value]) => value != null)) }
}

/** Tokens as we count them: the wire's `input_tokens` leaves cache reads and writes out, `inputTokens` holds them. */
export function usageSignal(raw: JsonObject): ModelSignal {
  const uncached = numberAt(raw, 'input_tokens')
  const cacheWriteTokens = numberAt(raw, 'cache_creation_input_tokens')
  const cacheReadTokens = numberAt(raw, 'cache_read_input_tokens')
  const outputTokens = numberAt(raw, 'output_tokens')
  const reasoningTokens = numberAt(objectAt(raw, 'output_tokens_details'), 'thinking_tokens')
  const usage: Usage = {
    ...(uncached !== undefined && {
      inputTokens: uncached + (cacheWriteTokens ?? 0) + (cacheReadTokens ?? 0),
    }),
    ...(outputTokens !== undefined && { outputTokens }),
    ...(cacheReadTokens !== undefined && { cacheReadTokens }),
    ...(cacheWriteTokens !== undefined && { cacheWriteTokens }),
    ...(reasoningTokens !== undefined && { reasoningTokens }),
  }
  return { type: 'model_usage', usage, raw }
}
