import { describe, expect, it } from 'vitest'
import { createRuntime, defineAgent, memoryLedger, type Usage } from '@tallystick/core'
import { computeCost } from '@tallystick/core/vocabulary'
import {
  manualClock,
  scriptedModel,
  waitUntilSettled,
  testTool,
  type ScriptedStep,
} from '@tallystick/testkit'
import { ofType, recorded, stage } from './stage.ts'

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
