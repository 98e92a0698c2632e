import type { JsonObject, ModelSignal } from '@tallystick/core/vocabulary'
import { countAt, objectAt } from '../../shared/json/json-reading.ts'
import { coherentUsage } from '../../shared/reply/coherent-usage.ts'

/** How a wire names its totals. OpenAI counts cached tokens into the prompt, and reasoning into the output; not all do. */
interface UsageNames {
  readonly input: string
  readonly inputDetails: string
  readonly output: string
  readonly outputDetails: string
}

const names: { readonly [wire in 'responses' | 'chat']: UsageNames } = {
  responses: {
    input: 'input_tokens',
    inputDetails: 'input_tokens_details',
    output: 'output_tokens',
    outputDetails: 'output_tokens_details',
  },
  chat: {
    input: 'prompt_tokens',
    inputDetails: 'prompt_tokens_details',
    output: 'completion_tokens',
    outputDetails: 'completion_tokens_details',
  },
}

/** Tokens as we count them; what the service does not say stays unknown. */
export function usageSignal(raw: JsonObject, wire: 'responses' | 'chat', webSearches?: number): ModelSignal {
  const { input, inputDetails, output, outputDetails } = names[wire]
  // DeepSeek counts the cache beside the details too; the details are younger.
  const cacheReadTokens =
    countAt(objectAt(raw, inputDetails), 'cached_tokens') ?? countAt(raw, 'prompt_cache_hit_tokens')
  const details = objectAt(raw, inputDetails)
  const cacheWriteLongTokens = countAt(objectAt(details, 'cache_write_tokens_details'), 'ttl_12h_tokens')
  const usage = coherentUsage(
    {
      inputTokens: countAt(raw, input),
      outputTokens: countAt(raw, output),
      cacheReadTokens,
      cacheWriteTokens: countAt(details, 'cache_write_tokens'),
      cacheWriteLongTokens,
      reasoningTokens: countAt(objectAt(raw, outputDetails), 'reasoning_tokens'),
      webSearches,
    },
    countAt(raw, 'total_tokens'),
  )
  return { type: 'model_usage', usage, raw }
}
