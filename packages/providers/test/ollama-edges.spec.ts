import type { Message, ModelRequest } from '@tallystick/core'
import type { JsonObject } from '@tallystick/core/vocabulary'
import { ollama } from '@tallystick/providers/ollama'
import { afterEach, describe, expect, it, vi } from 'vitest'
import {
  toAnsweredFailure,
  toStreamFailure,
  readHost,
  isAddress,
  toProviderError,
  type WireRequest,
} from '../src/ollama/client.ts'
import { findContextTokens, wasPromptCut } from '../src/ollama/stream.ts'
import { renderRequest } from '../src/ollama/request.ts'
import { toToolSchema } from '../src/ollama/tools.ts'
import { collect, finished, request } from './kit/collect.ts'
import { assistant, call, id, result, results, user } from './kit/history.ts'
import type { Loose } from './kit/loose.ts'
import { done, fold, settings, text } from './kit/ollama-lines.ts'

const own = { provider: 'ollama', api: 'chat', modelId: 'qwen-test' }
const body = (messages: readonly Message[], more: Partial<ModelRequest> = {}): Loose =>
  renderRequest({ ...request, instructions: '', messages, ...more }, settings).body
const sent = (...messages: readonly Message[]): Loose[] => body(messages).messages

describe('a request to Ollama', () => {
  it('describes the answer that is wanted in words where tools are shown', () => {
    const outputSchema = { type: 'object', properties: { warm: { type: 'boolean' } } }
    const tools = [{ name: 'f', description: '', inputSchema: {} }]
    const [system] = body([user('x')], { instructions: 'Be brief.', outputSchema, tools }).messages
    expect(system.role).toBe('system')
    expect(system.content).toContain('Be brief.')
    expect(system.content).toContain(JSON.stringify(outputSchema))
  })

  it('keeps names and ids of 64 characters, and no longer ones', () => {
    const tools = [64, 65].map((length) => ({
      ...{ name: 'f'.repeat(length), description: '', inputSchema: {} },
    }))
    const names = body([user('x')], { tools }).tools.map((tool: Loose) => tool.function.name)
    expect(names[0]).toBe('f'.repeat(64))
    expect(names[1]).not.toBe('f'.repeat(65))
    const asked = assistant([call(1, 'c'.repeat(64)), call(2, 'd'.repeat(65))], { model: own })
    const [, reply] = sent(user('x'), asked, results(result(1), result(2)))
    expect(reply?.tool_calls.map((each: Loose) => each.id)).toEqual(['c'.repeat(64), id(2)])
  })

  it('takes an id of a call for the server’s own only where this wire gave it', () => {
    const asked = assistant([call(1, 'call_1')], { model: { ...own, api: 'generate' } })
    const [, reply, answer] = sent(user('x'), asked, results(result(1)))
    expect([reply?.tool_calls[0].id, answer?.tool_call_id]).toEqual([id(1), id(1)])
  })

  it('leaves out thinking of blanks, and says where a message is empty', () => {
    const blank = assistant(
      [
        { type: 'reasoning', text: ' \n' },
        { type: 'text', text: 'Yes' },
      ],
      { model: own },
    )
    expect(sent(user(' '), blank)).toEqual([
      { role: 'user', content: '(The message is empty.)' },
      { role: 'assistant', content: 'Yes' },
    ])
    const picture = { type: 'image' as const, mediaType: 'image/png', data: 'aGk=' }
    expect(sent({ role: 'user', parts: [{ type: 'text', text: ' ' }, picture] })).toEqual([
      { role: 'user', content: '', images: ['aGk='] },
    ])
  })

  it.each(['text/csv', 'application/json', 'application/xml', 'application/x-yaml', 'application/sql'])(
    'reads out a file of %s, and none whose content it does not have',
    (mediaType) => {
      const read = (more: object): string =>
        sent({ role: 'user', parts: [{ type: 'file', mediaType, ...more } as never] })[0]?.content as string
      expect(read({ data: 'aGk=' })).toBe('hi')
      expect(read({ data: 'aGk=', name: 'a.txt' })).toBe('a.txt:\nhi')
      for (const more of [{ data: 'aGk' }, { data: '' }, { url: 'https://example.org/a' }, { data: '?!' }]) {
        expect(read(more)).toContain('was left out')
      }
    },
  )

  it('shows the pictures of all results after them, and names whose they are', () => {
    const picture = (data: string, mediaType = 'image/png') => ({ type: 'image' as const, mediaType, data })
    const words = { type: 'text' as const, text: 'Here.' }
    const asked = assistant([call(1, 'a'), call(2, 'b'), call(3, 'c')], { model: own })
    const all = sent(
      user('x'),
      asked,
      results(
        result(1, { name: 'f', content: [words, picture('aGk='), picture('aGkh')] }),
        result(2, { name: 'g', content: [picture('aGk=', 'image/svg+xml')] }),
        result(3, { name: 'h', outcome: 'failed', content: [picture('aGk=')] }),
      ),
    )
    const [first, second, third, pictures] = all.slice(2)
    expect(first?.content).toBe('Here.\n[See the image below.]\n[See the image below.]')
    expect(second?.content).toContain('was left out')
    expect(third?.content).toBe('Error (failed): [See the image below.]')
    expect(pictures).toEqual({
      ...{ role: 'user', content: '[Images in the results of: f, h]', images: ['aGk=', 'aGkh', 'aGk='] },
    })
    const drawing = results(result(1, { content: [picture('aGk=', 'image/svg+xml')] }))
    expect(sent(user('x'), assistant([call(1, 'a')], { model: own }), drawing)).toHaveLength(3)
  })
})

