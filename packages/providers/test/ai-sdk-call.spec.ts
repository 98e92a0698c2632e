import { createAnthropic } from '@ai-sdk/anthropic'
import { createOpenAI } from '@ai-sdk/openai'
import { ConfigurationError, type Message, type ModelRequest } from '@tallystick/core'
import { describe, expect, it } from 'vitest'
import { renderCall, type CallSettings, type Reader } from './kit/ai-sdk-call.ts'
import { type AiSdkWarning, fromAiSdk } from '../src/ai-sdk.ts'
import { sseBytes } from './kit/bytes.ts'
import { collect, request } from './kit/collect.ts'
import { assistant, call, id, result, results, user } from './kit/history.ts'
import { serve } from './kit/loopback.ts'
import { done, start, stop, textBlock } from './kit/streams.ts'
import type { Loose } from './kit/loose.ts'

const reader: Reader = {
  ...{ provider: 'test.chat', modelId: 'm-1', version: 'v4', audio: false },
  fetches: (mediaType, url) => mediaType === 'image/png' && url.startsWith('https://'),
}
const own = { provider: 'test.chat', api: 'ai-sdk', modelId: 'm-1' }
const rendered = (
  more: Partial<ModelRequest> = {},
  given: CallSettings = {},
  version: 'v3' | 'v4' = 'v4',
): Loose => renderCall({ ...request, ...more }, { ...reader, version }, given).call
const prompt = (messages: readonly Message[], version: 'v3' | 'v4' = 'v4'): Loose =>
  rendered({ messages, instructions: '' }, {}, version).prompt
const opaque = (data: Loose) => ({ provider: 'test.chat', api: 'ai-sdk', data })

describe('a call', () => {
  it('holds the instructions, the history, and nothing that was not asked for', () => {
    expect(rendered()).toEqual({
      prompt: [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: [{ type: 'text', text: 'Hello' }] },
      ],
      includeRawChunks: true,
    })
  })

  it('holds what the options say, the smaller limit winning', () => {
    const reported = { providerOptions: { openai: { store: false } }, headers: { 'x-team': 'blue' } }
    const given = { ...reported, maxOutputTokens: 500, settings: { temperature: 0, seed: 7 } }
    expect(rendered({ maxOutputTokens: 700 }, given)).toMatchObject({
      ...reported,
      ...{ temperature: 0, seed: 7, maxOutputTokens: 500 },
    })
    expect(rendered({ maxOutputTokens: 300 }, given).maxOutputTokens).toBe(300)
  })

  it('asks for JSON of a schema', () => {
    const outputSchema = { type: 'object', properties: { warm: { type: 'boolean' } } }
    expect(rendered({ outputSchema }).responseFormat).toEqual({ type: 'json', schema: outputSchema })
  })

  const tools = [{ name: 'files/read', description: '', inputSchema: { properties: {} } }]
  it('offers tools under names that vendors take, and says which may be called', () => {
    const asked = (toolChoice: ModelRequest['toolChoice']) => rendered({ tools, toolChoice })
    const { name, ...tool } = asked({ type: 'auto' }).tools[0]
    expect(name).toMatch(/^files_read_[0-9a-f]{8}$/)
    expect(tool).toEqual({ type: 'function', inputSchema: { type: 'object', properties: {} } })
    expect(asked({ type: 'auto' }).toolChoice).toEqual({ type: 'auto' })
    expect(asked({ type: 'none' })).toMatchObject({ toolChoice: { type: 'none' }, tools: [{ name }] })
    expect(asked({ type: 'any' }).toolChoice).toEqual({ type: 'required' })
    expect(asked({ type: 'tool', name: 'files/read' }).toolChoice).toEqual({ type: 'tool', toolName: name })
  })

  it('asks for one call at a time in the words of those that know how, beside the caller’s own', () => {
    const given = { providerOptions: { openai: { store: false }, google: { x: 1 } } }
    expect(rendered({ tools, parallelToolCalls: false }, given).providerOptions).toEqual({
      anthropic: { disableParallelToolUse: true },
      openai: { parallelToolCalls: false, store: false },
      google: { x: 1 },
    })
    expect(rendered({ parallelToolCalls: false })).not.toHaveProperty('providerOptions')
  })

  it('names the tools of the past, where none is offered any more', () => {
    const messages = [user('x'), assistant([call(1, 'a')]), results(result(1))]
    expect(rendered({ messages })).toMatchObject({
      tools: [{ name: 'get_weather' }],
      toolChoice: { type: 'none' },
    })
  })
})

