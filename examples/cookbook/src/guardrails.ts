// Policy as code around a bank's assistant: what it never reads, never pays, and never says. All of it is on record.
import assert from 'node:assert/strict'
import { createRuntime, defineAgent, defineGuardrail, memoryLedger } from '@tallystick/core'
import { scriptedModel } from '@tallystick/testkit'
import { defineTool } from '@tallystick/tools'
import { z } from 'zod'

const pay = defineTool({
  name: 'pay',
  description: 'Pays a bill.',
  input: z.object({ euros: z.number() }),
  effect: 'write',
  execute: ({ euros }) => `${euros} euros paid`,
})
const cards = defineGuardrail({
  name: 'card-numbers',
  on: 'input',
  check({ text }) {
    const hidden = text.replaceAll(/\b(?:\d{4} ?){3}\d{4}\b/g, '(card number)')
    return hidden === text ? 'pass' : { replace: hidden }
  },
})
const threats = defineGuardrail({
  name: 'threats',
  on: 'input',
  check: ({ text }) => (/\bor else\b/i.test(text) ? { block: 'a threat' } : 'pass'),
})
const cap = defineGuardrail({
  name: 'payment-cap',
  on: 'tool_input',
  check: ({ input }) => (Number(input['euros']) > 1_000 ? { block: 'more than 1,000 euros' } : 'pass'),
})
const advice = defineGuardrail({
  name: 'no-advice',
  on: 'output',
  check: ({ text }) => (text.includes('invest') ? { replace: 'Ask an adviser about that.' } : 'pass'),
})
// A script plays the model: it pays whatever the user asks for, and gives advice that it should not.
const model = scriptedModel([
  { toolCalls: [{ name: 'pay', input: { euros: 1_400 } }] },
  { text: 'That did not work. You should invest the money instead.' },
])
const guardrails = [cards, threats, cap, advice]
const agent = defineAgent({ name: 'teller', instructions: 'Help.', model, tools: [pay], guardrails })
const runtime = createRuntime({ ledger: memoryLedger(), agents: [agent] })

const run = runtime.run(agent, 'Pay 1,400 euros from card 4111 1111 1111 1111.')
const tripped: string[] = []
for await (const event of run) {
  if (event.type === 'guardrail_tripped') tripped.push(`${event.guardrail}: ${event.action}`)
}
console.log(tripped.join('\n'))
assert.deepEqual(tripped, ['card-numbers: replace', 'payment-cap: block', 'no-advice: replace'])
assert.match(JSON.stringify(model.requests[0]?.messages), /from card \(card number\)\./)
const { text, toolCalls } = await run.result
assert.deepEqual({ text, toolCalls }, { text: 'Ask an adviser about that.', toolCalls: 0 })
// A block on the input ends the run before any model is called.
const { reason, detail, turns } = await runtime.run(agent, 'Pay now, or else!').result
assert.deepEqual({ reason, detail, turns }, { reason: 'guardrail', detail: 'threats: a threat', turns: 0 })
