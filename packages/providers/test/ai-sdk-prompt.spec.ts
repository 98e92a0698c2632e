import type { ModelRequest } from '@tallystick/core'
import type { UserPart } from '@tallystick/core/vocabulary'
import { describe, expect, it } from 'vitest'
import { renderCall, type CallSettings, type Reader } from './kit/ai-sdk-call.ts'
import { request } from './kit/collect.ts'
import { assistant, call, result, results, user } from './kit/history.ts'
import type { Loose } from './kit/loose.ts'

const reader: Reader = {
  ...{ provider: 'test', modelId: 'm-1', version: 'v4', audio: false },
  fetches: (_mediaType, url) => url.startsWith('https://'),
}
const own = { provider: 'test', api: 'ai-sdk', modelId: 'm-1' }

const rendered = (
  more: Partial<ModelRequest>,
  given: CallSettings = {},
  other: Partial<Reader> = {},
): Loose => renderCall({ ...request, instructions: '', ...more }, { ...reader, ...other }, given).call

/** How one part of the user goes out. */
const sent = (part: object, other: Partial<Reader> = {}): Loose => {
  const messages = [{ role: 'user' as const, parts: [part as UserPart] }]
  return rendered({ messages }, {}, other).prompt[0].content[0]
}

const data = 'aGk='
const leftOut = {
  type: 'text',
  text: expect.stringMatching(/^\[The .* cannot be shown here and was left out\.\]$/),
}

describe('an image', () => {
  it.each([
    ['image/jpeg', 'image/jpeg'],
    ['image/png', 'image/png'],
    ['image/gif', 'image/gif'],
    ['image/webp', 'image/webp'],
    ['image/jpg', 'image/jpeg'],
    [' Image/PNG ; q=1', 'image/png'],
  ])('of the type %s goes out as %s', (mediaType, wireType) => {
    expect(sent({ type: 'image', mediaType, data })).toEqual({
      ...{ type: 'file', mediaType: wireType, data: { type: 'data', data } },
    })
  })

  it.each(['image/bmp', 'application/pdf', 'image/'])('of the type %s is left out', (mediaType) => {
    expect(sent({ type: 'image', mediaType, data })).toEqual(leftOut)
  })

  it('asks for the detail in the words of its provider, where one is given', () => {
    expect(sent({ type: 'image', mediaType: 'image/png', data, detail: 'low' })).toMatchObject({
      ...{ type: 'file', providerOptions: { test: { imageDetail: 'low' } } },
    })
    expect(sent({ type: 'image', mediaType: 'image/png', data })).not.toHaveProperty('providerOptions')
  })

  it.each([
    ['no bytes', { data: '' }],
    ['nothing', {}],
    ['what is not a Base64', { data: 'a b=' }],
    ['three fillers', { data: 'aG===' }],
    ['an address that is none', { url: 'https://' }],
    ['an address that is not fetched', { url: 'http://example.org/a.png' }],
    ['an address beside bytes that is not fetched', { url: 'http://example.org/a.png', data }],
  ])('is left out where it has %s', (_what, more) => {
    expect(sent({ type: 'image', mediaType: 'image/png', ...more })).toEqual(leftOut)
  })
})

describe('a file that a provider keeps', () => {
  const kept = (provider: string) => ({
    ...{ type: 'file', mediaType: 'Application/X-any', providerFile: { provider, id: 'file_1' }, name: 'a' },
  })

  it('goes to it by its id, of any type', () => {
    expect(sent(kept('test'))).toEqual({
      ...{ type: 'file', mediaType: 'application/x-any', filename: 'a' },
      data: { type: 'reference', reference: { test: 'file_1' } },
    })
  })

  it('is left out where another one keeps it, or the interface has no word for it', () => {
    expect(sent(kept('other'))).toEqual(leftOut)
    expect(sent(kept('test'), { version: 'v3' })).toEqual(leftOut)
  })
})

describe('a sound', () => {
  it.each(['audio/wav', 'audio/mpeg'])('of the type %s goes to a provider that takes sounds', (mediaType) => {
    const sound = { type: 'file', mediaType, data }
    expect(sent(sound, { audio: true })).toMatchObject({ type: 'file', mediaType })
    expect(sent(sound)).toEqual(leftOut)
    expect(sent({ ...sound, mediaType: 'video/mp4' }, { audio: true })).toEqual(leftOut)
  })
})

