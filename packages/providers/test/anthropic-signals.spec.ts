import { ProviderError, type ModelSignal } from '@tallystick/core'
import { describe, expect, it } from 'vitest'
import { readEvent, startReply } from '../src/anthropic/signals.ts'
import type { WireEvent } from '../src/anthropic/wire.ts'
import { toolNames } from '../src/shared/tool-names.ts'
import { callsOf, finished, lastUsage, textShown } from './kit/collect.ts'
import {
  close,
  delta,
  done,
  json,
  open,
  ping,
  rich,
  start,
  stop,
  text,
  textBlock,
  thinkingBlock,
  toolBlock,
} from './kit/streams.ts'
import type { Loose } from './kit/loose.ts'

/** All signals of a stream, and the error that ended it, if one did. */
function fold(
  events: readonly object[],
  names: readonly string[] = [],
): { signals: ModelSignal[]; error?: unknown } {
  const reply = startReply(toolNames(names, { lengthMax: 64 }))
  const signals: ModelSignal[] = []
  try {
    for (const event of events) signals.push(...readEvent(reply, event as WireEvent))
    return { signals }
  } catch (error) {
    return { signals, error }
  }
}

const opaque = (block: object, more: object = {}) => ({
  provider: 'anthropic',
  api: 'messages',
  data: { block, ...more },
})

describe('text', () => {
  it('streams as deltas of its part, and the finished part is their sum', () => {
    expect(fold([start(), ...textBlock(0, 'Hel', '', 'lo'), done('end_turn'), stop]).signals).toEqual([
      { type: 'model_started', providerMessageId: 'msg_1', servedModel: 'claude-test-1' },
      {
        type: 'model_usage',
        usage: { inputTokens: 12, outputTokens: 1 },
        raw: { input_tokens: 12, output_tokens: 1 },
      },
      { type: 'model_text', part: 0, text: 'Hel' },
      { type: 'model_text', part: 0, text: 'lo' },
      {
        type: 'model_usage',
        usage: { inputTokens: 12, outputTokens: 20 },
        raw: { input_tokens: 12, output_tokens: 20 },
      },
      {
        type: 'model_finished',
        stopReason: 'end',
        rawStopReason: 'end_turn',
        parts: [{ type: 'text', text: 'Hello', part: 0 }],
        providerMessageId: 'msg_1',
      },
    ])
  })

  it('that stands in the start of its block is shown too', () => {
    const { signals } = fold([
      start(),
      open(0, { type: 'text', text: 'Al' }),
      text(0, 'so'),
      close(0),
      done('end_turn'),
      stop,
    ])
    expect(textShown(signals)).toBe('Also')
    expect(finished(signals)?.parts).toEqual([{ type: 'text', text: 'Also', part: 0 }])
  })

  it('keeps its citations for the way back', () => {
    const citation = { type: 'char_location', cited_text: 'x', document_index: 0 }
    const { signals } = fold([
      start(),
      open(0, { type: 'text', text: '', citations: [] }),
      delta(0, { type: 'citations_delta', citation }),
      text(0, 'so it is'),
      delta(0, { type: 'citations_delta', citation: { ...citation, document_index: 1 } }),
      close(0),
      done('end_turn'),
      stop,
    ])
    expect(finished(signals)?.parts).toEqual([
      {
        type: 'text',
        text: 'so it is',
        part: 0,
        opaque: opaque({ citations: [citation, { ...citation, document_index: 1 }] }),
      },
    ])
  })
})

