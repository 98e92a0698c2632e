// There: a handoff with nestHandoffHistory, which folds the transcript into one message for the next agent. Here: an option.
import assert from 'node:assert/strict'
import { createRuntime, defineAgent, handoff, memoryLedger } from '@tallystick/core'
import { scriptedModel } from '@tallystick/testkit'
import { defineTool } from '@tallystick/tools'
import { z } from 'zod'

const findOrder = defineTool({
  name: 'find_order',
  description: 'Finds an order by its number.',
  input: z.object({ order: z.string() }),
  effect: 'read',
  execute: ({ order }) => `${order}: two lamps, delivered on 3 May`,
})
// Scripts play the three models; use openai('…') instead.
const refundModel = scriptedModel([{ text: 'The script says: 59 euros are on their way.' }])
const refunds = defineAgent({
  name: 'refunds',
  description: 'Pays money back.',
  instructions: 'Pay damaged goods back.',
  model: refundModel,
})
const orderModel = scriptedModel([
  { toolCalls: [{ name: 'find_order', input: { order: 'A-7' } }] },
  { toolCalls: [{ name: 'transfer_to_refunds', input: { reason: 'The lamps broke.' } }] },
])
const orders = defineAgent({
  name: 'orders',
  description: 'Knows every order.',
  instructions: 'Look the order up.',
  model: orderModel,
  tools: [findOrder],
  handoffs: [handoff(refunds, { foldHistory: { heading: 'What the desk knows:' } })],
})
const triageModel = scriptedModel([{ toolCalls: [{ name: 'transfer_to_orders', input: {} }] }])
const triage = defineAgent({
  name: 'triage',
  instructions: 'Find out who can help.',
  model: triageModel,
  handoffs: [handoff(orders, { foldHistory: true })],
})
const runtime = createRuntime({ ledger: memoryLedger(), agents: [triage] })
const result = await runtime.run(triage, 'The lamps of order A-7 broke.').result

console.log(`${result.agent}: ${result.text}`)
// Each agent begins with one message that reports what happened before it, earlier reports included.
assert.equal(refundModel.requests[0]?.messages.length, 1)
const [report] = refundModel.requests[0]?.messages ?? []
const text = JSON.stringify(report)
assert.match(text, /What the desk knows:/)
assert.match(text, /User: The lamps of order A-7 broke\./)
assert.match(text, /find_order answered \(success\): A-7: two lamps/)
assert.equal(result.agent, 'refunds')