describe('a history', () => {
  it('gives each part of a reply what its provider left on it', () => {
    const metadata = { test: { signature: 's' } }
    const reply = assistant(
      [
        { type: 'reasoning', text: 'hm', opaque: opaque({ metadata }) },
        { type: 'text', text: 'Yes', opaque: opaque({ metadata: { test: { itemId: 'msg_1' } } }) },
        call(1, 'call_a', { opaque: opaque({ metadata: { test: { itemId: 'fc_1' } } }) }),
      ],
      { model: own, stopReason: 'tool_use' },
    )
    expect(prompt([user('x'), reply, results(result(1))]).slice(1)).toEqual([
      {
        role: 'assistant',
        content: [
          { type: 'reasoning', text: 'hm', providerOptions: metadata },
          { type: 'text', text: 'Yes', providerOptions: { test: { itemId: 'msg_1' } } },
          {
            ...{ type: 'tool-call', toolCallId: 'call_a', toolName: 'get_weather', input: { city: 'Seoul' } },
            providerOptions: { test: { itemId: 'fc_1' } },
          },
        ],
      },
      {
        role: 'tool',
        content: [
          {
            ...{ type: 'tool-result', toolCallId: 'call_a', toolName: 'get_weather' },
            output: { type: 'text', value: '21 degrees' },
          },
        ],
      },
    ])
  })

  it.each([
    ['another provider', { ...own, provider: 'other.chat' }, false],
    ['another wire', { ...own, api: 'messages' }, false],
    ['another model of the provider', { ...own, modelId: 'm-2' }, true],
  ])('of %s has its words, without its thinking', (_, model, metadataStays) => {
    const left = { provider: model.provider, api: model.api, data: { metadata: { test: { x: 1 } } } }
    const reply = assistant(
      [
        { type: 'reasoning', text: 'hm', opaque: left },
        { type: 'text', text: 'Yes', opaque: left },
        { type: 'provider', kind: 'source', opaque: left },
      ],
      { model },
    )
    const options = metadataStays ? { providerOptions: { test: { x: 1 } } } : {}
    expect(prompt([user('x'), reply])[1].content).toEqual([{ type: 'text', text: 'Yes', ...options }])
  })

  it('returns what the provider’s own tools were asked and answered, and leaves out what has no way back', () => {
    const part = (data: Loose) => ({ type: 'provider' as const, kind: data.part.type, opaque: opaque(data) })
    const reply = assistant(
      [
        part({
          part: { type: 'tool-call', toolCallId: 's1', toolName: 'web_search', input: '{"q":1}' },
          metadata: { test: { c: 1 } },
        }),
        part({ part: { type: 'tool-result', toolCallId: 's1', toolName: 'web_search', result: [1] } }),
        part({
          part: {
            type: 'tool-result',
            toolCallId: 's2',
            toolName: 'web_search',
            result: 'no',
            isError: true,
          },
        }),
        part({ part: { type: 'custom', kind: 'test.compaction' }, metadata: { test: { x: 1 } } }),
        part({ part: { type: 'source', id: 'u' } }),
        part({ part: { type: 'tool-call', toolCallId: 's3' } }),
      ],
      { model: own },
    )
    expect(prompt([user('x'), reply])[1].content).toEqual([
      {
        ...{
          type: 'tool-call',
          toolCallId: 's1',
          toolName: 'web_search',
          input: { q: 1 },
          providerExecuted: true,
        },
        providerOptions: { test: { c: 1 } },
      },
      { type: 'tool-result', toolCallId: 's1', toolName: 'web_search', output: { type: 'json', value: [1] } },
      {
        type: 'tool-result',
        toolCallId: 's2',
        toolName: 'web_search',
        output: { type: 'error-json', value: 'no' },
      },
      { type: 'custom', kind: 'test.compaction', providerOptions: { test: { x: 1 } } },
    ])
  })

  it('begins with the user, leaves out empty replies and cut thinking, and blanks nothing', () => {
    const hm = { type: 'reasoning' as const, text: 'hm', opaque: opaque({ metadata: { test: {} } }) }
    const messages = [
      assistant([{ type: 'text', text: 'Hi' }, hm], { model: own }),
      user(' '),
      assistant([hm], { model: own, partial: true }),
      user('half \ud83d a pair'),
    ]
    expect(prompt(messages)).toEqual([
      { role: 'user', content: [{ type: 'text', text: '(The conversation begins here.)' }] },
      { role: 'assistant', content: [{ type: 'text', text: 'Hi' }] },
      { role: 'user', content: [{ type: 'text', text: '(The message is empty.)' }] },
      { role: 'user', content: [{ type: 'text', text: 'half \ufffd a pair' }] },
    ])
  })

  it('gives each call an id of its own, the provider’s where that is free', () => {
    const reply = assistant([call(1, 'call_a'), call(2, 'call_a')], { model: own })
    const [, said, answered] = prompt([user('x'), reply, results(result(1), result(2))])
    expect(said.content.map((part: Loose) => part.toolCallId)).toEqual(['call_a', id(2)])
    expect(answered.content.map((part: Loose) => part.toolCallId)).toEqual(['call_a', id(2)])
  })

  it('tells of errors as such', () => {
    const reply = assistant([call(1, 'a'), call(2, 'b'), call(3, 'c')], { model: own })
    const answers = [
      result(1, { outcome: 'failed', content: [{ type: 'text', text: 'Boom.' }] }),
      result(2, { outcome: 'interrupted', content: [] }),
      result(3, { content: [] }),
    ]
    expect(
      prompt([user('x'), reply, results(...answers)])[2].content.map((part: Loose) => part.output),
    ).toEqual([
      { type: 'error-text', value: 'Boom.' },
      { type: 'error-text', value: 'The call ended as interrupted, without output.' },
      { type: 'text', value: '' },
    ])
  })
})

