// An e-mail becomes data that the rest of a program can rely on: typed, checked, and requested again if invalid.
import assert from 'node:assert/strict'
import { createRuntime, defineAgent, memoryLedger } from '@tallystick/core'
import { scriptedModel } from '@tallystick/testkit'
import { z } from 'zod'

const claim = z.object({
  order: z.string().regex(/^A-\d{5}$/),
  damage: z.enum(['broken', 'missing', 'late']),
  deliveredOn: z.iso.date().transform((text) => new Date(text)),
})
const email = 'Hi, my order A-20417 came on 3 May and two of the six glasses are in pieces. Regards, Ines'

// Scripts play the models; use anthropic('…') instead. The first gets it wrong once, as models do.
const model = scriptedModel([
  { text: '{"order": "20417", "damage": "glasses", "deliveredOn": "2026-05-03"}' },
  { text: '{"order": "A-20417", "damage": "broken", "deliveredOn": "2026-05-03"}' },
])
const reader = defineAgent({ name: 'claim reader', instructions: 'Read the claim.', model, output: claim })
const runtime = createRuntime({ ledger: memoryLedger(), agents: [reader] })

const run = runtime.run(reader, email)
for await (const event of run) {
  if (event.type === 'output_checked' && !event.valid) console.log(`Asked again: ${event.error}`)
}
const result = await run.result
assert.equal(result.reason, 'answered')
assert.equal(result.turns, 2)
// Type and value follow the schema: a Date, although the model wrote text.
assert.deepEqual(result.output, {
  order: 'A-20417',
  damage: 'broken',
  deliveredOn: new Date('2026-05-03'),
})
const days = (Date.parse('2026-05-10') - result.output.deliveredOn.getTime()) / 86_400_000
console.log(`${result.output.order} was ${result.output.damage} ${days} days ago.`)
// The first request says what the model must write, the second what was wrong with its reply.
assert.deepEqual(model.requests[0]?.outputSchema?.['required'], ['order', 'damage', 'deliveredOn'])
assert.match(JSON.stringify(model.requests[1]?.messages.at(-1)), /damage: Invalid option/)

// If the model never gets it right, the run ends after `maxOutputRepairs` more tries. Nothing half right gets out.
const prose = scriptedModel([{ text: 'Two glasses broke.' }, { text: 'As I said: they broke.' }])
const hopeless = defineAgent({
  name: 'hopeless reader',
  instructions: 'Read the claim.',
  model: prose,
  output: claim,
  maxOutputRepairs: 1,
})
const failed = await runtime.run(hopeless, email).result
console.log(`${failed.reason}: ${failed.detail}`)
assert.equal(failed.reason, 'output_invalid')
assert.equal(failed.output, undefined)
assert.equal(failed.text, 'As I said: they broke.')
