import { describe, expect, it } from 'vitest'
import { createRuntime, defineAgent, memoryLedger, type Limits } from '@tallystick/core'
import { type UserPart } from '@tallystick/core/vocabulary'
import {
  manualClock,
  scriptedModel,
  waitUntilSettled,
  testTool,
  type ScriptedReply,
  type ScriptedStep,
} from '@tallystick/testkit'
import { billing, counting, look, modelCalls, play, type Played } from './grants-stage.ts'
import { ofType } from './stage.ts'

describe('a grant', () => {
  it('is recorded before each model call, with the price of the model that is called', async () => {
    const { events } = await play({
      ...{ model: billing([look, { text: 'Done.' }]), tools: [counting()] },
      limits: { maxCostUsd: 1 },
    })
    for (const { grant, maxOutputTokens } of ofType(events, 'model_call_started')) {
      expect(grant.outputTokens).toBe(maxOutputTokens)
      expect(grant.costUsd).toBeCloseTo(((grant.inputTokens ?? 0) + 10 * (maxOutputTokens ?? 0)) / 1e6, 9)
    }
  })

  it('bounds the money of a call whose output is free', async () => {
    for (const onLimit of ['stop', 'finalize'] as const) {
      const { result, events } = await play({
        model: billing([look, { text: 'Done.' }], 'half'),
        tools: [counting()],
        limits: { maxCostUsd: 0.1, onLimit },
      })
      expect(result.status).toBe('done')
      for (const { grant } of ofType(events, 'model_call_started')) {
        expect(grant.costUsd).toBeGreaterThan(0)
        expect(grant.costUsd).toBeLessThanOrEqual(0.1)
      }
    }
  })

  it('holds the finalizing call to what is left of the money', async () => {
    const steps = [...Array.from({ length: 9 }, () => look), { text: 'Done.' }]
    const { result } = await play({
      ...{ model: billing(steps), tools: [counting()], limits: { maxCostUsd: 0.01 } },
    })
    expect(result.reason).toBe('cost_limit')
    expect(result.costUsd).toBeLessThanOrEqual(0.01)
  })

  it('holds every attempt of the finalizing call, on every model that takes over', async () => {
    const failing = Array.from({ length: 4 }, (): ScriptedReply => ({ text: 'x', fail: 'overloaded' }))
    const { result, events } = await play({
      ...{ model: billing([look, ...failing]), tools: [counting()], limits: { maxTotalTokens: 4_000 } },
      fallbacks: [billing(failing, 'second'), billing(failing, 'third')],
    })
    expect(result.reason).toBe('token_limit')
    expect(modelCalls(events)).toBeLessThan(4)
    const { inputTokens = 0, outputTokens = 0 } = result.usage
    expect(inputTokens + outputTokens).toBeLessThanOrEqual(4_000)
  })

  it('of a model that takes over is at its own price', async () => {
    const { result, events } = await play({
      model: scriptedModel(
        [...Array.from({ length: 4 }, (): ScriptedStep => ({ fail: 'overloaded' })), { text: 'Cheap.' }],
        'cheap',
      ),
      ...{ fallbacks: [billing([{ text: 'Dear.' }], 'dear')], limits: { maxCostUsd: 0.01 } },
    })
    expect(result.costUsd ?? 0).toBeLessThanOrEqual(0.01)
    expect(ofType(events, 'model_call_started').some(({ model }) => model.modelId === 'dear')).toBe(false)
    expect(result.reason).toBe('cost_limit')
  })

  it('of a model that prepareTurn names is at its own price', async () => {
    const dear = billing([{ text: 'Dear.' }], 'dear')
    const { result, events } = await play({
      ...{ model: billing([{ text: 'Cheap.' }]), fallbacks: [dear], limits: { maxCostUsd: 0.01 } },
      prepareTurn: () => ({ model: { provider: 'scripted', api: 'script', modelId: 'dear' } }),
    })
    expect(result.costUsd ?? 0).toBeLessThanOrEqual(0.01)
    expect(ofType(events, 'model_call_started').map(({ model }) => model.modelId)).not.toContain('dear')
  })

  it('takes all input for written to the cache, which may cost more', async () => {
    const usage = { inputTokens: 700, cacheWriteTokens: 700, outputTokens: 100 }
    const model = scriptedModel([{ text: 'Done.', usage }], 'caching')
    const clock = manualClock()
    const agent = defineAgent({ name: 'a', instructions: 'x'.repeat(2_400), model })
    const ledger = memoryLedger()
    const caching = { inputUsd: 1, outputUsd: 1, cacheWriteUsd: 100 }
    const runtime = createRuntime({ ledger, agents: [agent], prices: { caching }, host: { clock } })
    const run = runtime.run(agent, 'Go.', { limits: { maxCostUsd: 0.01 } })
    expect(await waitUntilSettled(clock, run.result)).toMatchObject({ reason: 'cost_limit', text: '' })
    expect(model.requests).toHaveLength(0)
  })

  it('estimates ideographs and documents by what they are', async () => {
    const dense = scriptedModel([{ text: 'Done.', usage: { inputTokens: 9_000, outputTokens: 10 } }], 'cheap')
    const text = '語'.repeat(9_000)
    const cjk = await play({ model: dense, limits: { maxCostUsd: 0.01 } }, text)
    expect(cjk.result).toMatchObject({ reason: 'cost_limit', text: '' })
    const paid = { inputTokens: 120_000, outputTokens: 10 }
    const reading = scriptedModel([{ text: 'Done.', usage: paid }], 'cheap')
    const pdf: UserPart = { type: 'file', mediaType: 'application/pdf', data: 'A'.repeat(1_000_000) }
    const document = await play({ model: reading, limits: { maxCostUsd: 0.05 } }, [pdf])
    expect(document.result).toMatchObject({ reason: 'cost_limit', text: '' })
    expect([...dense.requests, ...reading.requests]).toEqual([])
  })

  it('learns from what providers report how far estimates fall short', async () => {
    const dense = (inputTokens: number): ScriptedReply => ({
      ...look,
      usage: { inputTokens, outputTokens: 5 },
    })
    const wordy = testTool({ name: 'look', run: () => 'x'.repeat(3_500) })
    const { events } = await play({
      model: scriptedModel(
        [dense(60), dense(4_100), { text: 'Done.', usage: { inputTokens: 8_300 } }],
        'cheap',
      ),
      ...{ tools: [wordy], limits: { maxTotalTokens: 1_000_000, maxRepeats: 9 } },
    })
    const inputs = ofType(events, 'model_call_started').map(({ grant }) => grant.inputTokens ?? 0)
    // The second result is as long as the first, of which the provider made four times as many tokens.
    expect(inputs[1]).toBeLessThan(1_200)
    expect(inputs[2]).toBeGreaterThan(8_000)
  })
})