describe('a schema of a tool for Ollama', () => {
  const property = (schema: Loose, root: JsonObject = {}): unknown =>
    (toToolSchema({ properties: { a: schema }, ...root }).schema['properties'] as Loose).a

  it.each<[string, Loose, unknown]>([
    ['a constant of null', { const: null }, { enum: [null] }],
    [
      'any of and one of, which become one list',
      { anyOf: [{ type: 'string' }], oneOf: [{ const: 1 }] },
      { anyOf: [{ type: 'string' }, { enum: [1] }] },
    ],
    ['any of alone', { anyOf: [{ const: 1 }, true] }, { anyOf: [{ enum: [1] }, {}] }],
    ['any of that is not a list', { anyOf: 'x', oneOf: 'y', allOf: {} }, { anyOf: [] }],
    ['items', { type: 'array', items: { const: 1 } }, { type: 'array', items: { enum: [1] } }],
    ['properties of another kind', { properties: 'x' }, { properties: 'x' }],
    [
      'properties of properties',
      { properties: { b: { properties: { c: { const: 1 } } } } },
      { properties: { b: { properties: { c: { enum: [1] } } } } },
    ],
    [
      'all of, in which the first word counts',
      {
        description: 'A.',
        type: 'object',
        required: ['x', 'y'],
        allOf: [{ type: 'string', description: 'B.', required: ['y', 'z'] }, { description: 'C.' }],
      },
      { description: 'A. B. C.', type: 'object', required: ['x', 'y', 'z'] },
    ],
    ['all of with a description in one', { allOf: [{}, { description: 'B.' }] }, { description: 'B.' }],
    ['all of with nothing in it', { allOf: [{}, {}] }, {}],
    [
      'all of with properties of one name',
      { properties: { x: { type: 'string' } }, allOf: [{ properties: { x: { type: 'number' } } }] },
      { properties: { x: { type: 'number' } } },
    ],
    ['rules without a description', { maximum: 3 }, { description: 'Rules: {"maximum":3}' }],
    [
      'several rules',
      { description: 'Days.', minimum: 1, maximum: 3 },
      { description: 'Days. Rules: {"minimum":1,"maximum":3}' },
    ],
    [
      'more properties of a kind',
      { additionalProperties: { type: 'string' } },
      { description: 'Rules: {"additionalProperties":{"type":"string"}}' },
    ],
    [
      'more properties beside another rule',
      { additionalProperties: false, minProperties: 1 },
      { description: 'Rules: {"minProperties":1}' },
    ],
    [
      'what says nothing',
      Object.fromEntries(
        ['$schema', '$id', '$anchor', '$comment', '$defs', 'definitions', 'title', 'default', 'examples'].map(
          (key) => [key, 'x'],
        ),
      ),
      {},
    ],
  ])('has %s', (_, schema, expected) => {
    expect(property(schema)).toEqual(expected)
  })

  it('is found by references with escapes, and by one to the whole', () => {
    const $defs = {
      'a b': { const: 1 },
      'a~b': { const: 2 },
      'a/b': { const: 3 },
      deep: { er: { const: 4 } },
    }
    const at = ($ref: string): unknown => property({ $ref }, { $defs })
    expect(['#/$defs/a%20b', '#/$defs/a~0b', '#/$defs/a~1b', '#/$defs/deep/er'].map(at)).toEqual([
      ...[{ enum: [1] }, { enum: [2] }, { enum: [3] }, { enum: [4] }],
    ])
    let whole: Loose = toToolSchema({ type: 'object', properties: { self: { $ref: '#' } } }).schema
    for (let depth = 0; depth < 4; depth++) whole = whole.properties.self
    expect(whole).toEqual({ description: 'A #, as above.' })
  })

  it('counts each reference for itself, and keeps a description beside one that is cut', () => {
    const $defs = {
      a: { properties: { next: { $ref: '#/$defs/b' } } },
      b: { properties: { next: { $ref: '#/$defs/a', description: 'Back.' } } },
    }
    let at: Loose = property({ $ref: '#/$defs/a' }, { $defs })
    for (let depth = 0; depth < 5; depth++) at = at.properties.next
    expect(at).toEqual({ ...{ properties: { next: { description: 'Back.' } } } })
  })

  it('names each keyword once that is in words, at whatever depth', () => {
    const { inWords, schema } = toToolSchema({
      ...{ type: 'array', description: 'All.', minProperties: 1 },
      properties: { a: { minimum: 1, items: { pattern: 'x' } }, b: { minimum: 2 } },
    })
    expect(inWords).toEqual(['pattern', 'minimum', 'minProperties'])
    expect(schema).toMatchObject({ type: 'object', description: 'All. Rules: {"minProperties":1}' })
  })
})

