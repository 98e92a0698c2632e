// One block of an Anthropic reply at a time: what its deltas add to it, and what part of the reply it becomes.
import type { Json, JsonObject, ReplyPart } from '@tallystick/core/vocabulary'
import { describe, expect, it } from 'vitest'
import {
  closeBlock,
  extendBlock,
  openBlock,
  showText,
  toPart,
  withContainer,
  withProviderState,
} from '../src/anthropic/reply.ts'
import { createToolNames } from '../src/shared/request.ts'
import { opaque } from './kit/fold.ts'

const names = createToolNames([], { maxLength: 64 })
const never = (): undefined => undefined

/** The part and the signals of a block that begins like this, gets these deltas, and ends. */
function read(start: object, deltas: readonly object[] = [], container?: JsonObject) {
  const block = openBlock(2, start as never)
  const signals = [
    ...(block.text === '' ? [] : showText(block, block.text)),
    ...deltas.flatMap((delta) => extendBlock(block, delta as JsonObject, names)),
  ]
  const open = toPart(block, never)
  closeBlock(block, names, container)
  return { part: toPart(block, never), open, signals, call: block.call }
}

describe('a block that asks for a tool', () => {
  const start = { type: 'tool_use', id: 'toolu_1', name: 'f' }
  const call = { type: 'tool_call', providerCallId: 'toolu_1', name: 'f' } as const
  const json = (partial_json: Json) => ({ type: 'input_json_delta', partial_json })

  it.each<readonly [string, object, readonly object[], object]>([
    ['no input at all', {}, [], { input: {} }],
    ['an input of null', { input: null }, [], { input: {} }],
    ['an input at its start', { input: { a: 1 } }, [], { input: { a: 1 } }],
    ['blank pieces after that', { input: { a: 1 } }, [json(' \n')], { input: { a: 1 } }],
    ['pieces after that', { input: { a: 1 } }, [json('{"b":'), json('2}')], { input: { b: 2 } }],
    [
      'a list at its start',
      { input: [1] },
      [],
      { input: {}, malformed: { text: '[1]', error: 'The input is valid JSON, but not an object.' } },
    ],
    [
      'a text at its start',
      { input: 'x' },
      [],
      { input: {}, malformed: { text: 'x', error: 'The input is not valid JSON.' } },
    ],
    ['a piece that is not text', {}, [json(7)], { input: {} }],
    [
      'half an object',
      {},
      [json('{"a')],
      { input: {}, malformed: { text: '{"a', error: 'The input is not valid JSON.' } },
    ],
  ])('with %s has the input that this says', (_what, more, deltas, input) => {
    expect(read({ ...start, ...more }, deltas).call).toStrictEqual({ ...call, ...input })
  })

  it('shows the pieces of its input, and is a part only once it is whole', () => {
    const { signals, open, part } = read(start, [json(''), json('{}')])
    expect(signals).toEqual([{ type: 'model_tool_input', part: 2, name: 'f', text: '{}' }])
    expect(open).toBeUndefined()
    expect(part).toStrictEqual({ ...call, input: {}, part: 2 })
  })

  it('without an id or a name has empty ones, and carries what else it says', () => {
    const { call: bare } = read({ type: 'tool_use', caller: { type: 'x' }, empty: [], nothing: null })
    expect(bare).toStrictEqual({
      ...{ type: 'tool_call', providerCallId: '', name: '', input: {} },
      opaque: opaque({ caller: { type: 'x' } }),
    })
  })

  it('carries the container of the reply', () => {
    const container = { id: 'container_1' }
    expect(read(start, [], container).call).toStrictEqual({
      ...{ ...call, input: {} },
      opaque: opaque({}, { container }),
    })
  })
})