describe('thinking', () => {
  it('carries its signature, in place, before the text', () => {
    const { signals } = fold([
      start(),
      ...thinkingBlock(0, 'hm', 'sig=='),
      ...textBlock(1, 'Yes'),
      done('end_turn'),
      stop,
    ])
    expect(signals).toContainEqual({ type: 'model_reasoning', part: 0, text: 'hm' })
    expect(finished(signals)?.parts).toEqual([
      { type: 'reasoning', text: 'hm', part: 0, opaque: opaque({ type: 'thinking', signature: 'sig==' }) },
      { type: 'text', text: 'Yes', part: 1 },
    ])
  })

  it('without words is kept for its signature', () => {
    const { signals } = fold([
      start(),
      open(0, { type: 'thinking', thinking: '', signature: '' }),
      delta(0, { type: 'signature_delta', signature: 'sig==' }),
      close(0),
      done('end_turn'),
      stop,
    ])
    expect(signals.filter((signal) => signal.type === 'model_reasoning')).toEqual([])
    expect(finished(signals)?.parts).toEqual([
      { type: 'reasoning', text: '', part: 0, opaque: opaque({ type: 'thinking', signature: 'sig==' }) },
    ])
  })

  it('that is redacted comes whole and is kept whole', () => {
    const { signals } = fold([
      start(),
      open(0, { type: 'redacted_thinking', data: 'ZGF0YQ==' }),
      close(0),
      done('end_turn'),
      stop,
    ])
    expect(finished(signals)?.parts).toEqual([
      {
        type: 'reasoning',
        text: '',
        part: 0,
        opaque: opaque({ type: 'redacted_thinking', data: 'ZGF0YQ==' }),
      },
    ])
  })

  it('that was never signed is not carried to the vendor', () => {
    const { signals } = fold([
      start(),
      open(0, { type: 'thinking', thinking: '', signature: '' }),
      delta(0, { type: 'thinking_delta', thinking: 'half a th' }),
      done('max_tokens'),
      stop,
    ])
    expect(finished(signals)?.parts).toEqual([{ type: 'reasoning', text: 'half a th', part: 0 }])
  })

  it.each([
    ['sent twice counts once', ['sig==', 'sig=='], 'sig=='],
    ['sent in pieces is put together', ['sig', 'nature=='], 'signature=='],
  ])('signature %s', (_, pieces, signature) => {
    const { signals } = fold([
      start(),
      open(0, { type: 'thinking', thinking: 'hm' }),
      ...pieces.map((piece) => delta(0, { type: 'signature_delta', signature: piece })),
      close(0),
      done('end_turn'),
      stop,
    ])
    expect(finished(signals)?.parts[0]?.opaque).toEqual(opaque({ type: 'thinking', signature }))
  })
})