describe('a context that was too small', () => {
  const asked = (more: Partial<WireRequest> = {}): WireRequest => ({
    ...{ model: 'm', messages: [], stream: true, truncate: false, shift: false, options: { num_ctx: 4096 } },
    ...more,
  })
  const half = 2050
  // An empty list of tools has two bytes.
  const longest = 2.5 * 4096 - 2

  it('is known where the prompt that was cut to half of it has more bytes than could fit', () => {
    const said = (content: string, more: object = {}) =>
      wasPromptCut(asked({ messages: [{ role: 'user', content, ...more }] }), half)
    expect([said('a'.repeat(longest)), said('a'.repeat(longest + 1))]).toEqual([false, true])
    expect([said('é'.repeat(longest / 2)), said('é'.repeat(longest / 2 + 1))]).toEqual([false, true])
    expect(said('a', { thinking: 'a'.repeat(longest) })).toBe(true)
    const long = { id: '1', function: { name: 'f', arguments: { a: 'a'.repeat(longest) } } }
    expect(said('', { tool_calls: [long] })).toBe(true)
    expect(wasPromptCut(asked({ tools: [{ a: 'a'.repeat(longest) }] }), half)).toBe(true)
  })

  it('is not known without a count, or without the size that was asked for', () => {
    expect(wasPromptCut(asked(), undefined)).toBe(false)
    expect(wasPromptCut(asked({ options: { num_ctx: '4096' } }), 4096)).toBe(false)
    expect(wasPromptCut(asked({ truncate: true }), 4096)).toBe(false)
  })

  it('has the size that was asked for, but for a prompt that is longer', () => {
    const sizes = [undefined, 1, 4096, 4097].map((tokens) => findContextTokens(asked(), tokens))
    expect(sizes).toEqual([4096, 4096, 4096, undefined])
    expect(findContextTokens(asked({ options: {} }), 1)).toBeUndefined()
    const given = { ...settings, extraBody: { truncate: true } }
    const { signals } = fold([text('a'), done('length', { prompt_eval_count: 4096 })], { given })
    expect(finished(signals)?.stopReason).toBe('context_exceeded')
  })
})

