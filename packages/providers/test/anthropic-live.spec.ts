import { describe, expect, it } from 'vitest'
import { anthropic } from '../src/anthropic.ts'
import { answersTo, recordedReply } from './kit/answered.ts'
import { callsOf, collect, finished, lastUsage, request, textShown } from './kit/collect.ts'
import { user } from './kit/history.ts'

const modelId = process.env['ANTHROPIC_MODEL'] ?? 'claude-haiku-4-5'
const skipped = process.env['ANTHROPIC_API_KEY'] ? '' : ' (skipped: no ANTHROPIC_API_KEY)'
const tools = [
  {
    name: 'weather/now',
    description: 'Tells the weather in a city. Always use it when asked for weather.',
    inputSchema: {
      type: 'object',
      properties: { city: { type: 'string', minLength: 1 } },
      required: ['city'],
    },
  },
]

// Costs money and needs a key, so it runs only with one; the title says when the key is missing.
describe.skipIf(skipped)(`Anthropic itself${skipped}`, () => {
  it('answers, and says what it cost', async () => {
    const asked = { ...request, messages: [user('Say the word yes.')] }
    const { signals, failure } = await collect(anthropic(modelId), asked)
    expect(failure).toBeUndefined()
    expect(textShown(signals).toLowerCase()).toContain('yes')
    expect(lastUsage(signals)).toMatchObject({
      inputTokens: expect.any(Number),
      outputTokens: expect.any(Number),
    })
  })

  it.each([
    ['as it is told', {}],
    ['strictly', { strictTools: true }],
    ['eagerly', { eagerToolInputs: true }],
    ['after thinking', { thinking: { type: 'enabled', budgetTokens: 1024 } as const }],
  ])('calls a tool %s under its own name, and takes the result', async (_, options) => {
    const model = anthropic(modelId, options)
    const question = user('What is the weather in Seoul?')
    const first = await collect(model, { ...request, tools, messages: [question] })
    expect(callsOf(first.signals)).toMatchObject([
      { name: 'weather/now', input: { city: expect.any(String) } },
    ])
    const reply = recordedReply(model, finished(first.signals)!)
    const results = answersTo(reply, () => 'Sunny, 21 degrees.')
    const messages = [question, reply, { role: 'tool' as const, results }]
    const second = await collect(model, { ...request, tools, messages })
    expect(second.failure).toBeUndefined()
    expect(textShown(second.signals)).toContain('21')
  })

  it('fits its answer to a schema', async () => {
    const sum = { type: 'number', minimum: 0 }
    const outputSchema = { type: 'object', properties: { sum }, required: ['sum'] }
    const asked = { ...request, outputSchema, messages: [user('What is 2 + 3?')] }
    const { signals, failure } = await collect(anthropic(modelId), asked)
    expect(failure).toBeUndefined()
    expect(JSON.parse(textShown(signals))).toEqual({ sum: 5 })
  })
})
