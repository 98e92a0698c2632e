import type { Message } from '@tallystick/core'
import { describe, expect, it } from 'vitest'
import { ollama } from '../src/ollama.ts'
import { callsOf, collect, finished, lastUsage, request, textShown } from './kit/collect.ts'
import { user } from './kit/history.ts'
import { historyBehind } from './kit/owned-reply.ts'

const modelId = process.env['OLLAMA_MODEL'] ?? 'qwen3'
const skipped = process.env['OLLAMA_HOST'] ? '' : ' (skipped: no OLLAMA_HOST)'
const tools = [
  {
    name: 'weather/now',
    description: 'Tells the weather in a city. Always use it when asked for weather.',
    inputSchema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  },
]

// Needs a server with a model that can call tools, so it runs only where one is named; the title says when none is.
describe.skipIf(skipped)(`an Ollama server itself${skipped}`, () => {
  it('answers, and counts', async () => {
    const { signals, failure } = await collect(ollama(modelId), {
      ...request,
      messages: [user('Say the word yes.')],
    })
    expect(failure).toBeUndefined()
    expect(textShown(signals).toLowerCase()).toContain('yes')
    expect(lastUsage(signals)).toEqual({ inputTokens: expect.any(Number), outputTokens: expect.any(Number) })
  })

  it('calls a tool under its own name, and takes the result', async () => {
    const model = ollama(modelId)
    const first = await collect(model, {
      ...request,
      tools,
      messages: [user('What is the weather in Seoul?')],
    })
    expect(callsOf(first.signals)).toMatchObject([
      { name: 'weather/now', input: { city: expect.any(String) } },
    ])
    expect(finished(first.signals)?.stopReason).toBe('tool_use')
    const messages = historyBehind(model, first.signals).map(answered)
    const second = await collect(model, { ...request, tools, messages })
    expect(second.failure).toBeUndefined()
    expect(textShown(second.signals)).toContain('21')
  })

  it('refuses a prompt that does not fit, and cuts none', async () => {
    const messages = [user(`${'word '.repeat(4000)}\nWhat was the first word?`)]
    const { failure } = await collect(ollama(modelId, { contextTokens: 1024 }), { ...request, messages })
    expect(failure).toMatchObject({ class: 'context_overflow', retryable: false })
  })

  it('fits its answer to a schema', async () => {
    const outputSchema = { type: 'object', properties: { sum: { type: 'number' } }, required: ['sum'] }
    const { signals } = await collect(ollama(modelId), {
      ...request,
      outputSchema,
      messages: [user('What is 2 + 3?')],
    })
    expect(JSON.parse(textShown(signals))).toEqual({ sum: 5 })
  })
})

function answered(message: Message): Message {
  if (message.role !== 'tool') return message
  const content = [{ type: 'text' as const, text: 'Sunny, 21 degrees.' }]
  return { ...message, results: message.results.map((result) => ({ ...result, content })) }
}
