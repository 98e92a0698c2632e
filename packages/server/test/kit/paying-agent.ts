import { defineAgent, type Agent } from '@tallystick/core'
import { scriptedModel, testTool, type ScriptedStep } from '@tallystick/testkit'

/** An agent that asks to pay, and says what became of that. It works it out from what it is sent. */
export function payingAgent(name = 'office'): Agent {
  const step: ScriptedStep = ({ messages }) => {
    const last = messages.at(-1)
    if (last?.role !== 'tool') return { text: 'I pay. ', toolCalls: [{ name: 'pay', input: { usd: 5 } }] }
    const said = (last.results[0]?.content ?? []).flatMap((part) => (part.type === 'text' ? [part.text] : []))
    return {
      text: `Payment: ${said.at(-1)}`,
      usage: { inputTokens: 20, outputTokens: 4 },
    }
  }
  const pay = testTool({
    name: 'pay',
    effect: 'write',
    check: () => ({ kind: 'ask', reason: 'it is money' }),
    run: ({ input }) => `${JSON.stringify(input['usd'])} USD paid`,
  })
  const tool = { ...pay, inputSchema: { type: 'object', properties: { usd: { type: 'number' } } } }
  const model = scriptedModel(Array.from({ length: 40 }, () => step))
  return defineAgent({ name, description: 'Pays bills.', instructions: 'Pay.', model, tools: [tool] })
}
