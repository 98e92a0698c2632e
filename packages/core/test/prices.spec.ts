import * as fc from 'fast-check'
import '../../../scripts/testing/seed.ts'
import { describe, expect, it } from 'vitest'
import {
  ConfigurationError,
  createRuntime,
  defineAgent,
  memoryLedger,
  type Prices,
  type Usage,
} from '@tallystick/core'
import { eventSchemas } from '@tallystick/core/schemas'
import { computeCost, type Price } from '@tallystick/core/vocabulary'
import { manualClock, scriptedModel, waitUntilSettled, type ScriptedStep } from '@tallystick/testkit'
import { computeSearchesCost } from '../src/events/usage.ts'
import { checkedRun, ofType, recorded } from './stage.ts'

const done: ScriptedStep = { text: 'Done.', usage: { inputTokens: 1_000_000, outputTokens: 10 } }

/** Prices as plain JavaScript may give them. */
function runtimeOf(prices: unknown, steps: readonly ScriptedStep[] = [done]) {
  const model = scriptedModel(steps, 'acme-1')
  const agent = defineAgent({ name: 'a', instructions: '', model })
  const ledger = memoryLedger()
  const clock = manualClock()
  const runtime = createRuntime({ ledger, agents: [agent], prices: prices as Prices, host: { clock } })
  return { runtime, agent, ledger, clock, model }
}

const longInput = (...bounds: readonly number[]): object => ({
  ...{ inputUsd: 3, outputUsd: 15 },
  longInput: bounds.map((aboveInputTokens) => ({ aboveInputTokens, inputUsd: 6, outputUsd: 22 })),
})

const wrong: readonly (readonly [unknown, RegExp])[] = [
  [
    3,
    /the price of acme-1 is 3; expected|m?.?acme-1 is 3; expected US dollars for a million tokens, as in \{ inputUsd: 3, outputUsd: 15 \}/,
  ],
  [[3, 15], /is a list; expected US dollars for a million tokens/],
  [null, /is null; expected US dollars/],
  [{ input: 3, output: 15 }, /Did you mean .*inputUsd\?/],
  [{ prompt: 3, completion: 15 }, /Did you mean .*inputUsd\?/],
  [{ inputUsd: 3 }, /outputUsd is missing/],
  [{ inputUsd: '3', outputUsd: 15 }, /inputUsd is a text, '3'; expected a number of US dollars/],
  [{ inputUsd: Number.NaN, outputUsd: 15 }, /inputUsd is NaN/],
  [{ inputUsd: -1, outputUsd: 15 }, /inputUsd is -1/],
  [{ inputUsd: Infinity, outputUsd: 15 }, /inputUsd is Infinity/],
  [{ inputUsd: 3, outputUsd: 1e300 }, /outputUsd is 1e\+300/],
  [{ inputUsd: 1_000_000.5, outputUsd: 1 }, /expected a number of US dollars from 0 to 1000000/],
  [
    { inputUsd: 3, outputUsd: 15, longInput: { aboveInputTokens: 1 } },
    /longInput is an object; expected a list/,
  ],
  [
    longInput(200_000, 100_000),
    /longInput has the bounds 200000, 100000; give the rates with aboveInputTokens ascending/,
  ],
  [longInput(1, 3, 3), /longInput has the bounds 1, 3, 3/],
  [longInput(-1), /aboveInputTokens is -1/],
]

describe('prices of another shape', () => {
  it.each(wrong)('are refused before anything is spent, with the nearest right one: %j', (price, words) => {
    expect(() => runtimeOf({ 'acme-1': price })).toThrow(ConfigurationError)
    expect(() => runtimeOf({ 'acme-1': price })).toThrow(words)
    // A function is asked as soon as there is an agent.
    expect(() => runtimeOf(() => price)).toThrow(words)
    expect(() => runtimeOf(() => price)).toThrow(/the price of acme-1/)
  })

  it.each<[string, unknown, RegExp]>([
    ['a list', [{ model: 'acme-1', inputUsd: 3, outputUsd: 15 }], /prices is a list/],
    [
      'a promise of a price',
      () => Promise.resolve({}),
      /the price of acme-1 is a promise \(await it first\)/,
    ],
    ['a function of a function', () => () => undefined, /the price of acme-1 is a function/],
    [
      'a function that fails',
      () => {
        throw new TypeError('no such model')
      },
      /The function prices of createRuntime failed for acme-1: no such model/,
    ],
  ])('are refused: %s', (_, prices, words) => {
    expect(() => runtimeOf(prices)).toThrow(words)
  })

  it('are refused in the words of the function where it throws an error of this library', () => {
    const own = new ConfigurationError('The list of prices is of another year.')
    const prices = (): never => {
      throw own
    }
    expect(() => runtimeOf(prices)).toThrow(own)
    const other = new TypeError('no such model')
    const failing = (): never => {
      throw other
    }
    expect(() => runtimeOf(failing)).toThrow(expect.objectContaining({ cause: other }))
  })

  it('come to light when the function is asked for the models of another agent', () => {
    const prices = ({ modelId }: { modelId: string }): unknown =>
      modelId === 'acme-1' ? { inputUsd: 1, outputUsd: 1 } : { inputUsd: 'much' }
    const { runtime, model } = runtimeOf(prices)
    const later = defineAgent({ name: 'b', instructions: '', model: scriptedModel([done], 'acme-2') })
    expect(() => runtime.run(later, 'Go.')).toThrow(/the price of acme-2\.inputUsd is a text/)
    const falling = defineAgent({
      name: 'c',
      instructions: '',
      model,
      fallbacks: [scriptedModel([], 'acme-3')],
    })
    expect(() => runtime.run(falling, 'Go.')).toThrow(/the price of acme-3\.inputUsd is a text/)
  })
})

