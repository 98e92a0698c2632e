import type { JsonObject, ModelSignal, Usage } from '@tallystick/core'
import { numberAt, objectAt } from '../shared/json-reading.ts'

/** How a wire names its totals. Both count cached tokens into the prompt, and reasoning into the output. */
interface UsageNames {
  readonly input: string
  readonly inputDetails: string
  readonly output: string
  readonly outputDetails: string
}

const names: { readonly [wire in 'responses' | 'chat']: UsageNames } = {
  responses: {
    ...{ input: 'input_tokens', inputDetails: 'input_tokens_details' },
    ...{ output: 'output_tokens', outputDetails: 'output_tokens_details' },
  },
  chat: {
    ...{ input: 'prompt_tokens', inputDetails: 'prompt_tokens_details' },
    ...{ output: 'completion_tokens', outputDetails: 'completion_tokens_details' },
  },
}

/** Tokens as we count them; what the service does not say stays unknown. */
export function usageSignal(raw: JsonObject, wire: 'responses' | 'chat'): ModelSignal {
  const { input, inputDetails, output, outputDetails } = names[wire]
  const inputTokens = numberAt(raw, input)
  const outputTokens = numberAt(raw, output)
  // DeepSeek counts the cache beside the details too; the details are younger.
  const cacheReadTokens =
    numberAt(objectAt(raw, inputDetails), 'cached_tokens') ?? numberAt(raw, 'prompt_cache_hit_tokens')
  const cacheWriteTokens = numberAt(objectAt(raw, inputDetails), 'cache_write_tokens')
  const reasoningTokens = numberAt(objectAt(raw, outputDetails), 'reasoning_tokens')
  const usage: Usage = {
    ...(inputTokens !== undefined && { inputTokens }),
    ...(outputTokens !== undefined && { outputTokens }),
    ...(cacheReadTokens !== undefined && { cacheReadTokens }),
    ...(cacheWriteTokens !== undefined && { cacheWriteTokens }),
    ...(reasoningTokens !== undefined && { reasoningTokens }),
  }
  return { type: 'model_usage', usage, raw }
}
