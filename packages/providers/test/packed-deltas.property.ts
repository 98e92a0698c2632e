import { Stream as AnthropicStream } from '@anthropic-ai/sdk/core/streaming'
import { hostileTexts } from '@tallystick/core/testing'
import * as fc from 'fast-check'
import { Stream as OpenAIStream } from 'openai/core/streaming'
import { describe, expect, it } from 'vitest'
import { tries } from '../../../scripts/testing/effort.ts'
import { deltaShape as anthropicShape } from '../src/anthropic/client/delta-record.ts'
import { otherTexts } from '../src/anthropic/reply/signals.ts'
import { deltaShape as chatShape } from '../src/openai-chat/client/delta-record.ts'
import { otherTexts as otherTextsOfChat } from '../src/openai-chat/reply/signals.ts'
import { deltaShape as openaiShape } from '../src/openai/client/delta-record.ts'
import { DeltaPacker, type DeltaShape } from '../src/shared/stream/packed-deltas.ts'
import { RememberingReader } from '../src/shared/stream/reply-reader.ts'

const text = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.constantFrom(...hostileTexts.map((each) => each.text)),
)

/** A wire whose deltas are packed. */
interface PackedWire {
  readonly name: string
  readonly shape: DeltaShape
  readonly otherTexts?: (event: never) => (text: string) => unknown
  /** What the official client makes of a body. */
  readonly events: (body: Response) => AsyncIterable<unknown>
  /** One whole record of a delta that says a text. */
  readonly delta: (said: string) => string
  readonly deltas: fc.Arbitrary<string>
  /** What else a wire may hold between deltas, faults among it. */
  readonly others: readonly string[]
}

const quiet = { logLevel: 'off' } as never

function anthropicDelta(event: object, end = '\n\n'): string {
  return `event: content_block_delta\ndata: ${JSON.stringify(event)}${end}`
}

const anthropic: PackedWire = {
  name: 'Anthropic',
  shape: anthropicShape,
  otherTexts,
  events: (body) => AnthropicStream.fromSSEResponse(body, new AbortController(), quiet),
  delta: (said) =>
    anthropicDelta({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: said } }),
  deltas: fc
    .tuple(fc.nat(3), fc.constantFrom('text', 'thinking', 'partial_json'), text)
    .map(([index, field, said]) =>
      anthropicDelta({
        type: 'content_block_delta',
        index,
        delta: { type: `${field}_delta`, [field]: said },
      }),
    ),
  others: [
    'event: ping\ndata: {"type":"ping"}\n\n',
    'event: content_block_stop\ndata: {"type":"content_block_stop","index":0}\n\n',
    'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"cut\n\n',
    'event: content_block_delta\ndata: {"type":"content_block_delta","index":00,"delta":{"type":"text_delta","text":"a"}}\n\n',
    'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"\\x"}}\n\n',
    'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"of two"},\ndata: "more":1}\n\n',
    'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"padded"}     }\n\n',
    'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}\n\n',
    anthropicDelta({
      type: 'content_block_delta',
      index: 0,
      delta: { type: 'citations_delta', citation: { a: 1 } },
    }),
    anthropicDelta(
      { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'crlf' } },
      '\r\n\r\n',
    ),
  ],
}

const openaiEvents: PackedWire['events'] = (body) =>
  OpenAIStream.fromSSEResponse(body, new AbortController(), quiet)

function responsesDelta(event: { readonly type: string }, end = '\n\n'): string {
  return `event: ${event.type}\ndata: ${JSON.stringify(event)}${end}`
}

const responses: PackedWire = {
  name: 'OpenAI Responses',
  shape: openaiShape,
  events: openaiEvents,
  delta: (said) =>
    responsesDelta({ type: 'response.output_text.delta', ...{ output_index: 0, delta: said } }),
  deltas: fc
    .tuple(
      fc.constantFrom('output_text', 'reasoning_summary_text', 'function_call_arguments'),
      text,
      fc.nat(),
      fc.constantFrom({}, { logprobs: [] }, { obfuscation: 'xyz', logprobs: null, weight: -1.5e-7 }),
    )
    .map(([kind, said, at, more]) =>
      responsesDelta({
        ...{ type: `response.${kind}.delta`, item_id: 'i_1', output_index: 0 },
        ...{ delta: said, sequence_number: at, ...more },
      }),
    ),
  others: [
    'event: error\ndata: {"type":"error","message":"Overloaded"}\n\n',
    'event: response.output_text.delta\ndata: {"type":"error","error":{"message":"Overloaded"}}\n\n',
    'event: response.output_text.delta\ndata: {"type":"error","error":"Overloaded"}\n\n',
    'event: response.output_text.delta\ndata: {"type":"error","\\u0065rror":"Overloaded"}\n\n',
    'event: thread.message.delta\ndata: {"a":1}\n\n',
    'event: response.output_text.delta\ndata: {"a":01}\n\n',
    'event: response.output_text.delta\ndata: {"a":1,}\n\n',
    'event: response.output_text.delta\ndata: {"a":"cut\n\n',
    'event: response.output_text.delta\ndata: {"a":"\\x"}\n\n',
    'event: response.output_text.delta\ndata: {"a":1},\ndata: {"b":1}\n\n',
    'event: response.output_item.done\ndata: {"type":"response.output_item.done","item":{"a":[{}]}}\n\n',
    responsesDelta({ type: 'response.output_text.delta', ...{ delta: 'crlf' } }, '\r\n\r\n'),
  ],
}

