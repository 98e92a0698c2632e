import type { ProviderError } from '@tallystick/core'
import { openai, openaiChat, type OpenAIWarning } from '@tallystick/providers/openai'
import { describe, expect, it } from 'vitest'
import { cutsReply, isBroken, toStopReason } from '../src/openai/chat-stream.ts'
import { toStreamFailure } from '../src/openai/failure.ts'
import { resolveQuirks } from '../src/openai/options.ts'
import { toSamplingFields } from '../src/openai/request.ts'
import { findFallback } from '../src/openai/responses-request.ts'
import { callsOf, textShown, deltasOf } from './kit/collect.ts'
import { user } from './kit/history.ts'
import { foldResponse, foldChat } from './kit/openai-fold.ts'
import { chatBody } from './kit/openai-requests.ts'
import {
  added,
  args,
  completed,
  created,
  itemDone,
  said,
  chunk,
  content,
  delta,
  finish,
  role,
} from './kit/openai-streams.ts'

const words = (list: string): readonly string[] => list.trim().split(/\s+/)

describe('an end of a chat', () => {
  it.each([
    ...words('stop eos eos_token stop_sequence end_turn').map((raw) => [raw, 'end']),
    ...words('length max_tokens').map((raw) => [raw, 'max_tokens']),
    ['model_length', 'context_exceeded'],
    ['content_filter', 'content_filtered'],
    ...words('toString weary').map((raw) => [raw, 'other']),
    // Without a call there is nothing to use.
    ...words('tool_calls function_call tool_use').map((raw) => [raw, 'end']),
  ])('%s is %s', (raw = '', reason) => {
    expect(toStopReason(raw, false, false)).toBe(reason)
    const isPlain = reason === 'end'
    expect(toStopReason(raw, true, false)).toBe(isPlain ? 'tool_use' : reason)
    expect(toStopReason(raw, false, true)).toBe(isPlain ? 'refused' : reason)
  })

  it('cuts the reply, or breaks it off, or neither', () => {
    const all = words('stop tool_calls length max_tokens model_length content_filter toString weary')
    expect(all.filter(cutsReply)).toEqual(words('length max_tokens model_length content_filter'))
    const broken = words('error abort cancelled insufficient_system_resource')
    expect([...all, ...broken].filter(isBroken)).toEqual(broken)
  })
})

describe('the ways of a server', () => {
  const ways = resolveQuirks('openai', undefined)

  it('are those of OpenAI', () => {
    expect(ways).toEqual({
      ...{ systemRole: 'system', maxTokensField: 'max_completion_tokens', streamUsage: true },
      ...{ parallelToolCalls: true, toolChoice: 'all', structuredOutput: 'json_schema', strict: true },
      ...{ maxStop: 4, seedField: 'seed', callIds: 'any', toolNames: 'identifier', alternatingRoles: false },
      ...{ finishReasonOptional: false, replayReasoning: 'turns_with_calls', reasoningPlaceholder: false },
      ...{ readsArguments: false, signsCalls: false },
    })
    expect(resolveQuirks('azure', undefined)).toEqual(ways)
  })

  it('are those that a server is known for, where no others are given', () => {
    expect(resolveQuirks('xai', undefined)).toEqual({ ...ways, readsArguments: true })
    const given = { systemRole: 'developer', maxTokensField: 'max_completion_tokens' } as const
    expect(resolveQuirks('deepseek', given)).toMatchObject({ ...given, maxStop: 16, seedField: 'none' })
  })
})

