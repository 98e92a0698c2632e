// A user changes their mind while a tool runs, and asks for more after the answer. The run records the outcome of each.
import assert from 'node:assert/strict'
import { createRuntime, defineAgent, memoryLedger, joinText, type ModelRequest } from '@tallystick/core'
import { scriptedModel } from '@tallystick/testkit'
import { defineTool } from '@tallystick/tools'
import { z } from 'zod'

const reading = Promise.withResolvers<void>()
const received = Promise.withResolvers<void>()
const search = defineTool({
  name: 'search_flights',
  description: 'Finds flights between two cities.',
  input: z.object({ from: z.string(), to: z.string() }),
  effect: 'read',
  async execute({ from, to }) {
    reading.resolve()
    await received.promise
    return `Two flights from ${from} to ${to}.`
  },
})
const lastWish = ({ messages }: ModelRequest): string => {
  const users = messages.filter((message) => message.role === 'user')
  return joinText(users.at(-1)!.parts)
}
// A script plays the model: it searches once, then repeats what it was told last.
const model = scriptedModel([
  { toolCalls: [{ name: 'search_flights', input: { from: 'Oslo', to: 'Rome' } }] },
  (request) => ({ text: `The script was told: ${lastWish(request)}` }),
  (request) => ({ text: `The script was told: ${lastWish(request)}` }),
])
const agent = defineAgent({ name: 'travel', instructions: 'Find flights.', model, tools: [search] })
const run = createRuntime({ ledger: memoryLedger(), agents: [agent] }).run(agent, 'Oslo to Rome, please.')

await reading.promise
await run.steer('In the morning only.')
await run.queue('And a hotel?')
received.resolve()

const answers: string[] = []
const outcomes: string[] = []
for await (const event of run) {
  if (event.type === 'assistant_message_finished') answers.push(joinText(event.parts))
  if (event.type === 'input_settled')
    outcomes.push(`${event.delivered ? 'delivered' : 'lost'} in turn ${event.turn}`)
}
console.log(answers.filter(Boolean).join('\n'))
// The steered input comes right after the tool's result, in the same turn; the queued one gets a second answer.
assert.deepEqual(
  model.requests[1]?.messages.map(({ role }) => role),
  ['user', 'assistant', 'tool', 'user'],
)
assert.deepEqual(answers.slice(1), [
  'The script was told: In the morning only.',
  'The script was told: And a hotel?',
])
assert.deepEqual(outcomes, ['delivered in turn 1', 'delivered in turn 2'])
assert.equal((await run.result).reason, 'answered')