describe('a tool call', () => {
  it('is requested when its block closes, with its input put together', () => {
    const { signals } = fold([
      start(),
      ...toolBlock(0, 'toolu_1', 'get_weather', '', '{"ci', 'ty":"Seoul"}'),
      done('tool_use'),
      stop,
    ])
    const call = {
      type: 'tool_call',
      providerCallId: 'toolu_1',
      name: 'get_weather',
      input: { city: 'Seoul' },
    }
    expect(signals.slice(2, 5)).toEqual([
      { type: 'model_tool_input', part: 0, name: 'get_weather', text: '{"ci' },
      { type: 'model_tool_input', part: 0, name: 'get_weather', text: 'ty":"Seoul"}' },
      { type: 'model_tool_request', part: 0, call },
    ])
    expect(finished(signals)).toMatchObject({ stopReason: 'tool_use', parts: [{ ...call, part: 0 }] })
  })

  it('beside another keeps its own input, even where their pieces interleave', () => {
    const { signals } = fold([
      start(),
      open(0, { type: 'tool_use', id: 'toolu_1', name: 'a', input: {} }),
      open(1, { type: 'tool_use', id: 'toolu_2', name: 'b', input: {} }),
      json(0, '{"n":'),
      json(1, '{"m":'),
      json(0, '1}'),
      json(1, '2}'),
      close(1),
      close(0),
      done('tool_use'),
      stop,
    ])
    expect(callsOf(signals).map(({ name, input }) => [name, input])).toEqual([
      ['b', { m: 2 }],
      ['a', { n: 1 }],
    ])
    expect(finished(signals)?.parts.map((part) => part.part)).toEqual([0, 1])
  })

  it.each([
    ['one empty piece', ['']],
    ['no piece', []],
    ['white space', [' ', '\n']],
  ])('with %s of input has the input {}', (_, pieces) => {
    const { signals } = fold([start(), ...toolBlock(0, 'toolu_1', 'list', ...pieces), done('tool_use'), stop])
    expect(callsOf(signals)).toEqual([
      { type: 'tool_call', providerCallId: 'toolu_1', name: 'list', input: {} },
    ])
  })

  it('whose input stands in the start of its block is requested with it, and keeps its caller', () => {
    const caller = { type: 'code_execution_20250825', tool_id: 'srvtoolu_1' }
    const { signals } = fold([
      start(),
      open(0, { type: 'tool_use', id: 'toolu_1', name: 'roll', input: { player: 'one' }, caller }),
      close(0),
      done('tool_use'),
      stop,
    ])
    expect(callsOf(signals)).toEqual([
      {
        type: 'tool_call',
        providerCallId: 'toolu_1',
        name: 'roll',
        input: { player: 'one' },
        opaque: opaque({ caller }),
      },
    ])
  })

  it('that arrives whole in message_start is requested, with the stop reason that stands there', () => {
    const { signals } = fold([
      start({
        content: [{ type: 'tool_use', id: 'toolu_9', name: 'roll', input: { player: 'two' } }],
        stop_reason: 'tool_use',
        container: { id: 'container_1', expires_at: '2026-01-01T00:00:00Z' },
        usage: { input_tokens: 0, output_tokens: 0 },
      }),
      stop,
    ])
    const container = { id: 'container_1', expires_at: '2026-01-01T00:00:00Z' }
    const call = {
      type: 'tool_call',
      providerCallId: 'toolu_9',
      name: 'roll',
      input: { player: 'two' },
      opaque: opaque({}, { container }),
    }
    expect(signals).toContainEqual({ type: 'model_tool_request', part: 0, call })
    expect(finished(signals)).toMatchObject({ stopReason: 'tool_use', parts: [{ ...call, part: 0 }] })
    expect(lastUsage(signals)).toEqual({ inputTokens: 0, outputTokens: 0 })
  })

  it.each([
    ['no JSON', '{"a": tru', 'The input is not valid JSON.'],
    ['a list', '[1]', 'The input is valid JSON, but not an object.'],
    ['null', 'null', 'The input is valid JSON, but not an object.'],
    ['a text', '"a"', 'The input is valid JSON, but not an object.'],
  ])('whose input is %s is requested as malformed', (_, input, error) => {
    const { signals } = fold([start(), ...toolBlock(0, 'toolu_1', 'f', input), done('tool_use'), stop])
    const call = {
      type: 'tool_call',
      providerCallId: 'toolu_1',
      name: 'f',
      input: {},
      malformed: { text: input, error },
    }
    expect(callsOf(signals)).toEqual([call])
    expect(finished(signals)?.parts).toEqual([{ ...call, part: 0 }])
  })

  it('goes by the name that we gave the tool', () => {
    const names = toolNames(['files/read.all'], { lengthMax: 64 })
    const wireName = names.toWire('files/read.all')
    const { signals } = fold(
      [start(), ...toolBlock(0, 'toolu_1', wireName, '{}'), done('tool_use'), stop],
      ['files/read.all'],
    )
    expect(wireName).not.toBe('files/read.all')
    expect(callsOf(signals)[0]?.name).toBe('files/read.all')
    expect(signals.filter((signal) => signal.type === 'model_tool_input').map(({ name }) => name)).toEqual([
      'files/read.all',
    ])
  })

  it('of a tool that nobody offered passes by the name that the model said', () => {
    const { signals } = fold(
      [start(), ...toolBlock(0, 'toolu_1', 'made_up', '{}'), done('tool_use'), stop],
      ['f'],
    )
    expect(callsOf(signals)[0]?.name).toBe('made_up')
  })
})

