// An option that is `undefined` says what leaving it out says: under `exactOptionalPropertyTypes` a caller may pass it on.
import { expect, it } from 'vitest'
import { createRuntime, defineAgent, memoryLedger } from '@tallystick/core'
import { callTool, given, manualClock, scriptedModel, testTool, waitUntilSettled } from '@tallystick/testkit'
import { begun, called } from './pages.ts'
import { recorded } from './stage.ts'

const none = undefined

it('a price without a rate is recorded without it', async () => {
  const inputUsd = 3
  const prices = {
    'acme-1': {
      ...{ inputUsd, outputUsd: 15, cacheReadUsd: none, source: none },
      longInput: [{ inputUsd: 6, outputUsd: 30, aboveInputTokens: 200_000, cacheWriteUsd: none }],
    },
  }
  const usage = { inputTokens: 300_000, outputTokens: 10, reasoningTokens: none }
  const model = scriptedModel([{ text: 'Done.', usage }], 'acme-1')
  const agent = defineAgent({ name: 'a', instructions: '', model })
  const [ledger, clock] = [memoryLedger(), manualClock()]
  const run = createRuntime({ ledger, prices, host: { clock, random: none } }).run(agent, 'Go.')
  const { costUsd } = await waitUntilSettled(clock, run.result)
  expect(costUsd).toBeCloseTo(0.3 * 6 + 10 * 30e-6)
  const [started] = await recorded(ledger, run.id)
  const price = started?.type === 'run_started' ? started.definition.price : undefined
  expect(Object.keys(price ?? {}).toSorted()).toEqual(['inputUsd', 'longInput', 'outputUsd'])
  expect(Object.keys(price?.longInput?.[0] ?? {})).not.toContain('cacheWriteUsd')
})

it('a call of a tool in a test keeps what is given without it', async () => {
  const look = testTool({ name: 'look', effect: none, run: none })
  await callTool(look, {}, { turn: none, attempt: none, toolCallId: none })
  const [run] = look.runs
  expect([run?.turn, run?.attempt, typeof run?.toolCallId, run?.idempotencyKey]).toEqual([
    ...[1, 1, 'string', run?.toolCallId],
  ])
})

it('a decision in a test is made at the time at which it is made without it', () => {
  const failure = { class: 'server', message: 'The server failed.', retryable: true } as const
  const failed = { type: 'model_failed', turn: 1, attempt: 1, failure } as const
  const { decision } = given([...begun(), called()]).when(failed, { at: none, random: none })
  expect(decision).toEqual(given([...begun(), called()]).when(failed).decision)
  expect(JSON.stringify(decision)).toMatch(/"retryAt":\d+/)
})

it('a search of a ledger is as wide as without it', async () => {
  const ledger = memoryLedger()
  const agent = defineAgent({ name: 'a', instructions: '', model: scriptedModel([{ text: 'Done.' }]) })
  const { runId, seq } = await createRuntime({ ledger }).run(agent, 'Go.', { deadline: none }).result
  const query = {
    runId,
    sessionId: none,
    turn: none,
    toolCallId: none,
    types: none,
    fromAt: none,
    toAt: none,
  }
  expect((await Array.fromAsync(ledger.find(query))).length).toBe(seq)
  expect((await Array.fromAsync(ledger.read(runId, { fromSeq: none, toSeq: none }))).length).toBe(seq)
  expect(await Array.fromAsync(ledger.runs({ sessionId: none, before: none, limit: none }))).toHaveLength(1)
})
