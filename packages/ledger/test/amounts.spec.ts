import { describe, expect, it } from 'vitest'
import {
  addAmounts,
  amountColumns,
  toAmounts,
  toCostUsd,
  fromKey,
  noAmounts,
  toKey,
  toUsage,
} from '../src/projection/run-accumulator.ts'

const usage = {
  ...{ inputTokens: 2, outputTokens: 3, cacheReadTokens: 5, cacheWriteTokens: 7 },
  ...{ cacheWriteLongTokens: 11, reasoningTokens: 13, webSearches: 17 },
}
const columns = {
  ...{ unpriced: 0, cost_nano: 1_500_000, input_tokens: 2, output_tokens: 3, cache_read_tokens: 5 },
  ...{ cache_write_tokens: 7, cache_write_long_tokens: 11, reasoning_tokens: 13, web_searches: 17 },
  ...{ input_told: 1, output_told: 1, cache_read_told: 1, cache_write_told: 1 },
  ...{ cache_write_long_told: 1, reasoning_told: 1, web_searches_told: 1 },
}

describe('amounts', () => {
  it('hold each kind of token, of how many it was told, and the cost in billionths of a dollar', () => {
    expect(toAmounts(usage, 0.0015)).toStrictEqual(columns)
    expect(Object.keys(columns).toSorted()).toEqual(amountColumns.toSorted())
    expect(toAmounts({}, undefined)).toStrictEqual({ ...noAmounts, unpriced: 1 })
    expect(toAmounts({ outputTokens: 0 }, 0)).toStrictEqual({ ...noAmounts, output_told: 1 })
  })

  it('are added and taken off, column by column', () => {
    const amounts = toAmounts(usage, 0.0015)
    const twice = Object.fromEntries(Object.entries(columns).map(([name, value]) => [name, 2 * value]))
    expect(addAmounts(amounts, amounts)).toStrictEqual(twice)
    expect(addAmounts(addAmounts(amounts, amounts), amounts, -1)).toStrictEqual(columns)
    expect(addAmounts(noAmounts, noAmounts)).toStrictEqual(noAmounts)
    expect(Object.values(noAmounts)).toEqual(amountColumns.map(() => 0))
  })

  it('tell the tokens of the kinds that were told, and the cost where one had a price', () => {
    expect(toUsage(toAmounts(usage, 0.0015))).toStrictEqual(usage)
    expect(toUsage(addAmounts(toAmounts(usage, 1), toAmounts({}, 1)))).toStrictEqual(usage)
    expect(toUsage(toAmounts({ inputTokens: 0 }, 1))).toStrictEqual({ inputTokens: 0 })
    expect(toUsage(noAmounts)).toStrictEqual({})
    expect(toCostUsd(toAmounts({}, 0.0015), 1)).toBe(0.0015)
    expect(toCostUsd(addAmounts(toAmounts({}, 0.0015), toAmounts({}, undefined)), 2)).toBe(0.0015)
    expect(toCostUsd(toAmounts({}, undefined), 1)).toBeUndefined()
    expect(toCostUsd(noAmounts, 0)).toBeUndefined()
  })
})

describe('a name as the key of a row', () => {
  it.each([
    ['assistant', 'assistant'],
    ['', ''],
    ['say "hi"', 'say "hi"'],
    ['"quoted"', '"\\"quoted\\""'],
    ['nul \0', '"nul \\u0000"'],
    ['half \ud83d', '"half \\ud83d"'],
  ])('%j is %j, which stands for it again', (name, key) => {
    expect(toKey(name)).toBe(key)
    expect(fromKey(key)).toBe(name)
  })
})