describe('files', () => {
  const parts = (...given: Loose[]) => [{ role: 'user' as const, parts: given }]
  const png = { type: 'image', mediaType: 'image/png', data: 'aGk=' }
  const address = { type: 'image', mediaType: 'image/png', url: 'https://example.org/a.png' }
  const pdf = { type: 'file', mediaType: 'application/pdf', data: 'aGk=', name: 'a.pdf' }

  it('are said in the words of the interface', () => {
    expect(prompt(parts(png, address, pdf))[0].content).toEqual([
      { type: 'file', mediaType: 'image/png', data: { type: 'data', data: 'aGk=' } },
      { type: 'file', mediaType: 'image/png', data: { type: 'url', url: new URL(address.url) } },
      { type: 'file', mediaType: 'application/pdf', data: { type: 'data', data: 'aGk=' }, filename: 'a.pdf' },
    ])
    expect(prompt(parts(png, address, pdf), 'v3')[0].content).toEqual([
      { type: 'file', mediaType: 'image/png', data: 'aGk=' },
      { type: 'file', mediaType: 'image/png', data: new URL(address.url) },
      { type: 'file', mediaType: 'application/pdf', data: 'aGk=', filename: 'a.pdf' },
    ])
  })

  it.each([
    [
      'v4',
      { type: 'file', mediaType: 'image/png', data: { type: 'data', data: 'aGk=' } },
      { type: 'file', mediaType: 'image/png', data: { type: 'url', url: new URL(address.url) } },
    ],
    [
      'v3',
      { type: 'image-data', mediaType: 'image/png', data: 'aGk=' },
      { type: 'image-url', url: address.url },
    ],
  ] as const)('of a tool are in its result, %s', (version, data, url) => {
    const content = [png, { type: 'text', text: 'see' }, address] as Loose
    const messages = [user('x'), assistant([call(1, 'a')], { model: own }), results(result(1, { content }))]
    expect(prompt(messages, version)[2].content[0].output).toEqual({
      ...{ type: 'content', value: [data, { type: 'text', text: 'see' }, url] },
    })
  })

  it.each([
    [
      'an address that the provider does not fetch',
      { ...address, url: 'http://example.org/a.png' },
      'at http://example.org/a.png',
    ],
    ['an SVG', { ...png, mediaType: 'image/svg+xml' }, 'image/svg+xml'],
    ['a zip', { ...pdf, mediaType: 'application/zip' }, '"a.pdf" of type application/zip'],
    ['data that is not Base64', { ...png, data: 'not base64!' }, 'image/png'],
  ])('that cannot be sent are described in words: %s', (_, part, words) => {
    const [said] = prompt(parts(part))[0].content
    expect(said.type).toBe('text')
    expect(said.text).toContain(words)
  })

  it('of text are read out', () => {
    const data = btoa('{"a": 1}')
    expect(
      prompt(parts({ type: 'file', mediaType: 'application/json', data, name: 'a.json' }))[0].content,
    ).toEqual([{ type: 'text', text: 'a.json:\n{"a": 1}' }])
  })
})

