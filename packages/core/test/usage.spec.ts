import { createRuntime, defineAgent, memoryLedger, type Usage } from '@tallystick/core'
import { computeCost } from '@tallystick/core/vocabulary'
import {
  manualClock,
  scriptedModel,
  waitUntilSettled,
  testTool,
  type ScriptedStep,
} from '@tallystick/testkit'
import { describe, expect, it } from 'vitest'
import { findBound, forEveryLimit, limitNames, limitReasons } from '../src/events/limits.ts'
import * as billing from '../src/events/usage.ts'
import { addUsage, isTokenCount, takeLargerUsage, pickTokenCounts } from '../src/events/usage.ts'
import { ofType, recorded, stage } from './stage.ts'

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

const price = { inputUsd: 5, outputUsd: 25, cacheReadUsd: 0.5, cacheWriteUsd: 6.25, cacheWriteLongUsd: 10 }

describe('what a call is billed for', () => {
  it.each<[string, Usage, number]>([
    ['all of what was written to the cache for long', { cacheWriteLongTokens: 1_000_000 }, 10],
    ['a part of it', { cacheWriteLongTokens: 400_000 }, 0.4 * 10 + 0.6 * 6.25],
    ['none of it', {}, 6.25],
  ])('counts %s at its own price', (_, more, usd) => {
    const usage = { inputTokens: 1_000_000, cacheWriteTokens: 1_000_000, ...more }
    expect(computeCost(price, usage)).toBeCloseTo(usd, 9)
  })

  it('counts tokens that are kept long as other writes, where no other price is known', () => {
    const { cacheWriteLongUsd: _, ...known } = price
    const usage = { inputTokens: 1_000_000, cacheWriteTokens: 1_000_000, cacheWriteLongTokens: 1_000_000 }
    expect(computeCost(known, usage)).toBeCloseTo(6.25, 9)
  })

  it('counts searches on the web, and is recorded with its price', async () => {
    const usage = { inputTokens: 1_000, outputTokens: 100, webSearches: 3 }
    const model = scriptedModel([{ text: 'Done.', usage }])
    const agent = defineAgent({ name: 'agent', instructions: 'Act.', model })
    const [ledger, clock] = [memoryLedger(), manualClock()]
    const prices = { 'scripted-1': { ...price, webSearchUsd: 0.01 } }
    const run = createRuntime({ ledger, agents: [agent], prices, host: { clock } }).run(agent, 'Go.')
    const { costUsd, usage: billed } = await waitUntilSettled(clock, run.result)
    expect(costUsd).toBeCloseTo(0.005 + 0.0025 + 0.03, 9)
    expect(billed).toEqual(usage)
    expect(ofType(await recorded(ledger, run.id), 'usage_updated')[0]).toMatchObject({
      price: { webSearchUsd: 0.01 },
      usage: { webSearches: 3 },
    })
  })
})

describe('how long the conversation is', () => {
  const look = testTool({ name: 'look' })
  const compaction = { maxContextTokens: 10_000, keepMessages: 1, summarize: () => 'Summed up.' }
  const usage = { inputTokens: 60_000, outputTokens: 900 }
  const steps = (contextTokens?: number): ScriptedStep[] => [
    ...[1, 2].map((at) => ({
      ...{ toolCalls: [{ name: 'look', input: { at } }], usage },
      ...(contextTokens && { contextTokens }),
    })),
    { text: 'Done.', usage },
  ]

  it('is what the provider says beside what it bills: several prompts of one call do not compact a short history', async () => {
    const {
      start,
      waitUntilSettled: rest,
      eventsOf,
    } = stage({ steps: steps(612), tools: [look], compaction })
    const run = start()
    expect(await rest(run.result)).toMatchObject({ usage: { inputTokens: 180_000, outputTokens: 2_700 } })
    const events = await eventsOf(run)
    expect(ofType(events, 'usage_updated')[0]).toMatchObject({ usage, contextTokens: 612 })
    expect(ofType(events, 'context_compacted')).toEqual([])
  })

  it('is what was billed where the provider says nothing else', async () => {
    const { start, waitUntilSettled: rest, eventsOf } = stage({ steps: steps(), tools: [look], compaction })
    const run = start()
    await rest(run.result)
    expect(ofType(await eventsOf(run), 'context_compacted')).not.toEqual([])
  })
})
