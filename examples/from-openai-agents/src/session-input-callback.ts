// There: a session with a sessionInputCallback that decides with which past messages a run begins. Here: the session returns
// its history, and `edit` says what the next run is not shown. Who left it out, and why, is on record.
import assert from 'node:assert/strict'
import { createRuntime, defineAgent, memoryLedger, joinText } from '@tallystick/core'
import { scriptedModel } from '@tallystick/testkit'

// A script plays the model: it says how much of the conversation it was shown.
const model = scriptedModel([
  { text: 'Noted: San Francisco.' },
  { text: 'Noted: your card ends in 1111.' },
  ({ messages }) => ({ text: `The script was shown ${messages.length} messages.` }),
])
const agent = defineAgent({ name: 'travel', instructions: 'Answer with facts.', model })
const ledger = memoryLedger()
const runtime = createRuntime({ ledger, agents: [agent] })
const sessionId = 'ann'

await runtime.run(agent, 'The Golden Gate Bridge is in which city?', { sessionId }).result
await runtime.run(agent, 'My card is 4111 1111 1111 1111.', { sessionId }).result

const past = await runtime.session(sessionId).history()
assert(past)
// The callback: messages about a card are left out, with the answers to them.
const edits = past.messages.flatMap((message, index) => {
  const said = message.role === 'tool' ? '' : joinText(message.parts)
  return said.includes('card') ? [{ index }] : []
})
const edit = { of: past.runId, edits, by: 'input callback', reason: 'payment data' }
const { text } = await runtime.run(agent, 'What state is it in?', { sessionId, edit }).result

console.log(text)
assert.equal(edits.length, 2)
assert.doesNotMatch(JSON.stringify(model.requests[2]), /4111/)
// The next run of the session begins without them too, but the ledger still has what was said.
assert.equal((await runtime.session(sessionId).history())?.messages.length, 4)
