import type { LanguageModelV4StreamPart } from '@ai-sdk/provider'
import type { ProviderError } from '@tallystick/core'
import type { ModelSignal } from '@tallystick/core/vocabulary'
import { describe, expect, it } from 'vitest'
import { AiSdkReader } from '../src/ai-sdk/stream.ts'
import { createToolNames } from '../src/shared/request.ts'
import { callsOf, deltasOf, finished, lastUsage } from './kit/collect.ts'
import type { Loose } from './kit/loose.ts'

/** All signals of a stream, and the error that ended it, if one did. */
function fold(
  parts: readonly Loose[],
  { endOfStreamIsEnd = false, tools = [] as readonly string[] } = {},
): { signals: ModelSignal[]; error?: ProviderError } {
  const names = createToolNames(tools, { maxLength: 64 })
  const reply = new AiSdkReader({
    provider: 'test.chat',
    names,
    endOfStreamIsEnd,
    now: () => 0,
    warn: () => {},
  })
  const signals: ModelSignal[] = []
  try {
    for (const part of parts) {
      for (const signal of reply.read(part as LanguageModelV4StreamPart)) signals.push(signal)
    }
    return { signals }
  } catch (error) {
    return { signals, error: error as ProviderError }
  }
}

const none = { total: undefined, noCache: undefined, cacheRead: undefined, cacheWrite: undefined }
const done = (unified: string, raw?: string, usage: Loose = {}) => ({
  type: 'finish',
  finishReason: { unified, raw },
  usage: {
    inputTokens: none,
    outputTokens: { total: undefined, text: undefined, reasoning: undefined },
    ...usage,
  },
})
const text = (id: string, ...words: string[]) => [
  { type: 'text-start', id },
  ...words.map((delta) => ({ type: 'text-delta', id, delta })),
  { type: 'text-end', id },
]
const call = (toolCallId: string, toolName: string, input: string, more: object = {}) => ({
  ...{ type: 'tool-call', toolCallId, toolName, input },
  ...more,
})
const opaque = (data: object) => ({ provider: 'test.chat', api: 'ai-sdk', data })

describe('text and reasoning', () => {
  it('of two blocks at once are kept apart by their ids, kinds having ids of their own', () => {
    const { signals } = fold([
      { type: 'reasoning-start', id: '0' },
      { type: 'text-start', id: '0' },
      { type: 'reasoning-delta', id: '0', delta: 'h' },
      { type: 'text-delta', id: '0', delta: 'Y' },
      { type: 'reasoning-delta', id: '0', delta: 'm' },
      { type: 'text-delta', id: '0', delta: 'es' },
      done('stop', 'stop'),
    ])
    expect([...deltasOf(signals)]).toEqual([
      [0, 'hm'],
      [1, 'Yes'],
    ])
    expect(finished(signals)?.parts).toEqual([
      { type: 'reasoning', text: 'hm', part: 0 },
      { type: 'text', text: 'Yes', part: 1 },
    ])
  })

  it('under an id that was used before are a new part', () => {
    const { signals } = fold([...text('0', 'a'), ...text('0', 'b'), done('stop', 'stop')])
    expect(finished(signals)?.parts.map((part) => [part.part, 'text' in part && part.text])).toEqual([
      [0, 'a'],
      [1, 'b'],
    ])
  })

  it('without an opening are a part all the same', () => {
    const { signals } = fold([{ type: 'text-delta', id: '7', delta: 'a' }, done('stop', 'stop')])
    expect(finished(signals)?.parts).toEqual([{ type: 'text', text: 'a', part: 0 }])
  })

  it('keep what the provider said of them last, and the citations', () => {
    const { signals } = fold([
      { type: 'reasoning-start', id: '0', providerMetadata: { test: { early: true } } },
      { type: 'reasoning-delta', id: '0', delta: '', providerMetadata: { test: { signature: 's' } } },
      { type: 'reasoning-end', id: '0' },
      { type: 'text-start', id: '1' },
      { type: 'text-delta', id: '1', delta: 'a' },
      {
        ...{ type: 'text-end', id: '1', providerMetadata: { test: { itemId: 'msg_1', gone: undefined } } },
        citations: [{ source: { type: 'source', sourceType: 'url', id: 's', url: 'https://example.org/' } }],
      },
      done('stop', 'stop'),
    ])
    expect(finished(signals)?.parts).toEqual([
      { type: 'reasoning', text: '', part: 0, opaque: opaque({ metadata: { test: { signature: 's' } } }) },
      {
        ...{ type: 'text', text: 'a', part: 1, citations: [{ url: 'https://example.org/' }] },
        opaque: opaque({
          metadata: { test: { itemId: 'msg_1' } },
          citations: [
            { source: { type: 'source', sourceType: 'url', id: 's', url: 'https://example.org/' } },
          ],
        }),
      },
    ])
  })
})

