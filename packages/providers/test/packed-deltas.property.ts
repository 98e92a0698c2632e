import { Stream } from '@anthropic-ai/sdk/core/streaming'
import { hostileTexts } from '@tallystick/core/testing'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { tries } from '../../../scripts/testing/effort.ts'
import { DeltaPacker } from '../src/anthropic/client/packed-deltas.ts'

const text = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.constantFrom(...hostileTexts.map((each) => each.text)),
)
const delta = fc
  .tuple(fc.nat(3), fc.constantFrom('text', 'thinking', 'partial_json'), text)
  .map(([index, field, said]) => ({
    type: 'content_block_delta',
    index,
    delta: { type: `${field}_delta`, [field]: said },
  }))

function record(event: object, end = '\n\n'): string {
  return `event: content_block_delta\ndata: ${JSON.stringify(event)}${end}`
}

/** What else a wire may hold between deltas, faults among it. */
const other = fc.constantFrom(
  'event: ping\ndata: {"type":"ping"}\n\n',
  ': a comment\n\n',
  'event: content_block_stop\ndata: {"type":"content_block_stop","index":0}\n\n',
  'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"cut\n\n',
  'event: content_block_delta\ndata: {"type":"content_block_delta","index":00,"delta":{"type":"text_delta","text":"a"}}\n\n',
  'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"\\x"}}\n\n',
  'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"of two"},\ndata: "more":1}\n\n',
  'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"padded"}     }\n\n',
  'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}\n\n',
  record({ type: 'content_block_delta', index: 0, delta: { type: 'citations_delta', citation: { a: 1 } } }),
  record({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'crlf' } }, '\r\n\r\n'),
  '\n',
)
const wire = fc
  .array(fc.oneof({ weight: 6, arbitrary: delta.map((event) => record(event)) }, other), { maxLength: 30 })
  .map((records) => new TextEncoder().encode(records.join('')))

/** The bytes in pieces. */
function cutAt(bytes: Uint8Array, places: readonly number[]): readonly Uint8Array[] {
  const cuts = [...new Set(places.map((place) => place % (bytes.length + 1)))].toSorted((a, b) => a - b)
  return [0, ...cuts].map((from, index) => bytes.subarray(from, cuts[index] ?? bytes.length))
}

/** All that the official client finds in a body, one event after the other, and how it fails. */
async function eventsIn(pieces: readonly Uint8Array[]): Promise<readonly unknown[]> {
  const found: unknown[] = []
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const piece of pieces) controller.enqueue(piece)
      controller.close()
    },
  })
  const client = { logLevel: 'off' } as never
  try {
    for await (const event of Stream.fromSSEResponse(new Response(body), new AbortController(), client)) {
      if (Array.isArray(event)) found.push(...(event as readonly unknown[]))
      else found.push(event)
    }
  } catch (error) {
    found.push({ failed: (error as Error).name })
  }
  return found
}

describe('packed deltas', () => {
  it('say what they say one by one, wherever the wire is cut, and leave the bytes as they are', async () => {
    const cuts = fc.array(fc.nat(100_000), { maxLength: 12 })
    await fc.assert(
      fc.asyncProperty(wire, cuts, async (bytes, places) => {
        const pieces = cutAt(bytes, places)
        const before = bytes.slice()
        const packer = new DeltaPacker()
        const packed = pieces.map((piece) => packer.pack(piece))
        expect(packed.map(({ length }) => length)).toEqual(pieces.map(({ length }) => length))
        expect(await eventsIn(packed)).toEqual(await eventsIn(pieces))
        expect(bytes).toEqual(before)
      }),
      { numRuns: tries(300) },
    )
  })

  it('are those before a broken one, and none that continues what came in the piece before', async () => {
    const [a, b] = ['one', 'two'].map((said) =>
      record({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: said } }),
    )
    const broken = `${a}${b}`.replaceAll('"index":0', '"index":00')
    for (const pieces of [[`${a}${b}${broken}`], [`${a}${b}x`, `${a}${b}`], [`${a}\n`, `${a}${b}`]]) {
      const wires = pieces.map((piece) => new TextEncoder().encode(piece))
      const packer = new DeltaPacker()
      const found = await eventsIn(wires.map((piece) => packer.pack(piece)))
      expect(found).toEqual(await eventsIn(wires))
      expect(found).toHaveLength(3)
    }
  })

  it('are one record for each piece of whole records, and what parts them ends a pack', () => {
    const [a, b] = ['one', 'two'].map((said) =>
      record({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: said } }),
    )
    const ping = 'event: ping\ndata: {"type":"ping"}\n\n'
    const recordsIn = (wireText: string): number => {
      const packed = new DeltaPacker().pack(new TextEncoder().encode(wireText))
      return new TextDecoder().decode(packed).split('\n\n').length - 1
    }
    expect(recordsIn(`${a}${b}`.repeat(20))).toBe(1)
    expect(recordsIn(`${ping}${a}${b}${ping}${a}${b}${a}`)).toBe(4)
    expect(recordsIn(`${a}${ping}${b}`)).toBe(3)
  })

  it('pass as they are in a piece that no network sends, such as a whole body of many megabytes', () => {
    const piece = (length: number): Uint8Array =>
      new TextEncoder().encode(
        record({
          type: 'content_block_delta',
          index: 0,
          delta: { type: 'text_delta', text: 'x'.repeat(length) },
        }) + record({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'end' } }),
      )
    const [large, small] = [piece(16_000_000), piece(1_000_000)]
    expect(new DeltaPacker().pack(large)).toBe(large)
    expect(new DeltaPacker().pack(small)).not.toBe(small)
  })
})
