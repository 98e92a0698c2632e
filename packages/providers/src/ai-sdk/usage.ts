import type { Json, ModelSignal, Usage } from '@tallystick/core'
import { asJsonObject, type WirePart } from './wire.ts'

type Counted = Extract<WirePart, { readonly type: 'finish' }>['usage']

/**
 * The tokens of the call: none where the provider counted none. `raw` is the provider's own object, with what it did not
 * support of the request as `warnings` beside it, if it said so.
 */
export function usageSignals(
  { inputTokens, outputTokens, raw }: Counted,
  warnings: Json,
): readonly ModelSignal[] {
  const counts: { -readonly [field in keyof Usage]: number | undefined } = {
    inputTokens: inputTokens.total,
    outputTokens: outputTokens.total,
    cacheReadTokens: inputTokens.cacheRead,
    cacheWriteTokens: inputTokens.cacheWrite,
    reasoningTokens: outputTokens.reasoning,
  }
  const usage = Object.fromEntries(
    Object.entries(counts).filter(([, count]) => Number.isFinite(count)),
  ) as Usage
  const shown = { ...asJsonObject(raw), ...(warnings !== null && { warnings }) }
  const [counted, told] = [usage, shown].map((object) => Object.keys(object).length > 0)
  return counted || told ? [{ type: 'model_usage', usage, ...(told && { raw: shown }) }] : []
}
