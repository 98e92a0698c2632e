import type { OrUndefined } from '../values/json.ts'
import {
  amount,
  numberFrom,
  anyOf,
  exactly,
  listOf,
  objectOf,
  maybe,
  type Schema,
  text,
} from '../values/schema.ts'

/**
 * The billed usage of one model call, or of several. `inputTokens` counts every prompt token, cached ones included;
 * `cacheReadTokens` and `cacheWriteTokens` are parts of it, `reasoningTokens` is a part of `outputTokens`. An absent
 * field was not reported, which is not zero. If a vendor reads several prompts for one call, all of them are counted,
 * though only the last shows how long the conversation is.
 */
export interface Usage {
  readonly inputTokens?: number
  readonly outputTokens?: number
  readonly cacheReadTokens?: number
  readonly cacheWriteTokens?: number
  /** The part of `cacheWriteTokens` that the vendor keeps longer than usual, at a higher price: one hour at Anthropic. */
  readonly cacheWriteLongTokens?: number
  readonly reasoningTokens?: number
  /** Web searches that the vendor ran within the call, billed one by one. */
  readonly webSearches?: number
}

/** The fields of a usage. */
export const usageFields = [
  'inputTokens',
  'outputTokens',
  'cacheReadTokens',
  'cacheWriteTokens',
  'cacheWriteLongTokens',
  'reasoningTokens',
  'webSearches',
] as const
export type UsageField = (typeof usageFields)[number]

/** The most tokens that a report is believed: more than any model reads or writes in one call. */
const MAX_TOKENS_BELIEVED = 1_000_000_000

/** Returns whether a reported number can be a count of tokens. */
export function isTokenCount(amount: unknown): amount is number {
  return Number.isInteger(amount) && (amount as number) >= 0 && (amount as number) <= MAX_TOKENS_BELIEVED
}

/** The numbers of a report that are counts of tokens; the others are left out. */
export function pickTokenCounts(report: Usage): Usage {
  const counts: { -readonly [field in keyof Usage]: number } = {}
  for (const field of usageFields) {
    const amount = report[field]
    if (isTokenCount(amount)) counts[field] = amount
  }
  return counts
}

/** The sum of two usages; a field that neither knows stays unknown. */
export function addUsage(a: Usage, b: Usage): Usage {
  const sum: { -readonly [field in keyof Usage]: number } = {}
  for (const field of usageFields) {
    const [left, right] = [a[field], b[field]]
    if (left !== undefined || right !== undefined) sum[field] = (left ?? 0) + (right ?? 0)
  }
  return sum
}

/** Two reports of one call, each field by the larger: numbers are totals, so a smaller one takes nothing back. */
export function takeLargerUsage(a: Usage, b: Usage): Usage {
  const larger: { -readonly [field in keyof Usage]: number } = {}
  for (const field of usageFields) {
    const [left, right] = [a[field], b[field]]
    if (left !== undefined || right !== undefined) larger[field] = Math.max(left ?? 0, right ?? 0)
  }
  return larger
}

/** The highest price: a million US dollars, for a million tokens or for one search, so that no cost is infinite. */
export const maxPriceUsd = 1_000_000

/** US dollars for a million tokens. */
export interface Rates {
  readonly inputUsd: number
  readonly outputUsd: number
  /** For input tokens read from the provider's cache; default: as other input. */
  readonly cacheReadUsd?: number
  /** For input tokens written to the provider's cache; default: as other input. */
  readonly cacheWriteUsd?: number
  /** For those that are kept longer (`cacheWriteLongTokens`); default: as other writes. */
  readonly cacheWriteLongUsd?: number
}

/** Rates for all tokens of a call whose input is longer than a bound. */
export interface LongInputRates extends Rates {
  readonly aboveInputTokens: number
}

/** The price of a model. */
export interface Price extends Rates {
  /** Higher rates for long inputs, with ascending bounds. */
  readonly longInput?: readonly LongInputRates[]
  /** US dollars for one web search that the vendor runs; default: nothing. */
  readonly webSearchUsd?: number
  /** Where the numbers come from, with the version of the data. */
  readonly source?: string
}

/** A price as a caller gives it: what is `undefined` is not given. */
export type GivenPrice = OrUndefined<Omit<Price, 'longInput'>> & {
  readonly longInput?: readonly OrUndefined<LongInputRates>[] | undefined
}

/** The most web searches that a provider runs within one model call; `unbounded` if no setting bounds them. */
export type MaxWebSearches = number | 'unbounded'

/** Returns the most that the web searches of one call can cost, in US dollars; `Infinity` if they are not bounded. */
export function computeSearchesCost({ webSearchUsd = 0 }: Price, max: MaxWebSearches): number {
  if (webSearchUsd === 0) return 0
  return max === 'unbounded' ? Infinity : max * webSearchUsd
}

/**
 * Returns the cost of one call, in US dollars: finite, and never negative, for a price and a usage from events. Numbers
 * that the provider did not report count as 0.
 */
export function computeCost(price: Price, usage: Usage): number {
  const { inputTokens = 0, outputTokens = 0, cacheReadTokens = 0, cacheWriteTokens = 0 } = usage
  const { cacheWriteLongTokens = 0, webSearches = 0 } = usage
  const plainTokens = Math.max(0, inputTokens - cacheReadTokens - cacheWriteTokens)
  const longTokens = Math.min(cacheWriteLongTokens, cacheWriteTokens)
  const { inputUsd, outputUsd, ...cache } = findRates(price, inputTokens)
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
export function findRates(price: Price, inputTokens: number): Rates {
  return price.longInput?.findLast(({ aboveInputTokens }) => inputTokens > aboveInputTokens) ?? price
}

/** US dollars that were spent. */
export const money: Schema<number> = numberFrom(0)

const rate = numberFrom(0, { max: maxPriceUsd })
/** Tokens, or other things that are billed one by one. */
export const counted: Schema<number> = numberFrom(0, { max: Number.MAX_SAFE_INTEGER })

const rates = {
  inputUsd: rate,
  outputUsd: rate,
  cacheReadUsd: maybe(rate),
  cacheWriteUsd: maybe(rate),
  cacheWriteLongUsd: maybe(rate),
}
export const price: Schema<Price> = objectOf({
  ...rates,
  longInput: maybe(listOf(objectOf({ ...rates, aboveInputTokens: counted }))),
  webSearchUsd: maybe(rate),
  source: maybe(text),
})

/** Web searches within one call. */
export const maxWebSearches: Schema<MaxWebSearches> = anyOf(
  "a number of at least 0, or 'unbounded'",
  counted,
  exactly('unbounded'),
)

/** Billed amounts. */
export const usage: Schema<Usage> = usageSchema(counted)
/** The usage as a provider reports it: which of its numbers can be counts is judged where they are counted. */
export const reportedUsage: Schema<Usage> = usageSchema(amount)

function usageSchema(number: Schema<number>): Schema<Usage> {
  return objectOf({
    inputTokens: maybe(number),
    outputTokens: maybe(number),
    cacheReadTokens: maybe(number),
    cacheWriteTokens: maybe(number),
    cacheWriteLongTokens: maybe(number),
    reasoningTokens: maybe(number),
    webSearches: maybe(number),
  })
}
