import { describe, expect, it } from 'vitest'
import { createToolNames } from '../src/shared/request.ts'
import { callsOf, finished, lastUsage, textShown } from './kit/collect.ts'
import { fold, opaque } from './kit/fold.ts'
import type { Loose } from './kit/loose.ts'
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

  it('in the start of its block is shown too', () => {
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
        citations: [{ quote: 'x' }, { quote: 'x' }],
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

  it('whose input is in the start of its block is requested with it, and keeps its caller', () => {
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

  it('that arrives whole in message_start is requested, with its stop reason', () => {
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
    const names = createToolNames(['files/read.all'], { maxLength: 64 })
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

  it('of a tool that was not offered passes by the name that the model said', () => {
    const { signals } = fold(
      [start(), ...toolBlock(0, 'toolu_1', 'made_up', '{}'), done('tool_use'), stop],
      ['f'],
    )
    expect(callsOf(signals)[0]?.name).toBe('made_up')
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
    expect(finished(signals)?.parts).toMatchObject([
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
    expect(finished(signals)?.parts).toMatchObject([
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

  it('rides on: a container that is named after the only call gets a part of its own', () => {
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