describe('a reply that was cut', () => {
  it('inside a call does not report the call whose block never closed', () => {
    const { signals } = fold([
      start(),
      ...textBlock(0, 'Writing'),
      open(1, { type: 'tool_use', id: 'toolu_1', name: 'write', input: {} }),
      json(1, '{"file": "a.t'),
      done('max_tokens'),
      stop,
    ])
    expect(callsOf(signals)).toEqual([])
    expect(finished(signals)).toMatchObject({
      stopReason: 'max_tokens',
      parts: [{ type: 'text', text: 'Writing', part: 0 }],
    })
  })

  it.each(['max_tokens', 'model_context_window_exceeded', 'refusal'])(
    'by %s does not report its last call when its input cannot be read, though the block closed',
    (reason) => {
      const { signals } = fold([
        start(),
        ...toolBlock(0, 'toolu_1', 'write', '{"file": "a.txt"}'),
        ...toolBlock(1, 'toolu_2', 'write', '{"file": "b.t'),
        done(reason),
        stop,
      ])
      expect(callsOf(signals).map((call) => call.providerCallId)).toEqual(['toolu_1'])
      expect(finished(signals)?.parts).toHaveLength(1)
    },
  )

  it('reports a malformed call that is not its last block', () => {
    const { signals } = fold([
      start(),
      ...toolBlock(0, 'toolu_1', 'write', '{"file": '),
      ...textBlock(1, 'and so'),
      done('max_tokens'),
      stop,
    ])
    const order = signals.map((signal) => signal.type)
    expect(callsOf(signals)[0]?.malformed?.text).toBe('{"file": ')
    expect(order.indexOf('model_tool_request')).toBeLessThan(order.indexOf('model_text'))
    expect(finished(signals)?.parts.map((part) => part.type)).toEqual(['tool_call', 'text'])
  })

  it('leaves out half a block of a server tool, and keeps half a text', () => {
    const { signals } = fold([
      start(),
      open(0, { type: 'text', text: '' }),
      text(0, 'I wi'),
      open(1, { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: {} }),
      json(1, '{"que'),
      done('max_tokens'),
      stop,
    ])
    expect(finished(signals)?.parts).toEqual([{ type: 'text', text: 'I wi', part: 0 }])
  })
})

