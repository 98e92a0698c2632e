// A run may spend two cents, stops when they are used up, and continues when a person raises the limit.
import assert from 'node:assert/strict'
import { createRuntime, defineAgent, memoryLedger } from '@tallystick/core'
import { scriptedModel } from '@tallystick/testkit'
import { defineTool } from '@tallystick/tools'
import { z } from 'zod'

const read = defineTool({
  name: 'read_chapter',
  description: 'Reads one chapter of the report.',
  input: z.object({ chapter: z.number() }),
  effect: 'read',
  execute: ({ chapter }) => `Chapter ${chapter}: sales rose.`,
})
// A script plays the model, and reports what it would have cost; use anthropic('…') instead.
const usage = { inputTokens: 4_000, outputTokens: 400 }
const chapter = (number: number) => ({
  toolCalls: [{ name: 'read_chapter', input: { chapter: number } }],
  usage,
})
const model = scriptedModel([
  chapter(1),
  chapter(2),
  { text: 'The script says: sales rose in both chapters.', usage },
])
const agent = defineAgent({
  name: 'reader',
  instructions: 'Read, then sum up.',
  model,
  tools: [read],
  limits: { maxCostUsd: 0.02, onLimit: 'ask' },
})
const prices = { 'scripted-1': { inputUsd: 1, outputUsd: 10, source: 'made up' } }
const runtime = createRuntime({ ledger: memoryLedger(), agents: [agent], prices })

const run = runtime.run(agent, 'What does the report say?')
for await (const event of run) {
  if (event.type === 'limit_reached') {
    console.log(`${event.limit}: ${event.used} of ${event.max} dollars are spent.`)
  }
}
const rest = await run.result
assert.equal(rest.status, 'suspended')
assert.equal(rest.costUsd, 0.016)
assert.equal(model.requests.length, 2)

// Any process may do this at any later time: the run is in the ledger, and no process has to keep it alive.
const acknowledgement = await run.raiseLimit('maxCostUsd', 0.05, { by: 'ada' })
assert.deepEqual(acknowledgement, { accepted: true })
// What was already read is not read again.
for await (const { type, seq } of run.after(rest.seq)) console.log(`${seq} ${type}`)
const result = await run.result
assert.equal(result.reason, 'answered')
assert.equal(result.costUsd, 0.024)
console.log(`${result.text} It cost ${result.costUsd} dollars.`)
