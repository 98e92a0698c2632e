import {
  amount,
  amountWithin,
  anyOf,
  exactly,
  listOf,
  objectOf,
  optional,
  type Schema,
  text,
} from '../values/schema.ts'
import { maxPriceUsd, type LongInputRates, type Price, type MaxWebSearches } from './price.ts'
import type { Usage } from './usage.ts'

/** US dollars that were spent. */
export const money: Schema<number> = amountWithin(0)

const rate = amountWithin(0, maxPriceUsd)
/** Tokens, or other things that are billed one by one. */
export const counted: Schema<number> = amountWithin(0, Number.MAX_SAFE_INTEGER)

const rates = {
  inputUsd: rate,
  outputUsd: rate,
  cacheReadUsd: optional(rate),
  cacheWriteUsd: optional(rate),
  cacheWriteLongUsd: optional(rate),
}
/** What a model costs. */
export const price: Schema<Price> = objectOf<Price>({
  ...rates,
  longInput: optional(listOf(objectOf<LongInputRates>({ ...rates, aboveInputTokens: counted }))),
  webSearchUsd: optional(rate),
  source: optional(text),
})

/** Web searches within one call. */
export const maxWebSearches: Schema<MaxWebSearches> = anyOf<MaxWebSearches>(counted, exactly('unbounded'))

/** What is billed. */
export const usage: Schema<Usage> = usageOf(counted)
/** What a provider reports: which of its numbers can be counts is judged where they are counted. */
export const reportedUsage: Schema<Usage> = usageOf(amount)

function usageOf(number: Schema<number>): Schema<Usage> {
  return objectOf<Usage>({
    inputTokens: optional(number),
    outputTokens: optional(number),
    cacheReadTokens: optional(number),
    cacheWriteTokens: optional(number),
    cacheWriteLongTokens: optional(number),
    reasoningTokens: optional(number),
    webSearches: optional(number),
  })
}