describe('how a model is to write', () => {
  const ways = { maxStop: 2, seedField: 'random_seed' } as const
  const reported = (
    settings: Parameters<typeof toSamplingFields>[0],
    more: object = {},
    refused: string[] = [],
  ) => {
    const warnings: OpenAIWarning[] = []
    const fields = toSamplingFields(
      settings,
      { ...ways, ...more },
      { refused, warn: (each) => void warnings.push(each) },
    )
    return [fields, warnings.map(({ what, message }) => `${what}: ${message}`)]
  }

  it('goes by the fields of the server, as far as it has them', () => {
    expect(reported({ temperature: 0, topP: 0, stop: ['a', 'b'], seed: 0 })).toEqual([
      { temperature: 0, top_p: 0, stop: ['a', 'b'], random_seed: 0 },
      [],
    ])
    expect(reported({})).toStrictEqual([{}, []])
    expect(reported({ stop: ['a', 'b', 'c'] })).toEqual([
      { stop: ['a', 'b'] },
      ['model_settings: The server takes 2 texts that end a reply, so only the first 2 were sent.'],
    ])
    expect(reported({ stop: ['a'], seed: 1 }, { maxStop: 0, seedField: 'none' })).toEqual([
      {},
      [
        'model_settings: The service knows no texts that end a reply, so none were sent.',
        'model_settings: The server takes no seed, so none was sent.',
      ],
    ])
    expect(reported({}, { maxStop: 0, seedField: 'none' })).toEqual([{}, []])
    expect(reported({ temperature: 1, topP: 1 }, {}, ['temperature', 'seed'])).toEqual([
      { top_p: 1 },
      ['model_settings: The model takes no temperature, so it was left out.'],
    ])
  })
})

describe('a request that was refused for one thing', () => {
  const refused = (failure: ProviderError, body: object, changes: object = {}) =>
    findFallback({ failure, body, changes })
  const invalid = (message: string) => toStreamFailure({ code: 'x', type: 'invalid_request_error', message })
  const lost = toStreamFailure({ code: 'previous_response_not_found', message: 'x' })

  it('is made again without what the service has lost', () => {
    const reported = { now: { stateLost: true }, forGood: {}, warning: { what: 'state' } }
    expect(refused(lost, { previous_response_id: 'r' })).toMatchObject(reported)
    expect(refused(lost, { conversation: 'c' })).toMatchObject(reported)
    const gone = toStreamFailure({ code: 'conversation_not_found', message: 'x' })
    expect(refused(gone, { conversation: 'c' })).toMatchObject(reported)
    for (const message of [
      'The previous response was not found',
      'The conversation does not exist',
      'This conversation expired',
    ]) {
      expect(refused(invalid(message), { conversation: 'c' })).toMatchObject(reported)
    }
    expect(refused(lost, { input: [] })).toBeUndefined()
    expect(refused(lost, { conversation: 'c' }, { stateLost: true })).toBeUndefined()
    expect(refused(invalid('The tool was not found'), { conversation: 'c' })).toBeUndefined()
    expect(refused(invalid('The conversation is locked'), { conversation: 'c' })).toBeUndefined()
  })

  it('is made again, and every later one, without encrypted reasoning', () => {
    const failure = invalid('Encrypted content is not supported with this model')
    const without = { noEncryption: true }
    expect(refused(failure, { include: [] })).toMatchObject({ now: without, forGood: without })
    expect(refused(invalid('No reasoning.encrypted_content here'), { include: [] })).toMatchObject({
      ...{ now: without, warning: { what: 'reasoning' } },
    })
    expect(refused(failure, {})).toBeUndefined()
    expect(refused(failure, { include: [] }, without)).toBeUndefined()
    expect(refused(invalid('Another thing'), { include: [] })).toBeUndefined()
  })

  it('is made again, and every later one, without a field of how to write, one after another', () => {
    const failure = invalid("Unsupported parameter: 'top_p'")
    const before = { refused: ['temperature'] }
    const now = { refused: ['temperature', 'top_p'] }
    expect(refused(failure, { top_p: 1 }, before)).toEqual({ now, forGood: now })
    expect(refused(failure, { top_p: 1 })).toMatchObject({ now: { refused: ['top_p'] } })
    expect(refused(failure, { top_p: 1 }, { refused: ['top_p'] })).toBeUndefined()
  })

  it('is not made again for a failure of another kind', () => {
    const failure = toStreamFailure({ code: 'server_error', message: 'The conversation was not found' })
    expect(refused(failure, { conversation: 'c' })).toBeUndefined()
  })
})

