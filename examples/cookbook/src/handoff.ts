// The front desk of an internet provider hands a question over to billing; a person is only a handoff away.
import assert from 'node:assert/strict'
import { createRuntime, defineAgent, foldedHistory, handBack, handoff, memoryLedger } from '@tallystick/core'
import { scriptedModel } from '@tallystick/testkit'
import { defineTool } from '@tallystick/tools'
import { z } from 'zod'

const readInvoice = defineTool({
  name: 'read_invoice',
  description: 'The lines of an invoice, by month.',
  input: z.object({ month: z.string() }),
  effect: 'read',
  execute: ({ month }) => `${month}: line rental 29.90 euros, engineer's visit 40.00 euros`,
})
// Scripts play both models; use anthropic('…') instead.
const billingModel = scriptedModel([
  { toolCalls: [{ name: 'read_invoice', input: { month: 'May' } }] },
  { text: "The script says: in May an engineer's visit was added, 40 euros." },
])
const billing = defineAgent({
  name: 'billing',
  description: 'Knows every invoice. Use it for questions about money.',
  instructions: 'Explain invoices.',
  model: billingModel,
  tools: [readInvoice],
})
const frontDeskModel = scriptedModel([
  { toolCalls: [{ name: 'transfer_to_billing', input: { reason: 'It is about an invoice.' } }] },
  { toolCalls: [{ name: 'transfer_to_support_team', input: { reason: 'The customer asks for a person.' } }] },
])
const frontDesk = defineAgent({
  name: 'front desk',
  instructions: 'Find out who can help.',
  model: frontDeskModel,
  handoffs: [
    // Billing reads the conversation so far as a report; without a filter it would see the messages themselves.
    handoff(billing, { filter: foldedHistory }),
    handBack('Support team', { description: 'People. Use it when the customer asks for one.' }),
  ],
})
const runtime = createRuntime({ ledger: memoryLedger(), agents: [frontDesk] })

const run = runtime.run(frontDesk, 'Why is my bill so high?', { sessionId: 'customer 2207' })
for await (const event of run) {
  if (event.type === 'agent_handed_off') console.log(`${event.from} hands over to ${event.to}.`)
}
const result = await run.result
console.log(result.text)
assert.deepEqual([result.agent, result.reason], ['billing', 'answered'])
// To the first model a handoff is a tool call; the second begins afresh, with its own tools.
const offered = frontDeskModel.requests[0]?.tools.map(({ name }) => name)
assert.deepEqual(offered, ['transfer_to_billing', 'transfer_to_support_team'])
assert.match(JSON.stringify(billingModel.requests[0]?.messages), /User: Why is my bill so high\?/)

// The next run of the session knows what billing said. It ends at once: its caller continues.
const next = await runtime.run(frontDesk, 'Get me a person.', { sessionId: 'customer 2207' }).result
assert.equal(`${next.reason}: ${next.detail}`, 'handed_back: Support team')
assert.match(JSON.stringify(frontDeskModel.requests[1]?.messages), /40 euros/)
