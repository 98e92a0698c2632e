import type { Message, Model } from '@tallystick/core'
import { describe, expect, it } from 'vitest'
import { openai, openaiChat } from '../src/openai.ts'
import { answersTo, recordedReply } from './kit/answered.ts'
import { callsOf, collect, finished, lastUsage, request, textShown } from './kit/collect.ts'
import { user } from './kit/history.ts'

const modelId = process.env['OPENAI_MODEL'] ?? 'gpt-5.4-mini'
const skipped = process.env['OPENAI_API_KEY'] ? '' : ' (skipped: no OPENAI_API_KEY)'
const tools = [
  {
    ...{
      name: 'weather/now',
      description: 'Tells the weather in a city. Always use it when asked for weather.',
    },
    inputSchema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  },
]

/** The history after a reply that called tools, each answered with the sun. */
function sunny(model: Model, question: Message, reply: NonNullable<ReturnType<typeof finished>>): Message[] {
  const recorded = recordedReply(model, reply)
  return [question, recorded, { role: 'tool', results: answersTo(recorded, () => 'Sunny, 21 degrees.') }]
}

const made: readonly (readonly [string, () => Model])[] = [
  ['Responses', () => openai(modelId, { reasoning: { effort: 'low', summary: 'auto' } })],
  ['Responses, chained', () => openai(modelId, { chain: true })],
  ['Chat Completions', () => openaiChat(modelId)],
]

// Costs money and needs a key, so it runs only with one; the title says when the key is missing.
describe.skipIf(skipped)(`OpenAI itself${skipped}`, () => {
  it.each(made)('over %s answers, and says what it cost', async (_, make) => {
    const { signals, failure } = await collect(make(), { ...request, messages: [user('Say the word yes.')] })
    expect(failure).toBeUndefined()
    expect(textShown(signals).toLowerCase()).toContain('yes')
    expect(lastUsage(signals)).toMatchObject({
      inputTokens: expect.any(Number),
      outputTokens: expect.any(Number),
    })
  })

  it.each(made)('over %s calls a tool under its own name, and takes the result', async (_, make) => {
    const model = make()
    const question = user('What is the weather in Seoul?')
    const first = await collect(model, { ...request, tools, messages: [question] })
    expect(callsOf(first.signals)).toMatchObject([
      { name: 'weather/now', input: { city: expect.any(String) } },
    ])
    const messages = sunny(model, question, finished(first.signals)!)
    const second = await collect(model, { ...request, tools, messages })
    expect(second.failure).toBeUndefined()
    expect(textShown(second.signals)).toContain('21')
  })

  it.each(made)('over %s fits its answer to a schema', async (_, make) => {
    const outputSchema = { type: 'object', properties: { sum: { type: 'number' } }, required: ['sum'] }
    const asked = { ...request, outputSchema, messages: [user('What is 2 + 3?')] }
    const { signals } = await collect(make(), asked)
    expect(JSON.parse(textShown(signals))).toEqual({ sum: 5 })
  })
})
