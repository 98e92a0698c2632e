// The turns of a run as its handle tells them, and how a model failed as its result does.
import { expect, it } from 'vitest'
import { createRuntime, defineAgent, memoryLedger } from '@tallystick/core'
import { manualClock, scriptedModel, testTool, waitUntilSettled } from '@tallystick/testkit'
import { recorded, stage } from './stage.ts'

it('a run tells its turns: agent, model, attempts, calls, usage, cost, time and handoff', async () => {
  const clock = manualClock()
  const ledger = memoryLedger()
  const look = testTool({ name: 'look', run: () => 'seen' })
  const usage = { inputTokens: 10, outputTokens: 1 }
  const model = scriptedModel([
    { fail: 'overloaded', usage },
    { toolCalls: [{ name: 'transfer_to_billing', input: {} }], usage },
    { text: 'Looking.', toolCalls: [{ name: 'look', input: {} }], usage },
    { text: 'Done.', usage },
  ])
  const billing = defineAgent({ name: 'billing', instructions: 'Bill.', model, tools: [look] })
  const desk = defineAgent({ name: 'desk', instructions: 'Greet.', model, handoffs: [billing] })
  const prices = { 'scripted-1': { inputUsd: 1, outputUsd: 1 } }
  const runtime = createRuntime({ ledger, prices, host: { clock, random: () => 0.5 } })
  const run = runtime.run(desk, 'Go.')
  const result = await waitUntilSettled(clock, run.result)
  const steps = await run.steps()
  expect(steps).toMatchObject([
    { turn: 1, agent: 'desk', attempts: 2, handedTo: 'billing', usage: { inputTokens: 20, outputTokens: 2 } },
    { turn: 2, agent: 'billing', attempts: 1, text: 'Looking.', usage },
    { turn: 3, agent: 'billing', attempts: 1, text: 'Done.', calls: [], usage },
  ])
  expect(steps.map(({ calls }) => calls.map(({ name, outcome }) => `${name} ${outcome}`))).toEqual([
    ['transfer_to_billing success'],
    ['look success'],
    [],
  ])
  expect(steps.some((step) => 'failure' in step)).toBe(false)
  const cost = steps.reduce((sum, { costUsd = 0 }) => sum + costUsd, 0)
  expect(cost).toBeCloseTo(result.costUsd ?? -1, 12)
  const events = await recorded(ledger, run.id)
  const [first] = steps
  expect(first?.startedAt).toBe(events.find(({ type }) => type === 'model_call_started')?.at)
  expect(first?.endedAt).toBe(events.find(({ type }) => type === 'agent_handed_off')?.at)
  expect(first!.endedAt).toBeGreaterThan(first!.startedAt)
})

it('a result names the failure that ended the run, wherever it is read', async () => {
  const set = stage({ steps: [{ fail: 'authentication' }] })
  const run = set.start()
  const result = await set.waitUntilSettled(run.result)
  const failure = { class: 'authentication', retryable: false, provider: 'scripted', modelId: 'scripted-1' }
  expect(result).toMatchObject({ reason: 'model_failed', failure })
  const { ledger, clock, agent } = set
  const other = createRuntime({ ledger, agents: [agent], host: { clock } })
  expect(await set.waitUntilSettled(other.resume(run.id).result)).toMatchObject({ failure })
  expect(await run.steps()).toMatchObject([{ text: '', attempts: 1, failure: { class: 'authentication' } }])
})

it('a run that recovered from a failure has none', async () => {
  const set = stage({ steps: [{ fail: 'overloaded' }, { text: 'Done.' }] })
  expect(await set.play()).not.toHaveProperty('failure')
})
