import type { JsonObject, ModelSettings } from '@tallystick/core/vocabulary'
import type { AnthropicWarning } from '../options/options.ts'

/** What decides which settings this request may hold. */
export interface SamplingContext {
  /** Whether the API version that is spoken takes any. */
  readonly takesSampling?: boolean | undefined
  /** Whether the model thinks in this request: then the vendor takes no choice of words. */
  readonly thinks: boolean
  readonly warn: (warning: AnthropicWarning) => void
}

/** The fields of a request that say how the model is to write. */
export function samplingFields(
  { temperature, topP, stop = [], seed }: ModelSettings,
  { takesSampling, thinks, warn }: SamplingContext,
): JsonObject {
  const leftOut = (what: string, why: string): void =>
    warn({ what: 'model_settings', message: `${what} was left out: ${why}.` })
  const chosen: JsonObject = {
    ...(temperature !== undefined && { temperature }),
    ...(topP !== undefined && { top_p: topP }),
  }
  const unfit = takesSampling
    ? thinks
      ? 'the model thinks'
      : undefined
    : 'the API version that is spoken refuses it'
  if (unfit) for (const field of Object.keys(chosen)) leftOut(field, unfit)
  if (seed !== undefined) leftOut('seed', 'the vendor knows none')
  const texts = stop.filter((text) => text.trim() !== '')
  if (texts.length < stop.length) leftOut('A text of blanks that ends a reply', 'the vendor refuses it')
  return { ...(unfit === undefined && chosen), ...(texts.length > 0 && { stop_sequences: texts }) }
}