describe('a file of text', () => {
  const file = (mediaType: string, text: string, more: object = {}) =>
    sent({ type: 'file', mediaType, data: btoa(text), ...more })

  it.each([
    ...['text/plain', 'text/csv', 'application/json', 'application/xml', 'application/yaml'],
    ...['application/x-yaml', 'application/javascript', 'application/typescript', 'application/toml'],
    ...['application/x-ndjson', 'application/sql', 'APPLICATION/JSON; charset=utf-8'],
  ])('is read out: %s', (mediaType) => {
    expect(file(mediaType, 'a: 1')).toEqual({ type: 'text', text: 'a: 1' })
  })

  it('has its name before it, and letters beyond ASCII', () => {
    expect(file('text/plain', 'a', { name: 'a.txt' })).toEqual({ type: 'text', text: 'a.txt:\na' })
    const bytes = btoa(String.fromCharCode(...new TextEncoder().encode('größe')))
    expect(sent({ type: 'file', mediaType: 'text/plain', data: bytes })).toEqual({
      ...{ type: 'text', text: 'größe' },
    })
  })

  it.each([
    ['of another type', { mediaType: 'application/jsonish' }],
    ['which is blank', { data: btoa(' \n') }],
    ['whose bytes are no Base64', { data: 'a b' }],
    ['whose Base64 has no such length', { data: 'aaaaa' }],
    ['which is empty', { data: '' }],
  ])('is left out: %s', (_what, more) => {
    expect(sent({ type: 'file', mediaType: 'text/plain', data, ...more })).toEqual(leftOut)
    expect(sent({ type: 'image', mediaType: 'text/plain', data })).toEqual(leftOut)
  })
})

describe('the result of a tool', () => {
  const output = (content: Loose, version: 'v3' | 'v4', outcome = 'success'): Loose => {
    const answer = result(1, { content, outcome: outcome as 'success' })
    const messages = [user('x'), assistant([call(1, 'a')], { model: own }), results(answer)]
    return rendered({ messages }, {}, { version }).prompt[2].content[0].output
  }
  const [one, two] = ['one', 'two'].map((text) => ({ type: 'text', text }))
  const pdf = { type: 'file', mediaType: 'application/pdf' }

  it('is one text where it is all text, without what is blank', () => {
    expect(output([one, { type: 'text', text: ' ' }, two], 'v4')).toEqual({ type: 'text', value: 'one\ntwo' })
  })

  it('is text, too, where it is an error, and says the outcome where nothing else does', () => {
    expect(output([one, { ...pdf, data }, two], 'v4', 'failed')).toEqual({
      ...{ type: 'error-text', value: 'one\ntwo' },
    })
    expect(output([], 'v4', 'denied')).toEqual({
      ...{ type: 'error-text', value: 'The call ended as denied, without output.' },
    })
  })

  it('holds files in the words of version 3', () => {
    const url = 'https://example.org/a.pdf'
    expect(output([one, { ...pdf, data }, { ...pdf, url }], 'v3')).toEqual({
      type: 'content',
      value: [one, { type: 'file-data', data, mediaType: 'application/pdf' }, { type: 'file-url', url }],
    })
  })
})

