import { type Usage } from '@tallystick/core'
import { usageFields } from '@tallystick/core/vocabulary'

/** The sums that totals keep, under the names of their columns; whole numbers, so that their order does not matter. */
export const amountColumns = [
  'unpriced',
  'cost_nano',
  'input_tokens',
  'output_tokens',
  'cache_read_tokens',
  'cache_write_tokens',
  'cache_write_long_tokens',
  'reasoning_tokens',
  'web_searches',
  'input_told',
  'output_told',
  'cache_read_told',
  'cache_write_told',
  'cache_write_long_told',
  'reasoning_told',
  'web_searches_told',
] as const
type AmountColumn = (typeof amountColumns)[number]

/**
 * What was used and what it cost, of one thing or of many. `cost_nano` is billionths of a US dollar; `unpriced` how many
 * had no price, and `…_told` of how many the provider said so many tokens of a kind.
 */
export type Amounts = { readonly [Column in AmountColumn]: number }

const usdNano = 1e9

const columnsOf = {
  inputTokens: ['input_tokens', 'input_told'],
  outputTokens: ['output_tokens', 'output_told'],
  cacheReadTokens: ['cache_read_tokens', 'cache_read_told'],
  cacheWriteTokens: ['cache_write_tokens', 'cache_write_told'],
  cacheWriteLongTokens: ['cache_write_long_tokens', 'cache_write_long_told'],
  reasoningTokens: ['reasoning_tokens', 'reasoning_told'],
  webSearches: ['web_searches', 'web_searches_told'],
} as const satisfies { readonly [Field in keyof Usage]-?: readonly [AmountColumn, AmountColumn] }

/** Nothing at all. */
export const noAmounts: Amounts = Object.fromEntries(
  amountColumns.map((column) => [column, 0]),
) as unknown as Amounts

/** The amounts of one thing. */
export function amountsOf(usage: Usage, costUsd: number | undefined): Amounts {
  const amounts: { -readonly [Column in AmountColumn]: number } = { ...noAmounts }
  if (costUsd === undefined) amounts.unpriced = 1
  else amounts.cost_nano = Math.round(costUsd * usdNano)
  for (const field of usageFields) {
    const count = usage[field]
    if (count === undefined) continue
    const [tokens, reported] = columnsOf[field]
    amounts[tokens] = count
    amounts[reported] = 1
  }
  return amounts
}

/** Amounts with others on top of them, or with those taken off (`sign` -1). */
export function addAmounts(to: Amounts, more: Amounts, sign: 1 | -1 = 1): Amounts {
  const sum: { -readonly [Column in AmountColumn]: number } = { ...noAmounts }
  for (const column of amountColumns) sum[column] = to[column] + sign * more[column]
  return sum
}

/** Returns the tokens of amounts. An unreported kind is unknown, not 0. */
export function usageOf(amounts: Amounts): Usage {
  const usage: { -readonly [Field in keyof Usage]: number } = {}
  for (const field of usageFields) {
    const [tokens, reported] = columnsOf[field]
    if (amounts[reported] > 0) usage[field] = amounts[tokens]
  }
  return usage
}

/** US dollars of what had a price among `count` things; `undefined` where none had. */
export function costUsdOf(amounts: Amounts, count: number): number | undefined {
  return amounts.unpriced < count ? amounts.cost_nano / usdNano : undefined
}
