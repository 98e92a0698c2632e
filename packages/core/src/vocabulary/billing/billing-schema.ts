import * as z from 'zod'
import { maxPriceUsd, type LongInputRates, type Price, type MaxWebSearches } from './price.ts'
import { objectOf, optional, text } from '../values/schema.ts'
import type { Usage } from './usage.ts'

/** US dollars that were spent. */
export const money: z.ZodType<number> = z.number().nonnegative()

const rate = z.number().nonnegative().max(maxPriceUsd)
/** Tokens, or other things that are billed one by one. */
export const counted: z.ZodType<number> = z.number().nonnegative().max(Number.MAX_SAFE_INTEGER)

const rates = {
  inputUsd: rate,
  outputUsd: rate,
  cacheReadUsd: optional(rate),
  cacheWriteUsd: optional(rate),
  cacheWriteLongUsd: optional(rate),
}
/** What a model costs. */
export const price: z.ZodType<Price> = objectOf<Price>({
  ...rates,
  longInput: optional(z.array(objectOf<LongInputRates>({ ...rates, aboveInputTokens: counted }))),
  webSearchUsd: optional(rate),
  source: optional(text),
})

/** Web searches within one call. */
export const maxWebSearches: z.ZodType<MaxWebSearches> = z.union([counted, z.literal('unbounded')])

/** What is billed. */
export const usage: z.ZodType<Usage> = usageOf(counted)
/** What a provider reports: which of its numbers can be counts is judged where they are counted. */
export const reportedUsage: z.ZodType<Usage> = usageOf(z.number())

function usageOf(number: z.ZodType<number>): z.ZodType<Usage> {
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