describe('what a reply holds of the provider itself', () => {
  const back = (part: object, opaque: object = own): Loose => {
    const kept = {
      type: 'provider' as const,
      kind: 'x',
      opaque: { ...own, ...opaque, data: { part } } as Loose,
    }
    const reply = assistant([{ type: 'text', text: 'a' }, kept], { model: own })
    return rendered({ messages: [user('x'), reply] }).prompt[1].content.slice(1)
  }

  it.each(['custom', 'file', 'reasoning-file'])('goes back whole, as %s', (type) => {
    expect(back({ type, x: 1 })).toEqual([{ type, x: 1 }])
    expect(back({ type, x: 1 }, { provider: 'other' })).toEqual([])
    expect(back({ type, x: 1 }, { api: 'other' })).toEqual([])
  })

  it.each([
    ['a call without an id', { type: 'tool-call', toolName: 'search', input: '{}' }],
    ['a call without a name', { type: 'tool-call', toolCallId: 's1', input: '{}' }],
    ['a result without an id', { type: 'tool-result', toolName: 'search', result: 1 }],
    ['a result without a name', { type: 'tool-result', toolCallId: 's1', result: 1 }],
    ['what has no type', { x: 1 }],
    ['what is of another type', { type: 'source' }],
  ])('is left out: %s', (_what, part) => {
    expect(back(part)).toEqual([])
  })

  it.each([
    ['{"q":1}', { q: 1 }],
    ['{"q"', {}],
    [undefined, {}],
  ])('has the input %j as %j', (input, read) => {
    const asked = { type: 'tool-call', toolCallId: 's1', toolName: 'search', ...(input && { input }) }
    expect(back(asked)).toMatchObject([{ type: 'tool-call', input: read, providerExecuted: true }])
  })

  it('is an error only where it says so', () => {
    const answer = { type: 'tool-result', toolCallId: 's1', toolName: 'search', result: [1] }
    const types = [true, false, 'true', undefined].map(
      (isError) => back({ ...answer, isError })[0].output.type,
    )
    expect(types).toEqual(['error-json', 'json', 'json', 'json'])
  })
})

describe('the settings of a call', () => {
  const messages = [user('x')]

  it('are those of the request over those of the model, each alone', () => {
    const settings = { temperature: 1, seed: 1, topK: 5 }
    const modelSettings = { temperature: 0, topP: 0.5, stop: ['END'], seed: 0 }
    expect(rendered({ messages, modelSettings }, { settings })).toMatchObject({
      ...{ temperature: 0, topP: 0.5, stopSequences: ['END'], seed: 0, topK: 5 },
    })
    expect(rendered({ messages, modelSettings: { stop: [] } }, { settings })).not.toHaveProperty(
      'stopSequences',
    )
  })

  it('have the limit of whichever sets one', () => {
    expect(rendered({ messages, maxOutputTokens: 5 }).maxOutputTokens).toBe(5)
    expect(rendered({ messages }, { maxOutputTokens: 6 }).maxOutputTokens).toBe(6)
    expect(rendered({ messages })).not.toHaveProperty('maxOutputTokens')
  })

  it('ask for one call at a time, unless the options of the provider say otherwise', () => {
    const tools = [{ name: 'look', description: ' ', inputSchema: {} }]
    const providerOptions = { openai: { parallelToolCalls: true }, anthropic: 'odd' }
    expect(
      rendered({ messages, tools, parallelToolCalls: false }, { providerOptions }).providerOptions,
    ).toEqual({
      ...{ openai: { parallelToolCalls: true }, anthropic: 'odd' },
    })
    expect(rendered({ messages, tools, parallelToolCalls: true })).not.toHaveProperty('providerOptions')
    expect(rendered({ messages, tools }).tools).toEqual([
      { type: 'function', name: 'look', inputSchema: { type: 'object' } },
    ])
  })

  it.each([
    ['anthropic', 'a'.repeat(128), true],
    ['anthropic', 'a'.repeat(129), false],
    ['anthropic', 'a.b', false],
    ['google', 'a.b:c-d', true],
    ['google', 'g'.repeat(128), true],
    ['google', '1a', false],
    ['other', 'a'.repeat(64), true],
    ['other', 'a'.repeat(65), false],
  ])('name the tools as %s takes them: %s, as it is: %s', (provider, name, isKept) => {
    const tools = [{ name, description: 'Looks.', inputSchema: {} }]
    const [tool] = rendered({ messages, tools }, {}, { provider }).tools
    expect(tool.name === name).toBe(isKept)
    expect(tool.description).toBe('Looks.')
  })

  it('say the schema of an answer in words, too, where the provider does not pass it on', () => {
    const outputSchema = { type: 'object', properties: { warm: { type: 'boolean' } } }
    const asked = rendered({ messages, outputSchema }, { answerInWords: true })
    expect(asked.prompt[0]).toEqual({ role: 'system', content: expect.stringContaining('"warm"') })
    expect(rendered({ messages, outputSchema }).prompt[0].role).toBe('user')
    expect(rendered({ messages }, { answerInWords: true }).prompt[0].role).toBe('user')
  })
})
