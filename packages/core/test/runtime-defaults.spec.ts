// What wins over what: the run over its runtime, its runtime over the agent. The table of docs/run-options.md.
import { expect, it } from 'vitest'
import { agentTool, createRuntime, defineAgent, memoryLedger, type RunOptions } from '@tallystick/core'
import { manualClock, scriptedModel, waitUntilSettled, type ScriptedModel } from '@tallystick/testkit'
import { ofType, recorded } from './stage.ts'

const answers = (name: string): ScriptedModel => scriptedModel([{ text: name }], name)

async function played(own: RunOptions, ofRuntime: RunOptions) {
  const clock = manualClock()
  const ledger = memoryLedger()
  const agent = defineAgent({
    name: 'agent',
    instructions: 'Act.',
    model: answers('of the agent'),
    modelSettings: { seed: 1, temperature: 0.1, topP: 0.1 },
    maxOutputTokens: 100,
    limits: { maxTurns: 11, maxToolCalls: 11, maxRepeats: 11 },
  })
  const { model, modelSettings, limits } = ofRuntime
  const runtime = createRuntime({ ledger, model, modelSettings, limits, host: { clock } })
  const run = runtime.run(agent, 'Go.', own)
  const { text } = await waitUntilSettled(clock, run.result)
  const [started] = ofType(await recorded(ledger, run.id), 'run_started')
  return { text, started: started! }
}

const ofRuntime = (): RunOptions => ({
  model: answers('of the runtime'),
  modelSettings: { seed: 2, temperature: 0.2, maxOutputTokens: 200 },
  limits: { maxTurns: 12, maxToolCalls: 12 },
})

it('the runtime wins over the agent, setting by setting and limit by limit', async () => {
  const { text, started } = await played({}, ofRuntime())
  expect(text).toBe('of the runtime')
  expect(started.modelSettings).toEqual({ seed: 2, temperature: 0.2, maxOutputTokens: 200 })
  expect(started.limits).toMatchObject({ maxTurns: 12, maxToolCalls: 12, maxRepeats: 11 })
})

it('the run wins over the runtime, setting by setting and limit by limit', async () => {
  const own: RunOptions = {
    model: answers('of the run'),
    modelSettings: { seed: 3, temperature: undefined },
    limits: { maxTurns: 13, maxToolCalls: undefined },
  }
  const { text, started } = await played(own, ofRuntime())
  expect(text).toBe('of the run')
  expect(started.modelSettings).toEqual({ seed: 3, temperature: 0.2, maxOutputTokens: 200 })
  expect(started.limits).toMatchObject({ maxTurns: 13, maxToolCalls: 12, maxRepeats: 11 })
})

it('the agent decides where neither says anything', async () => {
  const { text, started } = await played({}, {})
  expect(text).toBe('of the agent')
  expect(started).not.toHaveProperty('modelSettings')
  expect(started).not.toHaveProperty('givenModel')
  expect(started.limits).toMatchObject({ maxTurns: 11, maxToolCalls: 11, maxRepeats: 11 })
})

it('an agent that works as a tool has what the runtime says, and not what the run of its caller says', async () => {
  const clock = manualClock()
  const ledger = memoryLedger()
  const helper = defineAgent({
    name: 'helper',
    description: 'Helps.',
    instructions: 'Help.',
    model: answers('of the agent'),
  })
  const lead = defineAgent({
    name: 'lead',
    instructions: 'Lead.',
    model: answers('of the agent'),
    tools: [agentTool(helper)],
  })
  const model = answers('of the runtime')
  const runtime = createRuntime({ ledger, model, modelSettings: { seed: 2 }, host: { clock } })
  const own = scriptedModel([{ toolCalls: [{ name: 'helper', input: { task: 'x' } }] }, { text: 'Done.' }])
  const run = runtime.run(lead, 'Go.', { model: own, modelSettings: { seed: 3 } })
  await waitUntilSettled(clock, run.result)
  expect(own.requests.map(({ modelSettings }) => modelSettings?.seed)).toEqual([3, 3])
  expect(model.requests.map(({ modelSettings }) => modelSettings?.seed)).toEqual([2])
})