describe('what only the vendor understands', () => {
  it.each([
    [
      'a server tool result',
      {
        type: 'code_execution_tool_result',
        tool_use_id: 'srvtoolu_1',
        content: { stdout: 'x', encrypted_stdout: null },
      },
    ],
    ['an upload', { type: 'container_upload', file_id: 'file_1' }],
    [
      'a fallback',
      { type: 'fallback', from: { model: 'a' }, to: { model: 'b' }, trigger: { type: 'refusal' } },
    ],
    ['an MCP listing', { type: 'mcp_tool_listing', mcp_server_name: 's', tools: [{ name: 't' }] }],
    ['a kind that does not exist yet', { type: 'hologram', beams: [1, 2], nested: { deep: null } }],
  ])('such as %s is carried whole', (_, block) => {
    const { signals } = fold([start(), open(0, block), close(0), done('end_turn'), stop])
    expect(finished(signals)?.parts).toEqual([
      { type: 'provider', kind: block.type, opaque: opaque(block), part: 0 },
    ])
  })

  it('gets the input that streamed after it', () => {
    const use = { type: 'mcp_tool_use', id: 'mcptoolu_1', name: 'ask', server_name: 'wiki' }
    const { signals } = fold([
      start(),
      open(0, { ...use, input: {} }),
      json(0, '{"q"'),
      json(0, ':1}'),
      close(0),
      done('end_turn'),
      stop,
    ])
    expect(
      signals.some((signal) => signal.type === 'model_tool_input' || signal.type === 'model_tool_request'),
    ).toBe(false)
    expect(finished(signals)?.parts).toEqual([
      { type: 'provider', kind: 'mcp_tool_use', opaque: opaque({ ...use, input: { q: 1 } }), part: 0 },
    ])
  })

  it('gets the fields of deltas that do not exist yet', () => {
    const { signals } = fold([
      start(),
      open(0, { type: 'compaction', content: null }),
      delta(0, { type: 'compaction_delta', content: 'The user ', encrypted_content: null }),
      delta(0, { type: 'compaction_delta', content: 'greeted.', encrypted_content: 'ZW5j' }),
      close(0),
      done('compaction'),
      stop,
    ])
    expect(finished(signals)).toMatchObject({
      stopReason: 'compacted',
      parts: [
        { opaque: opaque({ type: 'compaction', content: 'The user greeted.', encrypted_content: 'ZW5j' }) },
      ],
    })
  })

  it('does not disturb: unknown events and unknown deltas of known blocks are passed over', () => {
    const { signals } = fold([
      ping,
      start(),
      { type: 'telemetry', data: 1 },
      open(0, { type: 'text', text: '' }),
      delta(0, { type: 'sparkle_delta', sparkle: true }),
      text(0, 'ok'),
      close(0),
      done('end_turn'),
      stop,
    ])
    expect(finished(signals)?.parts).toEqual([{ type: 'text', text: 'ok', part: 0 }])
  })

  it('rides on: the container goes with the last block of a server tool', () => {
    const { signals } = fold(rich)
    const carried = finished(signals)?.parts.filter((part) => (part.opaque?.data as Loose)?.container)
    expect(carried).toMatchObject([
      { kind: 'web_search_tool_result', opaque: { data: { container: { id: 'container_1' } } } },
    ])
  })

  it('rides on: a container that is named behind the only call gets a part of its own', () => {
    const container = { id: 'container_2' }
    const { signals } = fold([
      start(),
      ...toolBlock(0, 'toolu_1', 'f', '{}'),
      done('tool_use', { container }),
      stop,
    ])
    expect(finished(signals)?.parts).toEqual([
      { ...callsOf(signals)[0], part: 0 },
      { type: 'provider', kind: 'container', opaque: opaque({}, { container }), part: 1 },
    ])
  })
})

describe('usage', () => {
  it('is replaced by later totals, never added, and counts cached tokens into the prompt', () => {
    const { signals } = fold([
      start({
        usage: {
          input_tokens: 10,
          cache_read_input_tokens: 1000,
          cache_creation_input_tokens: 200,
          output_tokens: 1,
          service_tier: 'standard',
        },
      }),
      {
        type: 'message_delta',
        delta: { stop_reason: null },
        usage: { output_tokens: 7, input_tokens: null },
      },
      {
        type: 'message_delta',
        delta: { stop_reason: 'end_turn' },
        usage: {
          input_tokens: 11,
          cache_read_input_tokens: 1000,
          output_tokens: 50,
          output_tokens_details: { thinking_tokens: 30 },
        },
      },
      stop,
    ])
    expect(signals.flatMap((signal) => (signal.type === 'model_usage' ? [signal.usage] : []))).toEqual([
      { inputTokens: 1210, outputTokens: 1, cacheReadTokens: 1000, cacheWriteTokens: 200 },
      { inputTokens: 1210, outputTokens: 7, cacheReadTokens: 1000, cacheWriteTokens: 200 },
      {
        inputTokens: 1211,
        outputTokens: 50,
        cacheReadTokens: 1000,
        cacheWriteTokens: 200,
        reasoningTokens: 30,
      },
    ])
    expect(signals.findLast((signal) => signal.type === 'model_usage')?.raw).toEqual({
      input_tokens: 11,
      cache_read_input_tokens: 1000,
      cache_creation_input_tokens: 200,
      output_tokens: 50,
      output_tokens_details: { thinking_tokens: 30 },
      service_tier: 'standard',
    })
  })

  it('that the provider does not state stays unknown', () => {
    const { signals } = fold([start({ usage: null }), done('end_turn'), stop])
    expect(lastUsage(signals)).toEqual({ outputTokens: 20 })
  })
})

