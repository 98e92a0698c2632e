import type { ModelRequest } from '@tallystick/core'
import { describe, expect, it } from 'vitest'
import { type AiSdkOptions, type AiSdkWarning, fromAiSdk } from '../src/ai-sdk.ts'
import { collect, request } from './kit/collect.ts'
import type { Loose } from './kit/loose.ts'

const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 } }
const hello = (warnings: readonly object[] = []): readonly object[] => [
  { type: 'stream-start', warnings },
  { type: 'text-start', id: '1' },
  { type: 'text-delta', id: '1', delta: 'Hello' },
  { type: 'text-end', id: '1' },
  { type: 'finish', usage, finishReason: { unified: 'stop', raw: 'stop' } },
]

/** A model of the AI SDK that answers so, and what it is asked. */
function scripted(more: Loose = {}, parts: readonly object[] = hello()) {
  const asked: Loose[] = []
  const model = {
    ...{ specificationVersion: 'v4', provider: 'test.chat', modelId: 'm' },
    doStream(options: Loose) {
      asked.push(options)
      return Promise.resolve({ stream: ReadableStream.from(parts) })
    },
    ...more,
  }
  return { asked, model: model as never }
}

/** The request that a model gets, and the warnings about it. */
async function askedOf(given: Partial<ModelRequest>, more: Loose = {}, options: AiSdkOptions = {}) {
  const { asked, model } = scripted(more)
  const warnings: AiSdkWarning[] = []
  const onWarning = (warning: AiSdkWarning) => void warnings.push(warning)
  await collect(fromAiSdk(model, { onWarning, ...options }), { ...request, ...given })
  return { asked: asked[0], warnings: warnings.map(({ what }) => what) }
}

