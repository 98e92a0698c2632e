import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { createRuntime, defineAgent, memoryLedger, type Model, type OutputSchema } from '@tallystick/core'
import type { JsonObject } from '@tallystick/core/vocabulary'
import { testTool } from '@tallystick/testkit'
import { expect, it } from 'vitest'
import { fromAiSdk } from '../src/ai-sdk.ts'
import { anthropic } from '../src/anthropic.ts'
import { ollama } from '../src/ollama.ts'
import { openai, openaiChat } from '../src/openai.ts'
import { serve, type Answer, type Loopback } from './kit/loopback.ts'
import { says } from './kit/says.ts'

const tools = [testTool({ name: 'count_stock' })]

const localModel = (baseURL: string) => createOpenAICompatible({ name: 'local', baseURL, apiKey: 'k' })('m')

/** A run whose answer has to fit a schema: its result, the request that its server got, and which part of it is on record. */
async function answered<Output>(
  modelAt: (server: Loopback) => Model,
  output: OutputSchema<Output>,
  answers: readonly Answer[],
  own: { readonly tools?: typeof tools } = {},
) {
  const server = await serve(...answers)
  const model = modelAt(server)
  const agent = defineAgent<Output>({ name: 'clerk', instructions: 'Be brief.', model, output, ...own })
  const ledger = memoryLedger()
  const run = createRuntime({ ledger }).run(agent, 'What is in stock?')
  const result = await run.result
  const events = await Array.fromAsync(ledger.read(run.id))
  const warnings = events.flatMap((event) =>
    event.type === 'assistant_started' ? [...(event.warnings ?? [])] : [],
  )
  return { result, warnings, bodies: server.arrivals.map(({ body }) => body) }
}

const list: JsonObject = { type: 'array', items: { type: 'string' } }
const record: JsonObject = { type: 'object', additionalProperties: { type: 'number' } }
const either: JsonObject = {
  anyOf: [
    { type: 'object', properties: { found: { type: 'string' } }, required: ['found'] },
    { type: 'object', properties: { missing: { const: true } }, required: ['missing'] },
  ],
}
const optional: JsonObject = {
  type: 'object',
  properties: { name: { type: 'string' }, note: { type: 'string' } },
  required: ['name'],
}
const inWords = [expect.stringContaining('was put into the instructions')]

it.each([
  ['a list', list, '["a"]', ['a']],
  ['a choice', either, '{"found":"a"}', { found: 'a' }],
])('Anthropic holds its model to %s in the vendor’s own way', async (_, schema, json, output) => {
  const at = ({ url }: Loopback) => anthropic('claude-test-1', { apiKey: 'k', baseURL: url })
  const { result, bodies, warnings } = await answered(at, schema, [says.anthropic(`{"answer":${json}}`)])
  expect(result).toMatchObject({ reason: 'answered', output })
  expect(bodies[0]?.['output_config'].format.schema).toMatchObject({ required: ['answer'] })
  expect(warnings).toEqual([])
})

