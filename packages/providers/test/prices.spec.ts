import { calcPrice } from '@pydantic/genai-prices'
import * as fc from 'fast-check'
import '../../../scripts/testing/seed.ts'
import { describe, expect, it } from 'vitest'
import { createRuntime, defineAgent, memoryLedger } from '@tallystick/core'
import { computeCost } from '@tallystick/core/vocabulary'
import { genaiPrices } from '@tallystick/providers/prices'
import { anthropic } from '@tallystick/providers/anthropic'

const models = [
  { provider: 'anthropic', modelId: 'claude-opus-4-8' },
  { provider: 'anthropic', modelId: 'claude-sonnet-4-5' },
  { provider: 'google', modelId: 'gemini-2.5-pro' },
  { provider: 'openai', modelId: 'gpt-5.2' },
]

describe('genaiPrices', () => {
  it('costs what the data say, cache and long inputs included', () => {
    const priceOf = genaiPrices()
    fc.assert(
      fc.property(
        fc.constantFrom(...models),
        fc.record({
          input: fc.integer({ min: 0, max: 600_000 }),
          output: fc.nat(50_000),
          cachedPart: fc.double({ min: 0, max: 1, noNaN: true }),
        }),
        ({ provider, modelId }, { input, output, cachedPart }) => {
          const price = priceOf({ provider, api: 'any', modelId })
          const cached = Math.floor(input * cachedPart)
          const expected = calcPrice(
            { input_tokens: input, output_tokens: output, cache_read_tokens: cached },
            modelId,
            { providerId: provider },
          )
          const usage = { inputTokens: input, outputTokens: output, cacheReadTokens: cached }
          expect(computeCost(price!, usage)).toBeCloseTo(expected!.total_price, 9)
        },
      ),
    )
  })

  it('costs what the data say for an hour in the cache, and for searches', () => {
    const price = genaiPrices()({ provider: 'anthropic', api: 'any', modelId: 'claude-opus-4-8' })!
    const usage = { inputTokens: 1e6, cacheWriteTokens: 1e6, cacheWriteLongTokens: 4e5, webSearches: 3 }
    const expected = calcPrice(
      {
        ...{ input_tokens: 1e6, output_tokens: 0, cache_write_tokens: 1e6 },
        ...{ cache_write_1h_tokens: 4e5, web_searches: 3 },
      },
      'claude-opus-4-8',
      { providerId: 'anthropic' },
    )
    expect(expected!.total_price).toBeCloseTo(0.4 * 10 + 0.6 * 6.25 + 0.03, 9)
    expect(computeCost(price, usage)).toBeCloseTo(expected!.total_price, 9)
  })

  it('knows no price for a model that the data do not know', () => {
    expect(
      genaiPrices()({ provider: 'anthropic', api: 'messages', modelId: 'nobody-made-this' }),
    ).toBeUndefined()
  })

  it('takes the data’s name for a provider of another name', () => {
    const model = { provider: 'my-gateway', api: 'messages', modelId: 'claude-opus-4-8' }
    expect(genaiPrices({ providers: { 'my-gateway': 'anthropic' } })(model)).toMatchObject({ inputUsd: 5 })
  })

  it('lets a cost budget start, and refuses it for a model without a price', () => {
    const start = (modelId: string) => () => {
      const agent = defineAgent({
        ...{ name: 'a', instructions: '', limits: { maxCostUsd: 1, maxTurns: 0, onLimit: 'stop' } },
        model: anthropic(modelId, { apiKey: 'none', baseURL: 'http://127.0.0.1:1' }),
      })
      return createRuntime({ ledger: memoryLedger(), agents: [agent], prices: genaiPrices() }).run(
        agent,
        'Go.',
      ).id
    }
    expect(start('claude-opus-4-8')).not.toThrow()
    expect(start('nobody-made-this')).toThrow('nobody-made-this has no price')
  })
})
