import type { OrUndefined } from '../values/omit-undefined.ts'
import type { Usage } from './usage.ts'

/** The highest price: a million US dollars, for a million tokens or for one search, so that no cost is infinite. */
export const maxPriceUsd = 1_000_000

/** US dollars for a million tokens. */
export interface Rates {
  readonly inputUsd: number
  readonly outputUsd: number
  /** For input tokens read from the provider's cache; as other input where not given. */
  readonly cacheReadUsd?: number
  /** For input tokens written to the provider's cache; as other input where not given. */
  readonly cacheWriteUsd?: number
  /** For those of them that are kept longer than usual (`cacheWriteLongTokens`); as other writes where not given. */
  readonly cacheWriteLongUsd?: number
}

/** Rates that hold for the whole of a call whose input is longer than a bound. */
export interface LongInputRates extends Rates {
  readonly aboveInputTokens: number
}

/** The price of a model. */
export interface Price extends Rates {
  /** Higher rates for long inputs, with ascending bounds. */
  readonly longInput?: readonly LongInputRates[]
  /** US dollars for one web search that the vendor runs; nothing where not given. */
  readonly webSearchUsd?: number
  /** Where the numbers come from, with the version of the data. */
  readonly source?: string
}

/** A price as a caller gives it: what is `undefined` is not given. */
export type GivenPrice = OrUndefined<Omit<Price, 'longInput'>> & {
  readonly longInput?: readonly OrUndefined<LongInputRates>[] | undefined
}

/** The most web searches that a provider runs within one model call; `unbounded` where no setting bounds them. */
export type MaxWebSearches = number | 'unbounded'

/** Returns the most that the web searches of one call can cost, in US dollars; `Infinity` where they are not bounded. */
export function searchesCost({ webSearchUsd = 0 }: Price, max: MaxWebSearches): number {
  if (webSearchUsd === 0) return 0
  return max === 'unbounded' ? Infinity : max * webSearchUsd
}

/**
 * Returns the cost of one call, in US dollars: finite, and never negative, for a price and a usage from events. Numbers
 * that the provider did not report count as 0.
 */
export function costOf(price: Price, usage: Usage): number {
  const { inputTokens = 0, outputTokens = 0, cacheReadTokens = 0, cacheWriteTokens = 0 } = usage
  const { cacheWriteLongTokens = 0, webSearches = 0 } = usage
  const plainTokens = Math.max(0, inputTokens - cacheReadTokens - cacheWriteTokens)
  const longTokens = Math.min(cacheWriteLongTokens, cacheWriteTokens)
  const { inputUsd, outputUsd, ...cache } = ratesFor(price, inputTokens)
  const { cacheReadUsd = inputUsd, cacheWriteUsd = inputUsd } = cache
  const { cacheWriteLongUsd = cacheWriteUsd } = cache
  const perMillion =
    plainTokens * inputUsd +
    cacheReadTokens * cacheReadUsd +
    (cacheWriteTokens - longTokens) * cacheWriteUsd +
    longTokens * cacheWriteLongUsd +
    outputTokens * outputUsd
  return perMillion / 1_000_000 + webSearches * (price.webSearchUsd ?? 0)
}

/** The rates that hold for a call with so many input tokens. */
export function ratesFor(price: Price, inputTokens: number): Rates {
  return price.longInput?.findLast(({ aboveInputTokens }) => inputTokens > aboveInputTokens) ?? price
}