describe('what a provider reports', () => {
  const bounded = (reply: ScriptedReply, limits: Limits = { maxTotalTokens: 2_000 }): Promise<Played> =>
    play({
      model: scriptedModel([...Array.from({ length: 13 }, () => ({ ...reply, ...look })), { text: 'Done.' }]),
      ...{ tools: [counting()], limits: { maxTurns: 30, ...limits } },
    })

  it('is estimated where it reports nothing, and marked so', async () => {
    const { result, events } = await bounded({ text: 'So many words. '.repeat(20) })
    expect(result.reason).toBe('token_limit')
    expect(modelCalls(events)).toBeLessThan(10)
    expect(ofType(events, 'usage_updated')[0]).toMatchObject({ estimated: ['inputTokens', 'outputTokens'] })
  })

  it('is refused where it is not a count, and counts by the largest where it falls', async () => {
    const lies = [-500, 1e308, 0.5, Number.MAX_SAFE_INTEGER]
    for (const inputTokens of lies) {
      const { events, result } = await bounded({ usage: { inputTokens, outputTokens: 5 } })
      expect(ofType(events, 'usage_updated')[0]).toMatchObject({ refused: ['inputTokens'] })
      expect(result.usage.inputTokens).toBeGreaterThan(0)
      expect(result.usage.inputTokens).toBeLessThanOrEqual(2_000)
    }
  })

  it('never bricks a run: a cost without end is refused, and the run ends', async () => {
    const { result } = await play({
      model: scriptedModel([{ text: 'Done.', usage: { inputTokens: 1e308, outputTokens: 1e308 } }], 'dear'),
      limits: { maxCostUsd: 1_000 },
    })
    expect(result).toMatchObject({ status: 'done', reason: 'answered' })
    expect(Number.isFinite(result.costUsd)).toBe(true)
  })

  it('is not believed where it says that text cost nothing', async () => {
    const usage = { inputTokens: 0, outputTokens: 0 }
    const { events } = await bounded({ text: 'So many words. '.repeat(20), usage })
    expect(ofType(events, 'usage_updated')[1]).toMatchObject({ estimated: ['inputTokens', 'outputTokens'] })
  })

  it('is made up for when the stream is cut before it', async () => {
    const cut: ScriptedStep = { text: 'word '.repeat(400), fail: 'truncated' }
    const { result, events } = await play({
      model: scriptedModel(
        [cut, cut, cut, { text: 'Done.', usage: { inputTokens: 9, outputTokens: 2 } }],
        'cheap',
      ),
      limits: { maxCostUsd: 1 },
    })
    expect(result.reason).toBe('answered')
    expect(ofType(events, 'usage_updated').filter(({ estimated }) => estimated)).toHaveLength(3)
    // Three times some 570 tokens of output at 10 dollars a million.
    expect(result.costUsd).toBeGreaterThan(0.015)
  })
})
