import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { tries } from '../../../scripts/testing/effort.ts'
import { uncounted } from './kit/answered.ts'
import { inPiecesOf, splitAt } from './kit/bytes.ts'
import { callsOf, collect, finished, type Outcome } from './kit/collect.ts'
import { serve, type Answer } from './kit/loopback.ts'
import type { Loose } from './kit/loose.ts'
import { type WireUnderTest, wires } from './kit/openai-wires.ts'
import { forbidConsole, forbidUnhandledRejections } from './kit/quiet.ts'
import { bytesOf, readingsIn } from './kit/readings.ts'

forbidConsole()
forbidUnhandledRejections()

const named: { readonly [wire: string]: readonly string[] } = {
  Responses: [
    ...['parallel-calls-parted-inside-escapes', 'reasoning-with-a-summary', 'reasoning-in-the-open'],
    ...['custom-tool', 'phases-of-messages', 'encrypted-reasoning-turn1.jsonl', 'phase-commentary.sse'],
    ...['raw-cot-openrouter.sse', 'custom-tool.jsonl'],
  ],
  'Chat Completions': [
    ...['parallel-calls-parted-inside-escapes', 'parallel-calls-interleaved', 'deepseek-reasoning-then-call'],
    ...['mistral-call-in-two-pieces', 'openrouter-signed-reasoning', 'pieces-without-places'],
    ...['parallel-tools.sse', 'deepseek-reasoning-tool.jsonl', 'mistral-incremental-tool.jsonl'],
    'ollama-v1-gpt-oss-tool.sse',
  ],
}
const folders = {
  Responses: ['openai-responses'],
  'Chat Completions': ['openai-chat', 'openai-compatible'],
} as const

const streams = wires.flatMap((wire): readonly (readonly [string, Uint8Array, WireUnderTest])[] => [
  [`a reply of ${wire.name} with everything`, wire.bytes(wire.rich), wire],
  ...readingsIn(...folders[wire.name as keyof typeof folders])
    .filter(({ file }) => named[wire.name]!.includes(file))
    .map((reading) => [`${reading.folder}/${reading.file}`, bytesOf(reading), wire] as const),
])

async function read({ make }: WireUnderTest, answer: Answer): Promise<Outcome> {
  const server = await serve(answer)
  return collect(make({ apiKey: 'k', baseURL: server.url }))
}

/** The events that are whole in the first bytes. */
function eventsBefore(bytes: Uint8Array, place: number): Loose[] {
  const records = new TextDecoder().decode(bytes.subarray(0, place)).split('\n\n').slice(0, -1)
  return records.flatMap((record) => {
    const data = record.split('\n').find((line) => line.startsWith('data: {'))
    return data ? [JSON.parse(data.slice(6))] : []
  })
}

/** How many calls were told to be whole by then: their items ended, or the chat gave its reason. */
function callsWholeBefore(bytes: Uint8Array, place: number, total: number): number {
  const events = eventsBefore(bytes, place)
  const items = events.filter(
    ({ type, item }) =>
      type === 'response.output_item.done' && /^(function|custom_tool)_call$/.test(item.type),
  )
  return events.some(({ choices }) => choices?.[0]?.finish_reason) ? total : items.length
}

