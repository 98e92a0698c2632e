// There: callModelInputFilter, which gets each request to the model and returns another. Here: prepareTurn of the agent.
import assert from 'node:assert/strict'
import { createRuntime, defineAgent, memoryLedger, type Message } from '@tallystick/core'
import { scriptedModel } from '@tallystick/testkit'

// A script plays the model: it repeats the first message that it was shown.
const model = scriptedModel([
  { text: 'Noted.' },
  { text: 'Noted again.' },
  ({ messages }) => ({ text: `The script was shown first: ${JSON.stringify(messages[0])}` }),
])
/** Hides e-mail addresses in what the user said. */
function withoutAddresses(message: Message): Message {
  if (message.role !== 'user') return message
  const parts = message.parts.map((part) =>
    part.type === 'text' ? { ...part, text: part.text.replaceAll(/[\w.]+@[\w.]+/g, '(e-mail)') } : part,
  )
  return { role: 'user', parts }
}
const agent = defineAgent({
  name: 'desk',
  instructions: 'Help.',
  model,
  // The last three messages, masked. A cut between a call and its result would be refused.
  prepareTurn: ({ request }) => ({ messages: request.messages.slice(-3).map(withoutAddresses) }),
})
const ledger = memoryLedger()
const runtime = createRuntime({ ledger, agents: [agent] })

const session = { sessionId: 'customer 7' }
await runtime.run(agent, 'Our office is in Bonn.', session).result
await runtime.run(agent, 'Write to ines@example.com.', session).result
const { text, runId } = await runtime.run(agent, 'What did I say?', session).result

console.log(text)
const shown = model.requests.map(({ messages }) => messages.length)
assert.deepEqual(shown, [1, 3, 3])
assert.match(text, /Write to \(e-mail\)/)
// The filter hides but deletes nothing: the session still has all five messages before the last answer.
const past = await runtime.session('customer 7').history()
assert.equal(past?.messages.length, 6)
assert.match(JSON.stringify(past?.messages), /ines@example\.com/)
// What it changed is recorded with the call, so a replay sends the same request without calling the filter.
const events = await Array.fromAsync(ledger.read(runId))
const asked = events.find((event) => event.type === 'model_call_started')
// Of the five messages: a replacement for the third, then the last two.
assert.equal(asked?.change?.shown?.pieces.length, 2)
assert.deepEqual(asked.change.shown.pieces[1], { from: 3, to: 5 })
