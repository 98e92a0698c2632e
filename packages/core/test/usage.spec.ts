import { describe, expect, it } from 'vitest'
import * as billing from '../src/events/usage.ts'
import { addUsage, isTokenCount, takeLargerUsage, pickTokenCounts } from '../src/events/usage.ts'
import { findBound, forEveryLimit, limitNames, limitReasons } from '../src/events/limits.ts'

const whole = {
  ...{ inputTokens: 1, outputTokens: 2, cacheReadTokens: 3, cacheWriteTokens: 4 },
  ...{ cacheWriteLongTokens: 5, reasoningTokens: 6, webSearches: 7 },
}

describe('a usage', () => {
  it('is the sum of two, field by field; what neither knows stays unknown', () => {
    expect(addUsage(whole, whole)).toEqual({
      ...{ inputTokens: 2, outputTokens: 4, cacheReadTokens: 6, cacheWriteTokens: 8 },
      ...{ cacheWriteLongTokens: 10, reasoningTokens: 12, webSearches: 14 },
    })
    expect(addUsage({ inputTokens: 1 }, { outputTokens: 2 })).toEqual({ inputTokens: 1, outputTokens: 2 })
    expect(addUsage({ inputTokens: 0 }, {})).toEqual({ inputTokens: 0 })
    expect(addUsage({}, {})).toEqual({})
  })

  it('is the larger report of two, field by field', () => {
    expect(takeLargerUsage(whole, { inputTokens: 9, outputTokens: 1 })).toEqual({ ...whole, inputTokens: 9 })
    expect(takeLargerUsage({ inputTokens: 1 }, { outputTokens: 2 })).toEqual({
      inputTokens: 1,
      outputTokens: 2,
    })
    expect(takeLargerUsage({ outputTokens: 0 }, {})).toEqual({ outputTokens: 0 })
    expect(takeLargerUsage({}, { webSearches: 0 })).toEqual({ webSearches: 0 })
    expect(takeLargerUsage({}, {})).toEqual({})
  })

  it('has whole numbers of tokens, from none to a billion, and nothing else is believed', () => {
    expect([0, 1, 1_000_000_000].filter(isTokenCount)).toEqual([0, 1, 1_000_000_000])
    expect([-1, 0.5, 1_000_000_001, Number.NaN, '1', null, undefined].filter(isTokenCount)).toEqual([])
    expect(pickTokenCounts({ ...whole, inputTokens: -1, webSearches: 0.5 })).toEqual({
      ...{
        outputTokens: 2,
        cacheReadTokens: 3,
        cacheWriteTokens: 4,
        cacheWriteLongTokens: 5,
        reasoningTokens: 6,
      },
    })
  })
})

describe('on record', () => {
  const taken = (schema: (value: unknown) => object | undefined, values: readonly unknown[]) =>
    values.filter((value) => schema(value) === undefined)
  const wrong = [-1, Infinity, Number.NaN, '1', null, undefined]

  it('a rate is from nothing to a million US dollars, and an amount that was spent has no upper bound', () => {
    const price = (inputUsd: unknown) => ({ inputUsd, outputUsd: 0 })
    const sound = [0, 0.5, 1_000_000].map(price)
    expect(taken(billing.price, [...sound, ...[...wrong, 1_000_001].map(price)])).toEqual(sound)
    expect(taken(billing.money, [0, 0.5, 1e300, ...wrong])).toEqual([0, 0.5, 1e300])
  })

  it('web searches are counted, or not bounded', () => {
    const sound = [0, 5, Number.MAX_SAFE_INTEGER, 'unbounded']
    expect(taken(billing.maxWebSearches, [...sound, 'many', 2 ** 53, ...wrong])).toEqual(sound)
  })
})

describe('a limit', () => {
  it('is bounded by the field of a grant that counts the same', () => {
    const grant = {
      ...{ turns: 1, toolCalls: 2, tokens: 3, inputTokens: 4, outputTokens: 5, costUsd: 6, durationMs: 7 },
    }
    const bounds = limitNames.map((name) => [name, findBound(grant, name)])
    expect(Object.fromEntries(bounds)).toEqual({
      ...{ maxTurns: 1, maxToolCalls: 2, maxToolCallsPerTurn: undefined, maxTotalTokens: 3 },
      ...{ maxTotalInputTokens: 4, maxTotalOutputTokens: 5, maxCostUsd: 6, maxDurationMs: 7 },
      maxRepeats: undefined,
    })
    expect(limitNames.map((name) => findBound({}, name))).toEqual(limitNames.map(() => undefined))
  })

  it('ends a run with its own reason', () => {
    expect(limitReasons).toEqual({
      ...{ maxTurns: 'turn_limit', maxToolCalls: 'tool_call_limit', maxToolCallsPerTurn: 'tool_call_limit' },
      ...{ maxTotalTokens: 'token_limit', maxTotalInputTokens: 'token_limit' },
      ...{ maxTotalOutputTokens: 'token_limit', maxCostUsd: 'cost_limit', maxDurationMs: 'time_limit' },
      maxRepeats: 'repeat_limit',
    })
    expect(forEveryLimit(1)).toEqual(Object.fromEntries(limitNames.map((name) => [name, 1])))
  })
})