describe.each(streams)('%s', (_, bytes, wire) => {
  it('gives the same signals however its bytes are cut into pieces', async () => {
    const whole = await read(wire, { pieces: [bytes] })
    expect(whole.completed).toBe(true)
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat({ max: bytes.length }), { maxLength: 40 }), async (places) => {
        expect((await read(wire, { pieces: splitAt(bytes, places) })).signals).toEqual(whole.signals)
      }),
      { numRuns: tries(10) },
    )
  })

  it('cut off anywhere, ends once, and requests no call that was open', async () => {
    const whole = await read(wire, { pieces: [bytes] })
    const total = callsOf(whole.signals).length
    await fc.assert(
      fc.asyncProperty(
        fc.nat({ max: bytes.length - 1 }),
        fc.constantFrom('end', 'break'),
        async (place, ending) => {
          const cut = await read(wire, { pieces: [bytes.subarray(0, place)], ending })
          const { signals, failure, completed } = cut
          expect(completed).toBe(finished(signals) !== undefined)
          expect(completed && !completedEarly(bytes, place)).toBe(false)
          // A record is read to its last byte, blank line or not, so one that was cut may be half of JSON.
          const ends = ['truncated', 'network', 'protocol'].includes(failure?.class ?? '')
          expect(completed || (ends && failure?.retryable)).toBe(true)
          expect(callsOf(signals).length).toBeLessThanOrEqual(callsWholeBefore(bytes, place + 2, total))
        },
      ),
      { numRuns: tries(30) },
    )
  })
})

/** Whether what came proves the reply whole: its terminal event, or the reason of a chat. */
function completedEarly(bytes: Uint8Array, place: number): boolean {
  const text = new TextDecoder().decode(bytes.subarray(0, place))
  return /"type":\s?"response\.completed"/.test(text) || /"finish_reason":\s?"/.test(text)
}

it.each(wires)('a reply of $name gives the same signals byte by byte', async (wire) => {
  const bytes = wire.bytes(wire.rich)
  const whole = await read(wire, { pieces: [bytes] })
  expect(callsOf(whole.signals).map((call) => call.input)).toEqual([{ city: 'Seoul', days: 3 }, {}])
  expect((await read(wire, { pieces: inPiecesOf(1, bytes) })).signals).toEqual(whole.signals)
})

it.each(wires)('line ends, comments and ids in a stream of $name change nothing', async (wire) => {
  const whole = await read(wire, { pieces: [wire.bytes(wire.rich)] })
  const dressed = wire.rich.map((event) => `: hello\nid: 7\n${wire.record(event)}`.replaceAll('\n', '\r\n'))
  expect((await read(wire, { pieces: [dressed.join('')] })).signals).toEqual(whole.signals)
})

it.each(wires)(
  'whatever order the events of $name come in, the stream ends once, and says nothing after its end',
  async (wire) => {
    await fc.assert(
      fc.asyncProperty(fc.shuffledSubarray([...wire.rich]), async (events) => {
        const given = events.map(uncounted)
        const { signals, completed, failure } = await read(wire, { pieces: [wire.bytes(given)] })
        expect(completed).toBe(failure === undefined)
        expect(signals.filter((signal) => signal.type === 'model_finished')).toHaveLength(completed ? 1 : 0)
        expect(signals.slice(0, -1).map((signal) => signal.type)).not.toContain('model_finished')
        const parts = finished(signals)?.parts ?? []
        expect(parts.map(({ part }) => part)).toEqual(parts.map(({ part }) => part).toSorted((a, b) => a - b))
      }),
      { numRuns: tries(40) },
    )
  },
)

const garbage = fc.oneof(
  fc.json().map((json) => `data: ${json}\n\n`),
  fc.string({ maxLength: 30 }).map((text) => `${text}\n\n`),
  fc.constantFrom('data: \n\n', ': x\n\n', 'event: error\n\n', 'data: [DONE]\n\n', 'data: {"error": 7}\n\n'),
  fc
    .record({
      type: fc.constantFrom('response.output_item.added', 'response.completed', 'error'),
      item: fc.json(),
    })
    .map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`),
)

it.each(wires)('garbage in a stream of $name ends it in a failure, or is passed over', async (wire) => {
  await fc.assert(
    fc.asyncProperty(fc.array(garbage, { maxLength: 6 }), fc.nat({ max: 5 }), async (pieces, after) => {
      const begun = wire.rich.slice(0, after).map((event) => wire.record(event))
      const { completed, failure, signals } = await read(wire, { pieces: [...begun, ...pieces] })
      expect(completed).toBe(failure === undefined)
      expect(completed).toBe(finished(signals) !== undefined)
    }),
    { numRuns: tries(60) },
  )
})
