import { isJsonObject } from '@tallystick/core/kit'
import type { Usage } from '@tallystick/core'
import type { Json, ModelSignal } from '@tallystick/core/vocabulary'
import { usageSignal as anthropicUsage } from '../../anthropic/reply/usage.ts'
import { coherentUsage } from '../../shared/reply/coherent-usage.ts'
import { asJsonObject, type WirePart } from '../client/wire.ts'

type Counted = Extract<WirePart, { readonly type: 'finish' }>['usage']

/**
 * The tokens of the call: none where the provider counted none. `raw` is the provider's own object, with what it did not
 * support of the request as `warnings` beside it, if it said so.
 */
export function usageSignals(
  { inputTokens, outputTokens, raw }: Counted,
  warnings: Json,
): readonly ModelSignal[] {
  const usage = coherentUsage({
    inputTokens: inputTokens.total,
    outputTokens: outputTokens.total,
    cacheReadTokens: inputTokens.cacheRead,
    cacheWriteTokens: inputTokens.cacheWrite,
    reasoningTokens: outputTokens.reasoning,
    cacheWriteLongTokens: undefined,
    webSearches: undefined,
  })
  const billed = billedByAnthropic(raw, usage)
  const shown = { ...asJsonObject(raw), ...(warnings !== null && { warnings }) }
  const [counted, isReported] = [usage, shown].map((object) => Object.keys(object).length > 0)
  return counted || isReported
    ? [{ type: 'model_usage', usage, ...billed, ...(isReported && { raw: shown }) }]
    : []
}

/**
 * What Anthropic bills, by its own object where the AI SDK hands it on: the AI SDK's counts leave out what an advisor took,
 * what the cache of a compaction held, and searches.
 */
function billedByAnthropic(
  raw: unknown,
  counted: Usage,
): { readonly usage: Usage; readonly contextTokens?: number } | undefined {
  if (!isJsonObject(raw) || !('cache_creation_input_tokens' in raw)) return undefined
  const { usage, contextTokens } = anthropicUsage(raw)
  return { usage: { ...counted, ...usage }, ...(contextTokens !== undefined && { contextTokens }) }
}