describe('a model of the AI SDK', () => {
  const answer = { pieces: [sseBytes([start(), ...textBlock(0, 'Hello'), done('end_turn'), stop])] }

  it('keeps its names, and asks its vendor in its own way', async () => {
    const server = await serve(answer)
    const model = fromAiSdk(
      createAnthropic({ apiKey: 'key-1', baseURL: `${server.url}/v1` })('claude-test-1'),
      {
        maxOutputTokens: 700,
        headers: { 'x-team': 'blue' },
        providerOptions: { anthropic: { thinking: { type: 'enabled', budgetTokens: 1024 } } },
      },
    )
    expect(model).toMatchObject({ provider: 'anthropic', api: 'ai-sdk', modelId: 'claude-test-1' })
    const other = createOpenAI({ apiKey: 'k' }).chat('gpt-test')
    expect(fromAiSdk(other).provider).toBe('openai')
    expect(fromAiSdk(other, { provider: 'my-gateway' }).provider).toBe('my-gateway')
    const { completed } = await collect(model)
    expect(completed).toBe(true)
    expect(server.arrivals[0]?.headers['x-team']).toBe('blue')
    expect(server.arrivals[0]?.body).toMatchObject({
      model: 'claude-test-1',
      stream: true,
      thinking: { type: 'enabled', budget_tokens: 1024 },
      system: [{ type: 'text', text: 'Be brief.' }],
    })
  })

  it('holds its answer to a schema, as its vendor can', async () => {
    const server = await serve({ pieces: ['data: [DONE]\n\n'] })
    const outputSchema = {
      type: 'object',
      properties: { warm: { type: 'boolean' } },
      additionalProperties: false,
    }
    await collect(fromAiSdk(createOpenAI({ apiKey: 'k', baseURL: server.url }).chat('gpt-test')), {
      ...request,
      outputSchema,
    })
    expect(server.arrivals[0]?.body['response_format']).toMatchObject({
      type: 'json_schema',
      json_schema: { schema: outputSchema },
    })
  })

  it('tells once of what it could not do', async () => {
    const server = await serve(answer)
    const reported: AiSdkWarning[] = []
    const model = fromAiSdk(createAnthropic({ apiKey: 'k', baseURL: `${server.url}/v1` })('claude-test-1'), {
      settings: { seed: 7 },
      maxOutputTokens: 1000,
      onWarning: (warning) => reported.push(warning),
    })
    const { signals } = await collect(model)
    await collect(model)
    expect(reported).toEqual([{ what: 'unsupported', message: 'seed' }])
    const usage = signals.findLast((signal) => signal.type === 'model_usage')
    expect(usage?.raw).toMatchObject({
      input_tokens: 12,
      warnings: [{ type: 'unsupported', feature: 'seed' }],
    })
  })

  it('of an interface that we do not know is refused at once, and so are options that cannot work', () => {
    const model = {
      specificationVersion: 'v2',
      provider: 'x',
      modelId: 'y',
      doStream: () => Promise.reject(),
    }
    expect(() => fromAiSdk(model)).toThrow(/interface v2/)
    const known = { ...model, specificationVersion: 'v4' }
    expect(() => fromAiSdk(known, { maxOutputTokens: 0.5 })).toThrow(ConfigurationError)
    expect(() => fromAiSdk(known, { idleTimeoutMs: 0 })).toThrow(ConfigurationError)
  })
})