describe('a file by its address', () => {
  const image = { type: 'image', mediaType: 'image/png', url: 'https://Files.example/a.png' } as const
  it.each<[patterns: Loose, isSent: boolean]>([
    [{ 'image/*': [/^https:\/\/files\.example\//] }, true],
    [{ 'image/png': [/^x/, /^https:/] }, true],
    [{ '*': [/^https:/] }, true],
    [{ '*/*': [/^https:/] }, true],
    [Promise.resolve({ '*': [/^https:/] }), true],
    [{ 'image/*': [/^https:\/\/other\.example\//] }, false],
    [{ 'image/*': [] }, false],
    [{ 'image/jpeg': [/^https:/] }, false],
    [{ 'image/p': [/^https:/] }, false],
    [{ 'application/*': [/^https:/], 'imag/*': [/^https:/] }, false],
    [{}, false],
    [undefined, false],
  ])('is left to a provider that fetches it, else told in words: %j', async (supportedUrls, isSent) => {
    const messages = [{ role: 'user' as const, parts: [image] }]
    const { asked } = await askedOf({ messages }, { supportedUrls })
    expect(asked.prompt.at(-1).content[0].type).toBe(isSent ? 'file' : 'text')
  })
})

describe('a sound', () => {
  const sound = { type: 'file', mediaType: 'audio/wav', data: 'aGk=' } as const
  it.each([
    ['google.generative-ai', true],
    ['openai.chat', true],
    ['openai.responses', false],
    ['my.google', false],
  ])('goes to providers that send it on: %s', async (provider, isSent) => {
    const messages = [{ role: 'user' as const, parts: [sound] }]
    const { asked } = await askedOf({ messages }, { provider })
    expect(asked.prompt.at(-1).content[0].type).toBe(isSent ? 'file' : 'text')
  })
})

describe('a name of a tool', () => {
  const longest = 'a'.repeat(64)
  it.each([
    ['google.generative-ai', ['a'.repeat(128), '_a.b:c-9'], ['a'.repeat(129), '9a', 'a/b']],
    ['anthropic.messages', ['a'.repeat(128), '9_a-b'], ['a'.repeat(129), 'a.b']],
    ['mistral.chat', [longest, '9_a-b'], [`${longest}a`, 'a.b']],
  ])('is what the vendor of %s takes', async (provider, kept, renamed) => {
    const tools = [...kept, ...renamed].map((name) => ({ name, description: '', inputSchema: {} }))
    const { asked, warnings } = await askedOf({ tools }, { provider })
    const names: readonly string[] = asked.tools.map(({ name }: Loose) => name)
    expect(tools.map(({ name }, place) => names[place] === name)).toEqual([
      ...kept.map(() => true),
      ...renamed.map(() => false),
    ])
    expect(warnings).toEqual(renamed.map(() => 'tool_name'))
  })

  it('follows the name that the options give the provider', async () => {
    const tools = [{ name: 'a'.repeat(100), description: '', inputSchema: {} }]
    const { asked } = await askedOf({ tools }, { provider: 'proxy.x' }, { provider: 'anthropic' })
    expect(asked.tools[0].name).toBe('a'.repeat(100))
  })
})

describe('the schema of an answer', () => {
  const outputSchema = { type: 'object', properties: { sum: { type: 'number' } } }
  const dropped = [{ type: 'unsupported', feature: 'responseFormat' }]
  const others = [
    { type: 'unsupported', feature: 'topK' },
    { type: 'other', message: 'responseFormat' },
  ]
  const unsaid: AiSdkOptions = {}

  it.each<[string, AiSdkOptions, model: Loose, warnings: readonly object[], inWords: readonly boolean[]]>([
    ['by itself', unsaid, {}, [], [false, false]],
    ['where the options want it so', { answerInInstructions: true }, {}, [], [true, true]],
    [
      'where the provider says that it drops it',
      unsaid,
      { supportsStructuredOutputs: false },
      [],
      [true, true],
    ],
    [
      'where the provider says that it passes it on',
      unsaid,
      { supportsStructuredOutputs: true },
      [],
      [false, false],
    ],
    ['from the first warning on', unsaid, {}, dropped, [false, true]],
    ['after other warnings', unsaid, {}, others, [false, false]],
    ['where the options forbid it', { answerInInstructions: false }, {}, dropped, [false, false]],
  ])('is put into the instructions or not: %s', async (...row) => {
    const [, options, more, received, inWords] = row
    const { asked, model } = scripted(more, hello(received))
    const warnings: string[] = []
    const adapter = fromAiSdk(model, { ...options, onWarning: ({ what }) => void warnings.push(what) })
    await collect(adapter, { ...request, outputSchema })
    await collect(adapter, { ...request, outputSchema })
    const reported = asked.map(({ prompt }) => prompt[0].content.includes('"sum"'))
    expect(reported).toEqual(inWords)
    expect(warnings.includes('output_schema')).toBe(inWords.includes(true))
    expect(asked.map(({ responseFormat }) => responseFormat.schema)).toEqual([outputSchema, outputSchema])
    const { failure } = await collect(adapter)
    expect([failure, asked[2].prompt[0].content]).toEqual([undefined, 'Be brief.'])
  })
})

describe('the headers of a provider', () => {
  const key = 'swordfish-is-my-key'
  const headers = { authorization: `Bearer ${key}` }
  it.each<[string, Loose, isStruck: boolean]>([
    ['an object', { config: { headers } }, true],
    ['a function', { config: { headers: () => headers } }, true],
    ['a promise', { config: { headers: () => Promise.resolve(headers) } }, true],
    [
      'a function that throws',
      {
        config: {
          headers: () => {
            throw new Error('no key')
          },
        },
      },
      false,
    ],
    ['not there', { config: {} }, false],
    ['below nothing', { config: null }, false],
  ])('are kept out of a failure where they can be read: %s', async (_, more, isStruck) => {
    const answer = {
      statusCode: 401,
      responseBody: JSON.stringify({ error: { message: `no ${key} known` } }),
    }
    const doStream = () =>
      Promise.reject(Object.assign(new Error('no'), { name: 'AI_APICallError', ...answer }))
    const { model } = scripted({ ...more, doStream })
    const { failure } = await collect(fromAiSdk(model))
    expect(failure?.message).toContain(isStruck ? 'no [struck out] known' : `no ${key} known`)
  })
})

it.each([
  ['test.chat', {}, 'test'],
  ['test', {}, 'test'],
  ['a.b.c', {}, 'a'],
  ['a.b', { provider: 'own' }, 'own'],
])('a model of %s is named with %j by the first word or the option', (provider, options, name) => {
  expect(fromAiSdk(scripted({ provider }).model, options)).toMatchObject({
    ...{ provider: name, api: 'ai-sdk', modelId: 'm' },
  })
})