describe('a failure of Ollama', () => {
  it.each([
    ['the slot was unauthorized', 'authentication', false],
    ['rate limit of the account', 'rate_limited', true],
    ['usage limit of the account', 'rate_limited', true],
    ['too many requests', 'rate_limited', true],
    ['cudaMalloc failed: out of memory', 'server', false],
    ['timeout of the runner', 'timeout', true],
    ['maximum pending requests exceeded', 'overloaded', true],
    ['exceed_context_size', 'context_overflow', false],
    ['the context size is too small', 'context_overflow', false],
  ])('in the stream is known by its words: %s', (words, failureClass, retryable) => {
    expect(toStreamFailure(words)).toMatchObject({ class: failureClass, retryable })
  })

  const refused = (text: string, given: Record<string, string> = {}, status = 500) =>
    toAnsweredFailure({ status, headers: new Headers(given), text, now: 0 })

  it.each([
    ['{"error":"{not json"}', '{not json'],
    ['"just a text"', 'just a text'],
    ['{"message":"without an error"}', 'without an error'],
    ['{"error":{"message":"m","type":"t"}}', 'm (t)'],
    ['{"error":{"message":"m"}}', 'm'],
    ['{"error":{"error":{"message":"deep"}}}', 'deep'],
    ['{"error":"{\\"error\\":\\"within\\"}"}', 'within'],
  ])('shows the words of %s', (text, words) => {
    expect(refused(text).message).toContain(`Ollama answered 500: ${words}`)
  })

  it.each(['', 'no json', '{"error":7}', '[]', '{"error":{"type":"t"}}', '7', 'null'])(
    'has no words of %j',
    (text) => {
      expect(refused(text).message).toMatch(/^Ollama answered 500\. /)
    },
  )

  it('stays as it is where it is one already', () => {
    const failure = toStreamFailure('x')
    expect(toProviderError(failure)).toBe(failure)
  })

  it('says what to do about it', () => {
    const advice = (status: number): string => refused('', {}, status).message
    expect(advice(503)).toContain('OLLAMA_MAX_QUEUE')
    expect(advice(504)).toContain('loading a model can take minutes')
    expect(advice(413)).toContain('raise contextTokens')
    expect(advice(500)).toContain('see the log of the server')
    expect(advice(404)).toContain('ollama pull')
    expect(advice(401)).toContain('ollama signin')
    expect(advice(403)).toContain('its plan')
  })

  it('of a reply without any message says that no line held one', () => {
    const { error } = fold([{ model: 'm' }, { done: true }])
    expect(String(error)).toContain('No line of the stream holds a message')
    expect(fold([{ message: 'text', done: true }]).error).toMatchObject({ class: 'protocol' })
    expect(fold([{ message: {}, done: true, done_reason: 'stop' }]).error).toBeUndefined()
  })

  it('reads of an endless page only its beginning, and leaves the rest', async () => {
    let [pieces, cancelled] = [0, false]
    const page = new ReadableStream<Uint8Array>(
      {
        pull(controller) {
          pieces++
          controller.enqueue(new TextEncoder().encode('x'.repeat(1024)))
        },
        cancel: () => void (cancelled = true),
      },
      { highWaterMark: 0 },
    )
    const fetch = async () => new Response(page, { status: 500 })
    const { failure } = await collect(ollama('qwen-test', { fetch }))
    expect(failure).toMatchObject({ class: 'server', status: 500 })
    expect([pieces, cancelled]).toEqual([64, true])
  })
})

describe('the address of an Ollama server', () => {
  afterEach(() => void vi.unstubAllEnvs())

  it('is what the option says, or else what the environment says', () => {
    vi.stubEnv('OLLAMA_HOST', 'http://there')
    expect(readHost({ baseURL: 'http://here' })).toBe('http://here')
    expect(readHost({})).toBe('http://there')
    vi.stubEnv('OLLAMA_HOST', '')
    expect(readHost({})).toBeUndefined()
  })

  it('may be without a scheme, or a port alone', () => {
    for (const host of [':11434', 'localhost:11434', 'localhost', 'https://a.example/b', '127.0.0.1:1']) {
      expect([host, isAddress(host)]).toEqual([host, true])
    }
    for (const host of [':x', 'http://', 'a b', 'http://a:x', 'a:x:']) {
      expect([host, isAddress(host)]).toEqual([host, false])
    }
  })
})