describe('the end', () => {
  it.each([
    ['end_turn', 'end'],
    ['stop_sequence', 'end'],
    ['tool_use', 'tool_use'],
    ['max_tokens', 'max_tokens'],
    ['model_context_window_exceeded', 'context_exceeded'],
    ['refusal', 'refused'],
    ['pause_turn', 'paused'],
    ['compaction', 'compacted'],
    ['tired', 'other'],
    ['toString', 'other'],
  ])('%s is %s, and the word itself is kept', (raw, stopReason) => {
    expect(finished(fold([start(), ...textBlock(0, 'x'), done(raw), stop]).signals)).toMatchObject({
      stopReason,
      rawStopReason: raw,
    })
  })

  it('of a refusal without a word is a reply without parts', () => {
    expect(finished(fold([start(), done('refusal'), stop]).signals)).toMatchObject({
      stopReason: 'refused',
      parts: [],
    })
  })

  it('is final: what follows it says nothing', () => {
    const { signals } = fold([
      start(),
      done('end_turn'),
      stop,
      ...textBlock(0, 'late'),
      start({ id: 'msg_2' }),
      stop,
    ])
    expect(signals.at(-1)?.type).toBe('model_finished')
    expect(textShown(signals)).toBe('')
  })

  it('without a stop reason is a truncated reply', () => {
    const { error } = fold([start(), ...textBlock(0, 'x'), done(null), stop])
    expect(error).toBeInstanceOf(ProviderError)
    expect(error).toMatchObject({ class: 'truncated', retryable: true })
  })
})

describe('a stream that two replies share', () => {
  it('fails at the second message, and reports no call of either', () => {
    const { signals, error } = fold([
      start(),
      open(0, { type: 'tool_use', id: 'toolu_1', name: 'f', input: {} }),
      json(0, '{"value":"Spark'),
      start({ id: 'msg_2' }),
      ...toolBlock(0, 'toolu_2', 'f', '{"value":"Sparkle"}'),
      done('tool_use'),
      stop,
    ])
    expect(error).toMatchObject({ class: 'protocol', retryable: true })
    expect(callsOf(signals)).toEqual([])
  })

  it('goes on when only the start of the same message is repeated', () => {
    const { signals, error } = fold([
      start(),
      open(0, { type: 'text', text: '' }),
      text(0, 'o'),
      start(),
      text(0, 'k'),
      close(0),
      done('end_turn'),
      stop,
    ])
    expect(error).toBeUndefined()
    expect(signals.filter((signal) => signal.type === 'model_started')).toHaveLength(1)
    expect(finished(signals)?.parts).toEqual([{ type: 'text', text: 'ok', part: 0 }])
  })

  it.each([
    [
      'a block begins again before it ended',
      [open(0, { type: 'text', text: '' }), open(0, { type: 'text', text: '' })],
    ],
    ['a block goes on that never began', [text(3, 'x')]],
    ['a block goes on behind its end', [...textBlock(0, 'x'), text(0, 'y')]],
    ['a block begins without a type', [open(0, {})]],
  ])('fails where %s', (_, events) => {
    expect(fold([start(), ...events]).error).toMatchObject({ class: 'protocol', retryable: true })
  })
})

it.each([
  ['overloaded_error', 'Overloaded', 'overloaded', true],
  ['rate_limit_error', 'Slow down', 'rate_limited', true],
  ['api_error', 'Oops', 'server', true],
  ['timeout_error', 'Late', 'timeout', true],
  ['invalid_request_error', 'Output blocked by content filtering policy', 'content_filtered', false],
  ['some_new_error', 'What is this?', 'server', true],
])(
  'an event that says %s "%s" fails the stream as %s, retryable: %s',
  (type, message, failureClass, retryable) => {
    const { error } = fold([start(), { type: 'error', error: { type, message } }])
    expect(error).toMatchObject({ class: failureClass, retryable })
    expect((error as ProviderError).message).toContain(`(${type}): ${message.replace(/\.$/, '')}`)
  },
)