function chunk(delta: object, more: object = {}): string {
  const choices = [{ index: 0, delta, logprobs: null, finish_reason: null }]
  return `data: ${JSON.stringify({ id: 'c_1', object: 'chat.completion.chunk', created: 1, choices, ...more })}\n\n`
}

const chat: PackedWire = {
  name: 'Chat Completions',
  shape: chatShape,
  otherTexts: otherTextsOfChat,
  events: openaiEvents,
  delta: (content) => chunk({ content }),
  deltas: fc
    .tuple(
      text,
      fc.constantFrom<(said: string) => object>(
        (content) => ({ content }),
        (reasoning) => ({ role: 'assistant', content: '', reasoning }),
        (said) => ({ tool_calls: [{ index: 0, id: 'a', function: { arguments: said } }] }),
        (said) => ({ tool_calls: [{ index: 0, custom: { input: said } }, { index: 1 }] }),
      ),
      fc.constantFrom({}, { usage: null, obfuscation: 'xyz' }, { choices: [] }),
      fc.boolean(),
    )
    .map(([said, deltaOf, more, isSpaced]) => {
      const record = chunk(deltaOf(said), more)
      // Python writes spaces.
      return isSpaced && !/[:,]./.test(said) ? record.replaceAll(/([:,])(?=["{[\d])/g, '$1 ') : record
    }),
  others: [
    'data: [DONE]\n\n',
    'data: {"id":"c_1","error":{"message":"Overloaded"},"choices":[]}\n\n',
    'data: {"id":"c_1","error":"Overloaded","choices":[]}\n\n',
    'data: {"id":"c_1","choices":[{"index":0,"delta":{"content":"a"}]}\n\n',
    'data: {"id":"c_1","choices":[{"index":0,"delta":{"content":"a"}},]}\n\n',
    'data: {"id":"c_1","choices":[{"index":0}{"index":1}]}\n\n',
    'data: {"id":"c_1","choices":[{\n\n',
    'data: {"id":"c_1" "choices":[]}\n\n',
    'data: {"id":"c_1","choices":[tru]}\n\n',
    'data: {"id":"c_1","choices":[],"a":{"error":1}}\n\n',
    'data: {"id","choices":[]}\n\n',
    'data: {"id":,"choices":[]}\n\n',
    'data: {id:"c_1","choices":[]}\n\n',
    'data: {"id":"c_1","choices":[] }\n\n',
    'data: {"id":"c_1","choices":[]}}\n\n',
    `data: {"id":${'['.repeat(20)}${']'.repeat(20)}}\n\n`,
    `data: {"id":${'{"a":'.repeat(20)}1${'}'.repeat(20)}}\n\n`,
    'data: }]}\n\n',
    'data: 1\n\n',
    'data: [{"id":"c_1","choices":[]}]\n\n',
    'data: [{"id":"c_1","choices":[{"index":0,"delta":{"content":"a"}}]},"[DONE]"]\n\n',
    'data:{"id":"c_1","choices":[]}\n\n',
    chunk({ content: 'a' }, { usage: { total_tokens: 1, details: { cached: 0 } } }),
    chunk({ content: 'a', content_type: 'x' }),
    chunk({ content: 'a' }, { choices: [{ index: 0, delta: { content: 'b' } }, { index: 1 }] }),
    chunk({ content: 'a' }).replace('}]', '}],"choices":null'),
    chunk({ content: 'a' }).replace('"content":"a"', '"content":"a","content":"b"'),
    chunk({ content: 'a' }).replace('"choices"', '"choices":null,"choices"'),
    chunk({ content: 'a' }).replace('"logprobs"', '"delta":{},"logprobs"'),
  ],
}

function wireOf({ deltas, others }: PackedWire): fc.Arbitrary<Uint8Array<ArrayBuffer>> {
  const other = fc.constantFrom(...others, ': a comment\n\n', '\n')
  return fc
    .array(fc.oneof({ weight: 6, arbitrary: deltas }, other), { maxLength: 30 })
    .map((records) => new TextEncoder().encode(records.join('')))
}

/** The bytes in pieces. */
function cutAt(bytes: Uint8Array, places: readonly number[]): readonly Uint8Array[] {
  const cuts = [...new Set(places.map((place) => place % (bytes.length + 1)))].toSorted((a, b) => a - b)
  return [0, ...cuts].map((from, index) => bytes.subarray(from, cuts[index] ?? bytes.length))
}

/** All that the official client finds in a body, one event after the other, and how it fails. */
async function eventsIn(
  { events, otherTexts: given }: PackedWire,
  pieces: readonly Uint8Array[],
): Promise<readonly unknown[]> {
  const found: unknown[] = []
  const read = (_reply: object, event: unknown) => {
    found.push(structuredClone(event))
    return []
  }
  const reader = new RememberingReader<object>(
    {},
    read,
    given as (event: unknown) => (text: string) => unknown,
  )
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const piece of pieces) controller.enqueue(piece)
      controller.close()
    },
  })
  try {
    for await (const event of events(new Response(body))) {
      expect([...reader.read(event)]).toEqual([])
    }
  } catch (error) {
    found.push({ failed: (error as Error).name })
  }
  return found
}