it('Anthropic reads in its instructions a record, which it cannot be held to', async () => {
  const at = ({ url }: Loopback) => anthropic('claude-test-1', { apiKey: 'k', baseURL: url })
  const { result, bodies, warnings } = await answered(at, record, [says.anthropic('{"a":1}')])
  expect(result.output).toEqual({ a: 1 })
  expect(bodies[0]).not.toHaveProperty('output_config')
  expect(bodies[0]?.['system'][0].text).toMatch(/^Be brief\.\n\n.*\n\{.*"additionalProperties"/s)
  expect(warnings).toEqual(inWords)
})

it.each<[string, JsonObject, { json: string; output: unknown; strict: boolean }]>([
  ['a list', list, { json: '{"answer":["a"]}', output: ['a'], strict: true }],
  ['a choice', either, { json: '{"answer":{"missing":true}}', output: { missing: true }, strict: true }],
  ['a record', record, { json: '{"a":1}', output: { a: 1 }, strict: false }],
  ['an optional field', optional, { json: '{"name":"a","note":null}', output: { name: 'a' }, strict: true }],
])('OpenAI is sent %s on both wires', async (_, schema, { json, output, strict }) => {
  const responses = await answered(({ url }) => openai('gpt-test-1', { apiKey: 'k', baseURL: url }), schema, [
    says.responses(json),
  ])
  const chat = await answered(({ url }) => openaiChat('gpt-test-1', { apiKey: 'k', baseURL: url }), schema, [
    says.chat(json),
  ])
  expect(responses.result).toMatchObject({ reason: 'answered', turns: 1, output })
  expect(chat.result).toMatchObject({ reason: 'answered', turns: 1, output })
  const format = responses.bodies[0]?.['text'].format
  expect(format).toMatchObject({ type: 'json_schema', strict, schema: { type: 'object' } })
  expect(chat.bodies[0]?.['response_format'].json_schema).toMatchObject({ strict, schema: format.schema })
})

it('DeepSeek is held to JSON, and reads the schema in its instructions', async () => {
  const at = ({ url }: Loopback) =>
    openaiChat('deepseek-chat', { server: 'deepseek', apiKey: 'k', baseURL: url })
  const { result, bodies, warnings } = await answered(at, list, [says.chat('{"answer":["a"]}')])
  expect(result.output).toEqual(['a'])
  expect(bodies[0]?.['response_format']).toEqual({ type: 'json_object' })
  expect(bodies[0]?.['messages'][0]).toMatchObject({
    role: 'system',
    content: expect.stringContaining('"properties":{"answer":{"type":"array"'),
  })
  expect(warnings).toEqual(inWords)
})

it('Ollama reads the schema in its instructions beside tools, and is held to it without', async () => {
  const at = ({ url }: Loopback) => ollama('qwen-test', { baseURL: url })
  const beside = await answered(at, optional, [says.ollama('{"name":"a"}')], { tools })
  expect(beside.result.output).toEqual({ name: 'a' })
  expect(beside.bodies[0]).not.toHaveProperty('format')
  expect(beside.bodies[0]?.['messages'][0].content).toContain(JSON.stringify(optional))
  expect(beside.warnings).toEqual(inWords)
  const alone = await answered(at, optional, [says.ollama('{"name":"a"}')])
  expect(alone.bodies[0]?.['format']).toEqual(optional)
  expect(alone.bodies[0]?.['messages'][0].content).toBe('Be brief.')
  expect(alone.warnings).toEqual([])
})

it('a provider of the AI SDK that says it passes no schema on has a model that reads it in the instructions', async () => {
  const at = ({ url }: Loopback) => fromAiSdk(localModel(url))
  const { result, bodies, warnings } = await answered(at, list, [says.chat('{"answer":["a"]}')])
  expect(result).toMatchObject({ output: ['a'], turns: 1 })
  expect(bodies[0]?.['messages'][0].content).toContain('"properties":{"answer"')
  expect(warnings).toContainEqual(inWords[0])
})

it('one that only warns is found out, and its model reads the schema in the next request', async () => {
  const at = ({ url }: Loopback) => {
    const model = localModel(url)
    const { specificationVersion, provider, modelId } = model
    return fromAiSdk({ specificationVersion, provider, modelId, doStream: model.doStream.bind(model) })
  }
  const { result, bodies, warnings } = await answered(at, list, [
    says.chat('They have a.'),
    says.chat('{"answer":["a"]}'),
  ])
  expect(result).toMatchObject({ output: ['a'], turns: 2 })
  expect(JSON.stringify(bodies[0])).not.toContain('answer')
  expect(bodies[1]?.['messages'][0].content).toContain('"properties":{"answer"')
  expect(bodies[1]?.['messages'].at(-1).content).toContain('This is the schema')
  expect(warnings).toContainEqual(inWords[0])
})