describe('a block of text or thinking', () => {
  it('takes the deltas of its own kind alone', () => {
    const deltas = [
      { type: 'text_delta', text: 'a' },
      { type: 'thinking_delta', thinking: 'b' },
      { type: 'text_delta', text: '' },
      { type: 'text_delta', text: 7 },
      { type: 'text_delta' },
      { type: 'input_json_delta', partial_json: '{}' },
      { type: 'other_delta', text: 'c' },
    ]
    const written = read({ type: 'text', text: 'T' }, deltas)
    expect(written.signals).toEqual([
      { type: 'model_text', part: 2, text: 'T' },
      { type: 'model_text', part: 2, text: 'a' },
    ])
    expect(written.part).toStrictEqual({ type: 'text', text: 'Ta', part: 2 })
    const thought = read({ type: 'thinking', thinking: 'T', signature: 's' }, deltas)
    expect(thought.signals).toEqual([
      { type: 'model_reasoning', part: 2, text: 'T' },
      { type: 'model_reasoning', part: 2, text: 'b' },
    ])
    expect(thought.part).toStrictEqual({
      ...{ type: 'reasoning', text: 'Tb', part: 2 },
      opaque: opaque({ type: 'thinking', signature: 's' }),
    })
  })

  it('has no text where its start has none that is one, under the name of its own kind', () => {
    for (const start of [{ type: 'text' }, { type: 'text', text: 7 }, { type: 'text', thinking: 'x' }])
      expect(read(start)).toMatchObject({ signals: [], part: { type: 'text', text: '' } })
    for (const start of [{ type: 'thinking' }, { type: 'thinking', text: 'x' }])
      expect(read(start)).toMatchObject({ signals: [], part: { type: 'reasoning', text: '' } })
    expect(read({ type: 'redacted_thinking', text: 'x', thinking: 'x' })).toMatchObject({
      ...{ signals: [], part: { type: 'reasoning', text: '' } },
    })
  })

  it('goes back only with what proves it', () => {
    for (const start of [
      { type: 'thinking', data: 'd' },
      { type: 'thinking', signature: '' },
      { type: 'redacted_thinking', signature: 's' },
      { type: 'redacted_thinking', data: '' },
    ])
      expect(read(start).part).not.toHaveProperty('opaque')
    expect(read({ type: 'redacted_thinking', data: 'd' }).part).toHaveProperty('opaque')
  })

  it('keeps each citation, also one that says nothing', () => {
    const cites = (citation?: object) => ({ type: 'citations_delta', ...(citation && { citation }) })
    const { part } = read({ type: 'text', citations: 'x' }, [cites({ cited_text: 'q' }), cites()])
    expect(part).toStrictEqual({
      ...{ type: 'text', text: '', part: 2, citations: [{ quote: 'q' }] },
      opaque: opaque({ citations: [{ cited_text: 'q' }, null] }),
    })
  })
})

describe('a block that only the vendor understands', () => {
  it('takes every delta in, under the names of the block', () => {
    const { part, signals, open } = read({ type: 'new', text: 'a', count: 1, list: [1] }, [
      { type: 'text_delta', text: 'b' },
      { type: 'thinking_delta', thinking: 'c' },
      { type: 'signature_delta', signature: 's' },
      { type: 'signature_delta', signature: 's' },
      { type: 'new_delta', count: 2, list: 'x', text: null, more: { a: 1 } },
    ])
    expect(signals).toEqual([])
    expect(open).toBeUndefined()
    const block = {
      type: 'new',
      text: 'ab',
      count: 2,
      list: 'x',
      thinking: 'c',
      signature: 's',
      more: { a: 1 },
    }
    expect(part).toStrictEqual({ type: 'provider', kind: 'new', part: 2, opaque: opaque(block) })
  })

  it('is of a kind that is the name of a member of objects as well', () => {
    expect(read({ type: 'constructor' }).part).toMatchObject({ type: 'provider', kind: 'constructor' })
  })

  it('has the input that streamed after it, in the place of that at its start', () => {
    const json = { type: 'input_json_delta', partial_json: '{"q":1}' }
    const use = { type: 'server_tool_use', id: 's', name: 'search', input: { old: true } }
    expect(read(use, [json]).part).toMatchObject({
      executed: { id: 's', name: 'search', input: { q: 1 } },
      opaque: opaque({ ...use, input: { q: 1 } }),
    })
    expect(read(use).part).toMatchObject({ opaque: opaque(use), executed: { input: { old: true } } })
  })
})

describe('what concerns the whole reply', () => {
  const container = { id: 'c' }
  const text = (part: number): ReplyPart => ({ type: 'text', text: 'x', part })
  const call = (part: number, more: object = {}): ReplyPart => ({
    type: 'tool_call',
    providerCallId: 'i',
    name: 'f',
    input: {},
    part,
    ...more,
  })
  const vendors = (part: number): ReplyPart =>
    ({ type: 'provider', kind: 'new', opaque: opaque({ type: 'new' }), part }) as ReplyPart

  it('rides on the last part of the vendor, else on the last that is not a call', () => {
    const two = withContainer([vendors(0), text(1), vendors(2), text(3), call(4)], container)
    expect(two.map(({ opaque: carried }) => carried)).toEqual([
      ...[opaque({ type: 'new' }), undefined],
      ...[opaque({ type: 'new' }, { container }), undefined, undefined],
    ])
    const one = withContainer([text(0), text(1), call(2)], container)
    expect(one.map(({ opaque: carried }) => carried)).toEqual([
      ...[undefined, opaque({}, { container }), undefined],
    ])
  })

  it('has a part of its own where there are only calls, unless one of them carries it', () => {
    const carrying = call(1, { opaque: opaque({}, { container }) })
    expect(withContainer([call(0), carrying], container)).toEqual([call(0), carrying])
    const other = call(1, { opaque: opaque({ caller: 1 }) })
    expect(withContainer([call(0), other], container)).toEqual([
      ...[call(0), other],
      { type: 'provider', kind: 'container', opaque: opaque({}, { container }), part: 2 },
    ])
    expect(withContainer([], container)).toEqual([])
  })

  it('comes after the highest place', () => {
    const after = (parts: readonly ReplyPart[]) => withProviderState(parts, 'k', { block: {} }).at(-1)?.part
    expect([after([]), after([text(0)]), after([text(5), text(3)])]).toEqual([0, 1, 6])
  })
})