describe('options that contradict each other, or are called otherwise', () => {
  it('a client together with what it would ignore is refused', () => {
    const client = {
      responses: { create: () => ({}) },
      chat: { completions: { create: () => ({}) } },
    } as never
    for (const more of [{ apiKey: 'k' }, { baseURL: 'http://x' }, { fetch }]) {
      expect(() => openai('m', { client, ...more })).toThrow('got a client together with')
      expect(() => openaiChat('m', { client, ...more })).toThrow('got a client together with')
    }
    expect([openai('m', { client }), openai('m', { apiKey: 'k', fetch })]).toHaveLength(2)
  })

  it('a conversation that is empty, or together with a chain, is refused', () => {
    expect(() => openai('m', { apiKey: 'k', conversation: 'c', chain: true })).toThrow('together with chain')
    expect(() => openai('m', { apiKey: 'k', conversation: ' ' })).toThrow(
      'conversation is a text; expected a text that is not empty',
    )
    expect([
      openai('m', { apiKey: 'k', conversation: 'c', chain: false }),
      openai('m', { apiKey: 'k', chain: true }),
    ]).toHaveLength(2)
  })

  it('a server of a name that is not known is refused', () => {
    expect(() => openaiChat('m', { apiKey: 'k', server: 'toString' as never })).toThrow(
      'which it does not know',
    )
  })
})

describe('a reply of OpenAI', () => {
  it('shows no input of pieces that come for a message, for a search of the provider, or without a text', () => {
    const item = { type: 'function_call', id: 'fc_1', call_id: 'call_1', name: 'a' }
    const { signals } = foldResponse([
      ...[created(), added(0, { type: 'message', id: 'msg_0', content: [] }), args(0, '{"lost":1}')],
      ...[said(0, 'Hello'), args(0, '{"lost":2}')],
      ...[added(1, item), args(1, ''), { ...args(1, ''), delta: 7 }, args(1, '{"x":1}')],
      ...[itemDone(1, { ...item, arguments: '{"x":1}' })],
      ...[added(2, { type: 'web_search_call', id: 'ws_2' }), args(2, '{"lost":3}'), completed()],
    ])
    expect(signals.filter(({ type }) => type === 'model_tool_input')).toEqual([
      expect.objectContaining({ text: '{"x":1}' }),
    ])
    expect(textShown(signals)).toBe('Hello')
    expect(callsOf(signals).map((call) => call.input)).toEqual([{ x: 1 }])
  })
})

describe('a stream of chats', () => {
  const first = (chunks: readonly object[]): unknown =>
    foldChat([...chunks, content('x'), finish('stop')]).signals[0]

  it('begins at the first chunk that names the reply or the model, or has a choice', () => {
    const started = { type: 'model_started' }
    expect(first([chunk([], { id: 'a', model: '' }), role])).toEqual({ ...started, providerMessageId: 'a' })
    expect(first([chunk([], { id: '', model: 'm' }), role])).toEqual({ ...started, servedModel: 'm' })
    expect(first([chunk([{ index: 0, delta: {} }], { id: '', model: '' }), role])).toEqual(started)
  })
})

describe('a stream of responses', () => {
  it('parts paragraphs of reasoning only where more of it comes', () => {
    const { signals } = foldResponse([
      ...[created(), added(0, { type: 'reasoning', id: 'rs_0', summary: [] })],
      ...[delta('reasoning_text', 0, 'So.'), { ...delta('reasoning_text', 0, ''), content_index: 1 }],
      completed(),
    ])
    expect(deltasOf(signals).get(0)).toBe('So.')
  })
})

describe('a server whose templates know only turns', () => {
  const image = { type: 'image' as const, mediaType: 'image/png', data: 'aGk=' }
  const pictured = { role: 'user' as const, parts: [image] }
  const part = { type: 'image_url', image_url: { url: 'data:image/png;base64,aGk=' } }
  const contentOf = (...messages: Parameters<typeof chatBody>[0]): unknown =>
    chatBody(messages, { server: 'vllm' }).messages[1].content

  it('gets texts and pictures of neighbours as parts of one message', () => {
    expect(contentOf(user('Look'), pictured)).toEqual([{ type: 'text', text: 'Look' }, part])
    expect(contentOf(pictured, user('Look'))).toEqual([part, { type: 'text', text: 'Look' }])
    expect(contentOf(pictured, pictured)).toEqual([part, part])
  })
})