describe('a call', () => {
  it('streams its input, and is requested when the reply has proved whole, under its name here', () => {
    const wireName = createToolNames(['files/read'], { maxLength: 64 }).toWire('files/read')
    const { signals } = fold(
      [
        { type: 'tool-input-start', id: 'c1', toolName: wireName },
        { type: 'tool-input-delta', id: 'c1', delta: '{"a"' },
        { type: 'tool-input-delta', id: 'c1', delta: ': 1}' },
        { type: 'tool-input-end', id: 'c1' },
        call('c1', wireName, '{"a": 1}', { providerMetadata: { test: { itemId: 'fc_1' } } }),
        ...text('0', 'So'),
        done('tool-calls', 'tool_use'),
      ],
      { tools: ['files/read'] },
    )
    const order = signals.map(({ type }) => type)
    expect(order.indexOf('model_tool_request')).toBe(order.length - 2)
    const requested = {
      ...{ type: 'tool_call', providerCallId: 'c1', name: 'files/read', input: { a: 1 } },
      opaque: opaque({ metadata: { test: { itemId: 'fc_1' } } }),
    }
    expect(callsOf(signals)).toEqual([requested])
    expect(finished(signals)).toMatchObject({
      stopReason: 'tool_use',
      parts: [
        { ...requested, part: 0 },
        { type: 'text', part: 1 },
      ],
    })
    expect(signals.filter(({ type }) => type === 'model_tool_input')).toEqual([
      { type: 'model_tool_input', part: 0, name: 'files/read', text: '{"a"' },
      { type: 'model_tool_input', part: 0, name: 'files/read', text: ': 1}' },
    ])
  })

  it.each([
    ['', {}, undefined],
    [' ', {}, undefined],
    ['{}', {}, undefined],
    ['{"a": ', {}, { text: '{"a": ', error: 'The input is not valid JSON.' }],
    ['"text"', {}, { text: '"text"', error: 'The input is valid JSON, but not an object.' }],
  ])('with the input %j has %j, malformed: %j', (written, input, malformed) => {
    const [asked] = callsOf(fold([call('c1', 'f', written), done('tool-calls', 'x')]).signals)
    expect(asked).toEqual({
      ...{ type: 'tool_call', providerCallId: 'c1', name: 'f', input },
      ...(malformed && { malformed }),
    })
  })

  it.each(['length', 'content-filter'])(
    'that cannot be read is gone from a reply that was cut by %s',
    (unified) => {
      const parts = [call('c1', 'f', '{"a": 1}'), call('c2', 'f', '{"a": '), done(unified, 'x')]
      const { signals } = fold(parts)
      expect(callsOf(signals).map(({ providerCallId }) => providerCallId)).toEqual(['c1'])
      expect(finished(signals)?.parts).toHaveLength(1)
    },
  )

  it('that began and never came is not part', () => {
    const { signals } = fold([{ type: 'tool-input-start', id: 'c1', toolName: 'f' }, done('stop', 'stop')])
    expect(finished(signals)).toMatchObject({ stopReason: 'end', parts: [] })
  })

  it('whose input streams as text shows none of it', () => {
    const { signals } = fold([
      { type: 'tool-input-start', id: 'c1', toolName: 'f', inputEncoding: 'text' },
      { type: 'tool-input-delta', id: 'c1', delta: 'SELECT' },
      call('c1', 'f', '"SELECT"'),
      done('tool-calls', 'x'),
    ])
    expect(signals.map(({ type }) => type)).not.toContain('model_tool_input')
    expect(callsOf(signals)[0]?.malformed?.text).toBe('"SELECT"')
  })
})

describe('what is the provider’s own', () => {
  it('is kept whole, in place, under its kind, and is not a call of ours', () => {
    const result = { type: 'tool-result', toolCallId: 's1', toolName: 'web_search', result: [{ url: 'x' }] }
    const { signals } = fold([
      { type: 'tool-input-start', id: 's1', toolName: 'web_search', providerExecuted: true },
      { type: 'tool-input-delta', id: 's1', delta: '{}' },
      call('s1', 'web_search', '{}', { providerExecuted: true }),
      { ...result, result: 'half', preliminary: true },
      { ...result, providerMetadata: { test: { x: 1 } } },
      { type: 'source', sourceType: 'url', id: 'u', url: 'https://example.org/' },
      { type: 'file', mediaType: 'image/png', data: { type: 'data', data: new Uint8Array([104, 105]) } },
      { type: 'custom', kind: 'test.compaction', providerMetadata: { test: { content: 'x' } } },
      { type: 'hologram', depth: 3 },
      { type: 'custom', kind: 'test.message_start' },
      done('stop', 'stop'),
    ])
    expect(callsOf(signals)).toEqual([])
    expect(finished(signals)).toMatchObject({ stopReason: 'end' })
    expect(
      finished(signals)?.parts.map((part) => [part.type === 'provider' && part.kind, part.opaque?.data]),
    ).toEqual([
      ['tool-call', { part: call('s1', 'web_search', '{}', { providerExecuted: true }) }],
      ['tool-result', { metadata: { test: { x: 1 } }, part: result }],
      ['source', { part: { type: 'source', sourceType: 'url', id: 'u', url: 'https://example.org/' } }],
      ['file', { part: { type: 'file', mediaType: 'image/png', data: { type: 'data', data: 'aGk=' } } }],
      ['custom', { metadata: { test: { content: 'x' } }, part: { type: 'custom', kind: 'test.compaction' } }],
      ['hologram', { part: { type: 'hologram', depth: 3 } }],
    ])
  })
})

