// A run that was given something over its agents replays to itself, with the agents alone.
import { expect, it } from 'vitest'
import { createRuntime, defineAgent, memoryLedger, type RunOptions } from '@tallystick/core'
import { listReachableAgents } from '@tallystick/core/internal'
import { manualClock, scriptedModel, seededRandom, testTool, waitUntilSettled } from '@tallystick/testkit'
import { replayRun } from '@tallystick/replay'

const look = testTool({ name: 'look', run: () => 'seen' })

function office() {
  const own = scriptedModel([], 'own')
  const second = scriptedModel([], 'second')
  const billing = defineAgent({
    name: 'billing',
    instructions: (context: unknown) => `Bill ${String(context)}.`,
    model: own,
    tools: [look],
    fallbacks: [second],
  })
  return defineAgent({ name: 'desk', instructions: 'Greet.', model: own, handoffs: [billing] })
}

it.each<readonly [string, RunOptions]>([
  ['a model of another name', { model: scriptedModel([], 'given') }],
  ['a model that one of its agents has', { model: scriptedModel([], 'second') }],
  ['a choice of tools', { toolChoice: 'any', parallelToolCalls: false }],
  ['labels and a key', { workflowName: 'w', tags: ['t'], metadata: { a: 1 }, idempotencyKey: 'k' }],
  ['an aborted signal', { signal: AbortSignal.abort(new Error('late')) }],
])('that was given %s', async (_name, options) => {
  const [ledger, clock] = [memoryLedger(), manualClock()]
  const steps = [
    { toolCalls: [{ name: 'transfer_to_billing', input: {} }] },
    { toolCalls: [{ name: 'look', input: {} }] },
    { text: 'Billed.' },
  ]
  const model = scriptedModel(steps, options.model?.modelId ?? 'own')
  const agent = office()
  const runtime = createRuntime({ ledger, host: { clock, random: seededRandom(1) } })
  const run = runtime.run(agent, 'Go.', { ...options, model, context: 'ada' })
  await waitUntilSettled(clock, run.result)
  const today = new Map(listReachableAgents(office()).map((each) => [each.name, each]))
  const events: string[] = []
  for await (const { type } of ledger.read(run.id)) events.push(type)
  const report = await replayRun(ledger, run.id, (name) => today.get(name)!, { context: 'ada' })
  expect(report).toEqual({ runId: run.id, events: events.length })
  expect(events.includes('agent_handed_off')).toBe(options.signal === undefined)
})
