import type { Usage } from './usage.ts'

/** What a model costs, in US dollars for a million tokens. */
export interface Price {
  readonly inputUsd: number
  readonly outputUsd: number
  /** For input tokens read from the provider's cache; as other input where not given. */
  readonly cacheReadUsd?: number
  /** For input tokens written to the provider's cache; as other input where not given. */
  readonly cacheWriteUsd?: number
  /** Where the numbers come from, with the version of the data. */
  readonly source?: string
}

/** What tokens cost, in US dollars. Numbers that the provider did not give count as none. */
export function costOf(price: Price, usage: Usage): number {
  const { inputTokens = 0, outputTokens = 0, cacheReadTokens = 0, cacheWriteTokens = 0 } = usage
  const plainTokens = Math.max(0, inputTokens - cacheReadTokens - cacheWriteTokens)
  const { inputUsd, outputUsd, cacheReadUsd = inputUsd, cacheWriteUsd = inputUsd } = price
  const perMillion =
    plainTokens * inputUsd +
    cacheReadTokens * cacheReadUsd +
    cacheWriteTokens * cacheWriteUsd +
    outputTokens * outputUsd
  return perMillion / 1_000_000
}