describe('the beginning', () => {
  it('names the message and the model that serves it, once', () => {
    const { signals } = fold([
      { type: 'stream-start', warnings: [] },
      { type: 'response-metadata', id: 'msg_1', modelId: 'served-1' },
      { type: 'response-metadata', id: 'msg_1', modelId: 'served-1' },
      ...text('0', 'a'),
      done('stop', 'stop'),
    ])
    expect(signals[0]).toEqual({ type: 'model_started', providerMessageId: 'msg_1', servedModel: 'served-1' })
    expect(signals.filter(({ type }) => type === 'model_started')).toHaveLength(1)
    expect(finished(signals)?.providerMessageId).toBe('msg_1')
  })

  it('is the first that is said, where the provider says nothing of itself', () => {
    const { signals } = fold([...text('0', 'a'), done('stop', 'stop')])
    expect(signals[0]).toEqual({ type: 'model_started' })
    expect(fold([done('stop', 'stop')]).signals.map(({ type }) => type)).toEqual([
      'model_started',
      'model_finished',
    ])
  })
})

describe('the end', () => {
  it.each([
    ['stop', 'end_turn', 'end'],
    ['stop', undefined, 'end'],
    ['length', 'max_tokens', 'max_tokens'],
    ['content-filter', 'content_filter', 'content_filtered'],
    ['content-filter', 'refusal', 'refused'],
    ['tool-calls', 'tool_use', 'tool_use'],
    ['stop', 'pause_turn', 'paused'],
    ['other', 'compaction', 'compacted'],
    ['length', 'model_context_window_exceeded', 'context_exceeded'],
    ['other', 'weary', 'other'],
    ['other', 'toString', 'other'],
  ])('%s (%s) is %s', (unified, raw, stopReason) => {
    const { signals } = fold([...text('0', 'a'), done(unified, raw)])
    expect(finished(signals)).toMatchObject({ stopReason, ...(raw && { rawStopReason: raw }) })
    expect(Object.keys(finished(signals)!)).toHaveLength(3 + (raw ? 1 : 0) + (raw === 'refusal' ? 1 : 0))
  })

  it('of a reply with calls of ours is one that waits for them', () => {
    expect(finished(fold([call('c', 'f', '{}'), done('stop', 'stop')]).signals)?.stopReason).toBe('tool_use')
    expect(finished(fold([call('c', 'f', '{}'), done('length', 'x')]).signals)?.stopReason).toBe('max_tokens')
  })

  it.each([
    ['interrupted', undefined],
    ['interrupted', 'x'],
    ['other', undefined],
  ])('that is %s (%s) proves nothing, and no call of the reply is requested', (unified, raw) => {
    const parts = [...text('0', 'a'), call('c', 'f', '{}'), done(unified, raw)]
    const { signals, error } = fold(parts)
    expect(error).toMatchObject({ class: 'truncated', retryable: true })
    expect(callsOf(signals)).toEqual([])
    const lenient = fold(parts, { endOfStreamIsEnd: true })
    expect(lenient.error).toBeUndefined()
    expect(finished(lenient.signals)?.stopReason).toBe('tool_use')
  })

  it('in an error is a failure of the server', () => {
    const { error } = fold([...text('0', 'a'), done('error', 'engine_stopped')])
    expect(error).toMatchObject({ class: 'server', retryable: true })
    expect(error?.message).toContain('engine_stopped')
  })

  it('is final, and so is an error', () => {
    const { signals } = fold([done('stop', 'stop'), ...text('0', 'late'), done('stop', 'stop')])
    expect(signals.at(-1)?.type).toBe('model_finished')
    const { error } = fold([
      { type: 'error', error: { type: 'overloaded_error', message: 'Busy' } },
      done('stop', 'stop'),
    ])
    expect(error).toMatchObject({ class: 'overloaded', retryable: true })
  })

  it('counts what the provider counted, and keeps its own object and what it did not support', () => {
    const warnings = [{ type: 'unsupported', feature: 'seed' }]
    const usage = {
      inputTokens: { total: 120, noCache: 20, cacheRead: 90, cacheWrite: 10 },
      outputTokens: { total: 50, text: undefined, reasoning: 30 },
      raw: { input_tokens: 20, gone: undefined },
    }
    const { signals } = fold([{ type: 'stream-start', warnings }, done('stop', 'stop', usage)])
    expect(lastUsage(signals)).toEqual({
      ...{
        inputTokens: 120,
        outputTokens: 50,
        cacheReadTokens: 90,
        cacheWriteTokens: 10,
        reasoningTokens: 30,
      },
    })
    expect(signals.find((signal) => signal.type === 'model_usage')?.raw).toEqual({
      input_tokens: 20,
      warnings,
    })
  })

  it('that counts nothing reports no usage', () => {
    const usage = { inputTokens: { ...none, total: Number.NaN } }
    expect(lastUsage(fold([done('stop', 'stop', usage)]).signals)).toBeUndefined()
  })
})