function bytesOf(said: string): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(said)
}

describe.each([anthropic, responses, chat])('packed deltas of $name', (wire) => {
  const newPacker = (): DeltaPacker => new DeltaPacker(wire.shape)
  const recordsIn = (wireText: string): number => {
    const packed = newPacker().pack(bytesOf(wireText))
    return new TextDecoder().decode(packed).split('\n\n').length - 1
  }
  const [a, b] = [wire.delta('one'), wire.delta('two')]

  it('say what they say one by one, wherever the wire is cut, and leave the bytes as they are', async () => {
    const cuts = fc.array(fc.nat(100_000), { maxLength: 12 })
    await fc.assert(
      fc.asyncProperty(wireOf(wire), cuts, async (bytes, places) => {
        const pieces = cutAt(bytes, places)
        const before = bytes.slice()
        const packer = newPacker()
        const packed = pieces.map((piece) => packer.pack(piece))
        expect(await eventsIn(wire, packed)).toEqual(await eventsIn(wire, pieces))
        expect(bytes).toEqual(before)
      }),
      { numRuns: tries(300) },
    )
  })

  it('are those before a broken one, and none that continues what came in the piece before', async () => {
    const broken = `${a}${b}`.replaceAll('index":0', 'index":00')
    for (const pieces of [[`${a}${b}${broken}`], [`${a}${b}x`, `${a}${b}`], [`${a}\n`, `${a}${b}`]]) {
      const wires = pieces.map(bytesOf)
      const packer = newPacker()
      const found = await eventsIn(
        wire,
        wires.map((piece) => packer.pack(piece)),
      )
      expect(found).toEqual(await eventsIn(wire, wires))
      expect(found.length).toBeGreaterThanOrEqual(3)
    }
  })

  it('are one record for each piece of whole records, and what parts them ends a pack', () => {
    const ping = 'event: ping\ndata: {"type":"ping"}\n\n'
    expect(recordsIn(`${a}${b}`.repeat(20))).toBe(1)
    expect(recordsIn(`${ping}${a}${b}${ping}${a}${b}${a}`)).toBe(4)
    expect(recordsIn(`${a}${ping}${b}`)).toBe(3)
  })

  it.each(['text', 'type', 'toString', '__proto__'])(
    'say what they say in a field of the name %s',
    async (field) => {
      const records = ['one', 'two', 'three'].map((said) =>
        wire.delta(said).replaceAll('"text":', `"${field}":`),
      )
      const found = await eventsIn(wire, [newPacker().pack(bytesOf(records.join('')))])
      expect(JSON.stringify(found)).toBe(JSON.stringify(await eventsIn(wire, [bytesOf(records.join(''))])))
      expect(found).toHaveLength(3)
    },
  )

  it('are shorter than they were, and no longer than their texts where only those differ', () => {
    const said = Array.from({ length: 50 }, (_, index) => `"${index}" ü\n`)
    const records = said.map((each) => wire.delta(each)).join('')
    const { length } = newPacker().pack(bytesOf(records))
    const texts = bytesOf(JSON.stringify(said)).length
    expect(length).toBeLessThan(wire.otherTexts ? 2 + texts + wire.delta('').length : records.length)
  })

  it('are every record of a delta, whatever it says', () => {
    fc.assert(
      fc.property(fc.array(wire.deltas, { minLength: 1, maxLength: 9 }), (records) => {
        expect(recordsIn(records.join(''))).toBe(1)
      }),
      { numRuns: tries(300) },
    )
  })

  it('pass as they are in a piece that no network sends, such as a whole body of many megabytes', () => {
    const piece = (length: number): Uint8Array => bytesOf(wire.delta('x'.repeat(length)) + wire.delta('end'))
    const [large, small] = [piece(16_000_000), piece(1_000_000)]
    expect(newPacker().pack(large)).toBe(large)
    expect(newPacker().pack(small)).not.toBe(small)
  })
})
