import { defineAgent, type Agent } from '@tallystick/core'
import { scriptedModel, testTool, type ScriptedModel } from '@tallystick/testkit'
import OpenAI from 'openai'
import type { Office } from './office.ts'

/** A client of OpenAI that speaks to an office, and sends each request once. */
export function clientOf(office: Office, apiKey = 'ada'): OpenAI {
  return new OpenAI({ apiKey, baseURL: `${office.listening.url}/v1`, maxRetries: 0 })
}

/** An agent that looks a price up itself, and leaves a shipment to its caller. */
export function shippingAgent(name = 'shop'): Agent & { readonly model: ScriptedModel } {
  const look = testTool({ name: 'look', run: () => 'tea: 5 USD' })
  const ship = testTool({
    name: 'ship',
    run: (_, report) => {
      report.defer('parcel')
      return ''
    },
  })
  const model = scriptedModel([
    {
      text: 'I look.',
      toolCalls: [{ name: 'look', input: {} }],
      usage: { inputTokens: 10, outputTokens: 2 },
    },
    {
      text: 'I ship.',
      toolCalls: [
        { name: 'ship', input: { to: 'Ada' } },
        { name: 'ship', input: { to: 'Bob' } },
      ],
      usage: { inputTokens: 20, outputTokens: 3, cacheReadTokens: 5 },
    },
    { text: 'Shipped.', usage: { inputTokens: 30, outputTokens: 4, reasoningTokens: 1 } },
    { text: 'You are welcome.', usage: { inputTokens: 40, outputTokens: 5 } },
  ])
  const agent = defineAgent({ name, instructions: 'Ship tea.', model, tools: [look, ship] })
  return { ...agent, model }
}

/** An agent whose first reply breaks off after a text. */
export function stumblingAgent(): Agent {
  const model = scriptedModel([
    { text: 'Half of it', fail: 'overloaded', retryAfterMs: 1 },
    { text: 'All of it.' },
  ])
  return defineAgent({ name: 'teller', instructions: 'Answer.', model })
}
