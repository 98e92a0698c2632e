// There: new Runner({ model, modelSettings, workflowName, traceMetadata }) and what one run overrides. Here: createRuntime and run.
import assert from 'node:assert/strict'
import { createRuntime, defineAgent, memoryLedger } from '@tallystick/core'
import { scriptedModel } from '@tallystick/testkit'

// A script plays the model; use openai('…') instead.
const model = scriptedModel([{ text: 'A function calls its own name.' }, { text: 'Kurz gesagt: ja.' }])
const unused = scriptedModel([])
const poet = defineAgent({ name: 'poet', instructions: 'Write haikus.', model: unused })

const started: string[] = []
const ledger = memoryLedger()
// What a Runner gets applies to all runs of this runtime …
const runner = createRuntime({
  ledger,
  agents: [poet],
  model,
  modelSettings: { temperature: 0.3, maxOutputTokens: 400 },
  limits: { maxTurns: 3 },
  approval: ({ effect }) => (effect === 'write' ? 'ask' : 'run'),
  hooks: { modelCallStarted: ({ agent, event }) => void started.push(`${agent}, turn ${event.turn}`) },
})
const about = { workflowName: 'haikus', groupId: 'class 7b', metadata: { customer: 'c-17' } }
const first = await runner.run(poet, 'About recursion.', about).result
// … and what a run gets wins, setting by setting.
const second = await runner.run(poet, 'Shorter?', { modelSettings: { temperature: 0 } }).result

console.log(first.text, second.text)
assert.deepEqual(started, ['poet, turn 1', 'poet, turn 1'])
const temperatures = model.requests.map(({ modelSettings }) => modelSettings?.temperature)
assert.deepEqual(temperatures, [0.3, 0])
assert.equal(model.requests[1]?.maxOutputTokens, 400)
assert.equal(unused.requests.length, 0)
// All of it is on record: a resume in another process sends the same requests.
const [start] = await Array.fromAsync(ledger.read(first.runId))
assert(start?.type === 'run_started')
assert.equal(start.limits.maxTurns, 3)
assert.deepEqual(start.labels?.metadata, { customer: 'c-17' })