describe('what a run costs', () => {
  it('may be as much as a million US dollars for a million tokens', () => {
    expect(() => runtimeOf({ 'acme-1': { inputUsd: 1_000_000, outputUsd: 1_000_000 } })).not.toThrow()
  })

  it('may rise with the length of the input, at bounds that ascend', () => {
    expect(() => runtimeOf({ 'acme-1': longInput() })).not.toThrow()
    expect(() => runtimeOf({ 'acme-1': longInput(0, 200_000, 1_000_000) })).not.toThrow()
  })

  it('is known where the function knows the price, and unknown where it does not', async () => {
    const known = runtimeOf(() => ({ inputUsd: 3, outputUsd: 15 }))
    const result = await waitUntilSettled(known.clock, known.runtime.run(known.agent, 'Go.').result)
    expect(result.costUsd).toBeCloseTo(3.00015)
    const unknown = runtimeOf(() => undefined)
    expect(
      await waitUntilSettled(unknown.clock, unknown.runtime.run(unknown.agent, 'Go.').result),
    ).not.toHaveProperty('cost')
  })

  const rates = { inputUsd: 1, outputUsd: 10 }
  const longer = {
    ...rates,
    longInput: [100, 200].map((above) => ({ aboveInputTokens: above, inputUsd: above, outputUsd: 0 })),
  }
  it.each<readonly [string, Price, Usage, number]>([
    ['nothing where nothing was used', rates, {}, 0],
    ['input and output, each at its rate', rates, { inputTokens: 3, outputTokens: 2 }, 23],
    [
      'cached input as other input, where it has no rate',
      rates,
      { inputTokens: 9, cacheReadTokens: 2, cacheWriteTokens: 3 },
      9,
    ],
    [
      'cached input at its rates',
      { ...rates, cacheReadUsd: 100, cacheWriteUsd: 1_000 },
      { inputTokens: 9, cacheReadTokens: 2, cacheWriteTokens: 3 },
      3_204,
    ],
    [
      'input that is cached for long at its own rate',
      { ...rates, cacheWriteUsd: 100, cacheWriteLongUsd: 1_000 },
      { inputTokens: 3, cacheWriteTokens: 3, cacheWriteLongTokens: 1 },
      1_200,
    ],
    [
      'no more for long than was cached at all',
      { ...rates, cacheWriteLongUsd: 100 },
      { cacheWriteTokens: 1, cacheWriteLongTokens: 5 },
      100,
    ],
    [
      'input that is cached for long as other cached input, where it has no rate',
      { ...rates, cacheWriteUsd: 100 },
      { cacheWriteTokens: 1, cacheWriteLongTokens: 1 },
      100,
    ],
    ['nothing back where more was cached than read', rates, { inputTokens: 1, cacheReadTokens: 3 }, 3],
    ['an input up to the first bound at the usual rates', longer, { inputTokens: 100, outputTokens: 1 }, 110],
    [
      'a longer input at the rates beyond that bound, output as well',
      longer,
      { inputTokens: 101, outputTokens: 1 },
      10_100,
    ],
    ['an input up to the second bound as well', longer, { inputTokens: 200 }, 20_000],
    ['the longest input at the rates beyond the last bound', longer, { inputTokens: 201 }, 40_200],
  ])('is %s', (_what, price, usage, millionths) => {
    expect(computeCost(price, usage) * 1_000_000).toBeCloseTo(millionths, 6)
  })

  it('is more with each search, by tokens apart', () => {
    expect(computeCost({ ...rates, webSearchUsd: 0.5 }, { webSearches: 3 })).toBe(1.5)
    expect(computeCost(rates, { webSearches: 3 })).toBe(0)
    expect(computeSearchesCost({ ...rates, webSearchUsd: 0.5 }, 3)).toBe(1.5)
    expect(computeSearchesCost({ ...rates, webSearchUsd: 0.5 }, 'unbounded')).toBe(Infinity)
    expect([3, 'unbounded' as const].map((max) => computeSearchesCost(rates, max))).toEqual([0, 0])
    expect(computeSearchesCost({ ...rates, webSearchUsd: 0 }, 'unbounded')).toBe(0)
  })

  it('is known of a fork that other code of the agent continues, too', async () => {
    const { runtime, agent, clock, model } = runtimeOf({ 'acme-1': { inputUsd: 3, outputUsd: 15 } }, [
      done,
      done,
    ])
    const { runId } = await waitUntilSettled(clock, runtime.run(agent, 'Go.').result)
    const other = defineAgent({ name: 'a', instructions: 'Be short.', model })
    const fork = runtime.fork(runId, { atSeq: 2, agent: other })
    expect((await waitUntilSettled(clock, fork.result)).costUsd).toBeCloseTo(3.00015)
    expect(model.requests.map(({ instructions }) => instructions)).toEqual(['', 'Be short.'])
  })

  it.each<Usage>([{ inputTokens: -5 }, { cacheReadTokens: 1e300 }, { outputTokens: 0.5 }])(
    'is unknown after a number that is not a count, and the rest of the reply is recorded: %j',
    async (usage) => {
      const { runtime, agent, ledger, clock } = runtimeOf({ 'acme-1': { inputUsd: 3, outputUsd: 15 } }, [
        { text: 'Done.', usage },
      ])
      const run = runtime.run(agent, 'Go.')
      expect(await waitUntilSettled(clock, run.result)).toMatchObject({
        reason: 'answered',
        text: 'Done.',
        usage: {},
      })
      const events = checkedRun(await recorded(ledger, run.id))
      expect(ofType(events, 'usage_updated')).toMatchObject([{ usage: {}, refused: Object.keys(usage) }])
    },
  )

  it('is not told by a report that is not JSON, which is a fault of the adapter', async () => {
    const { runtime, agent, clock } = runtimeOf({ 'acme-1': { inputUsd: 3, outputUsd: 15 } }, [
      { text: 'Done.', usage: { outputTokens: Number.NaN } },
    ])
    const result = await waitUntilSettled(clock, runtime.run(agent, 'Go.').result)
    expect(result).toMatchObject({ reason: 'model_failed', usage: {} })
  })

  it('is a finite number that is not negative, whatever the price and the usage that are let in', () => {
    const rate = fc.double({ min: 0, max: 1_000_000, noNaN: true })
    const tokens = fc.double({ min: 0, max: Number.MAX_SAFE_INTEGER, noNaN: true })
    const rates = { inputUsd: rate, outputUsd: rate }
    const price: fc.Arbitrary<Price> = fc.record(
      {
        ...rates,
        ...{ cacheReadUsd: rate, cacheWriteUsd: rate, cacheWriteLongUsd: rate, webSearchUsd: rate },
        longInput: fc.array(fc.record({ ...rates, aboveInputTokens: tokens }), { maxLength: 2 }),
      },
      { requiredKeys: ['inputUsd', 'outputUsd'] },
    )
    const usage: fc.Arbitrary<Usage> = fc.record(
      {
        ...{ inputTokens: tokens, outputTokens: tokens, cacheReadTokens: tokens, cacheWriteTokens: tokens },
        ...{ cacheWriteLongTokens: tokens, webSearches: tokens },
      },
      { requiredKeys: [] },
    )
    fc.assert(
      fc.property(price, usage, (given, billed) => {
        const cost = computeCost(given, billed)
        expect(Number.isFinite(cost) && cost >= 0).toBe(true)
        const event = { attempt: 1, usage: billed, costUsd: cost, price: given }
        expect(eventSchemas.usage_updated.safeParse(event).success).toBe(true)
      }),
    )
  })

  it.each([{ costUsd: -1 }, { usage: { inputTokens: -1 } }, { price: { inputUsd: -1, outputUsd: 1 } }])(
    'comes into no ledger from outside as %j',
    (odd) => {
      const event = { attempt: 1, usage: {}, ...odd }
      expect(eventSchemas.usage_updated.safeParse(event).success).toBe(false)
    },
  )
})
