import type { Usage } from './usage.ts'

/** US dollars for a million tokens. */
export interface Rates {
  readonly inputUsd: number
  readonly outputUsd: number
  /** For input tokens read from the provider's cache; as other input where not given. */
  readonly cacheReadUsd?: number
  /** For input tokens written to the provider's cache; as other input where not given. */
  readonly cacheWriteUsd?: number
}

/** Rates that hold for the whole of a call whose input is longer than a bound. */
export interface LongInputRates extends Rates {
  readonly aboveInputTokens: number
}

/** What a model costs. */
export interface Price extends Rates {
  /** Dearer rates for long inputs, the bounds ascending. */
  readonly longInput?: readonly LongInputRates[]
  /** Where the numbers come from, with the version of the data. */
  readonly source?: string
}

/** What the tokens of one call cost, in US dollars. Numbers that the provider did not give count as none. */
export function costOf(price: Price, usage: Usage): number {
  const { inputTokens = 0, outputTokens = 0, cacheReadTokens = 0, cacheWriteTokens = 0 } = usage
  const plainTokens = Math.max(0, inputTokens - cacheReadTokens - cacheWriteTokens)
  const {
    inputUsd,
    outputUsd,
    cacheReadUsd = inputUsd,
    cacheWriteUsd = inputUsd,
  } = ratesFor(price, inputTokens)
  const perMillion =
    plainTokens * inputUsd +
    cacheReadTokens * cacheReadUsd +
    cacheWriteTokens * cacheWriteUsd +
    outputTokens * outputUsd
  return perMillion / 1_000_000
}

/** The rates that hold for a call with so many input tokens. */
export function ratesFor(price: Price, inputTokens: number): Rates {
  return price.longInput?.findLast(({ aboveInputTokens }) => inputTokens > aboveInputTokens) ?? price
}
