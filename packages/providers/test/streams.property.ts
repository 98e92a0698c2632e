// Replies of every wire, cut, dressed, shuffled and spoilt. That borders of pieces change nothing is tested with all readings.
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { tries } from '../../../scripts/testing/effort.ts'
import { uncounted } from './kit/answered.ts'
import { inPiecesOf } from './kit/bytes.ts'
import { callsOf, collect, finished, type Outcome } from './kit/collect.ts'
import { serve, type Answer } from './kit/loopback.ts'
import type { Loose } from './kit/loose.ts'
import { lineBytes, rich as richLines } from './kit/ollama-lines.ts'
import { forbidConsole, forbidUnhandledRejections } from './kit/quiet.ts'
import { bytesOf, readingsIn } from './kit/readings.ts'
import { wires, type WireUnderTest } from './kit/wires.ts'
import type { Folder } from './kit/written/reading.ts'

forbidConsole()
forbidUnhandledRejections()

const [messages, responses, chat, ollamaChat] = wires as readonly [
  WireUnderTest,
  WireUnderTest,
  WireUnderTest,
  WireUnderTest,
]
const sseWires = [messages, responses, chat]
const folders: ReadonlyMap<WireUnderTest, readonly Folder[]> = new Map([
  [messages, ['anthropic']],
  [responses, ['openai-responses']],
  [chat, ['openai-chat', 'openai-compatible']],
  [ollamaChat, ['ollama']],
])

async function read({ make, answer }: WireUnderTest, given: Answer): Promise<Outcome> {
  const server = await serve({ ...answer, ...given })
  return collect(make({ apiKey: 'k', baseURL: server.url }))
}

const streams = wires.flatMap((wire): readonly (readonly [string, Uint8Array, WireUnderTest])[] => [
  [`a reply of ${wire.name} with everything`, wire.bytes(wire.rich), wire],
  ...readingsIn(...folders.get(wire)!)
    .filter(({ stop, calls }) => stop && calls.length > 0)
    .map((reading) => [`${reading.folder}/${reading.file}`, bytesOf(reading), wire] as const),
])

/** What proves a reply of OpenAI whole before its last byte: its terminal event, or the reason of a chat. */
function isProvedBefore(bytes: Uint8Array, place: number): boolean {
  const text = new TextDecoder().decode(bytes.subarray(0, place))
  return /"type":\s?"response\.(completed|incomplete)"|"finish_reason":\s?"|"done":\s?true|"message_stop"/.test(
    text,
  )
}

describe.each(streams)('%s', (_, bytes, wire) => {
  it('cut off anywhere, ends once, and requests no call that was open', async () => {
    const whole = await read(wire, { pieces: [bytes] })
    expect(whole.completed).toBe(true)
    const calls = callsOf(whole.signals)
    await fc.assert(
      fc.asyncProperty(
        fc.nat({ max: bytes.length - 1 }),
        fc.constantFrom('end', 'break'),
        async (place, ending) => {
          const cut = await read(wire, { pieces: [bytes.subarray(0, place)], ending })
          const { signals, failure, completed } = cut
          expect(completed).toBe(finished(signals) !== undefined)
          expect(completed && !isProvedBefore(bytes, place)).toBe(false)
          // A record of OpenAI is read to its last byte, blank line or not, so one that was cut may be half of JSON.
          const ends = ['truncated', 'network', 'protocol'].includes(failure?.class ?? '')
          expect(completed || (ends && failure?.retryable)).toBe(true)
          expect(callsOf(signals)).toEqual(calls.slice(0, callsOf(signals).length))
        },
      ),
      { numRuns: tries(30) },
    )
  })
})

describe.each(wires)('a reply of $name with everything', (wire) => {
  it('gives the same signals byte by byte', async () => {
    const bytes = wire.bytes(wire.rich)
    const whole = await read(wire, { pieces: [bytes] })
    expect(callsOf(whole.signals).slice(0, 2)).toMatchObject([
      { input: { city: 'Seoul', days: 3 } },
      { input: {} },
    ])
    expect((await read(wire, { pieces: inPiecesOf(1, bytes) })).signals).toEqual(whole.signals)
  })

  it('ends once, whatever order its events come in, and says nothing after its end', async () => {
    await fc.assert(
      fc.asyncProperty(fc.shuffledSubarray([...wire.rich]), async (events) => {
        const given = events.map(uncounted)
        const { signals, completed, failure } = await read(wire, { pieces: [wire.bytes(given)] })
        expect(completed).toBe(failure === undefined)
        expect(signals.filter((signal) => signal.type === 'model_finished')).toHaveLength(completed ? 1 : 0)
        expect(signals.slice(0, -1).map((signal) => signal.type)).not.toContain('model_finished')
        const parts = finished(signals)?.parts ?? []
        expect(parts.map(({ part }) => part)).toEqual(parts.map(({ part }) => part).toSorted((a, b) => a - b))
        expect(callsOf(signals).length).toBeLessThanOrEqual(countCalls(wire, events))
      }),
      { numRuns: tries(40) },
    )
  })
})

/** The most calls that these events are enough for: a block of Anthropic has to be closed, a line of Ollama is whole. */
function countCalls(wire: WireUnderTest, events: readonly Loose[]): number {
  if (wire === messages)
    return events.filter(({ type, index }) => type === 'content_block_stop' && index >= 5).length
  return wire === ollamaChat ? events.flatMap(({ message }) => message.tool_calls ?? []).length : 2
}

it.each(sseWires)('line ends, comments and ids in a stream of $name change nothing', async (wire) => {
  const whole = await read(wire, { pieces: [wire.bytes(wire.rich)] })
  const dressed = wire.rich.map((event) => `: hello\nid: 7\n${wire.record(event)}`.replaceAll('\n', '\r\n'))
  expect((await read(wire, { pieces: [dressed.join('')] })).signals).toEqual(whole.signals)
})

it('line ends of all kinds, and blank lines, change nothing in a stream of Ollama', async () => {
  const bytes = lineBytes(richLines)
  const whole = await read(ollamaChat, { pieces: [bytes] })
  const dressed = `\n\r\n${new TextDecoder().decode(bytes).replaceAll('\n', '\r\n \r\n\n')}`
  expect((await read(ollamaChat, { pieces: [dressed] })).signals).toEqual(whole.signals)
})

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

it.each(sseWires)('garbage in a stream of $name ends it in a failure, or is passed over', async (wire) => {
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

it('garbage among the lines of Ollama ends the reply as one that cannot be trusted, after what came before it', async () => {
  const lines = richLines.map((one) => JSON.stringify(one))
  const words = fc.constantFrom(
    ...['<html>', '{"message": ', 'null', '[1]', '"secret words"', '{}}', 'data: {}', '\u0000'],
  )
  await fc.assert(
    fc.asyncProperty(fc.nat({ max: lines.length - 1 }), words, async (place, line) => {
      const whole = await read(ollamaChat, { pieces: [lines.slice(0, place).concat('').join('\n')] })
      const body = [...lines.slice(0, place), line, ...lines.slice(place), ''].join('\n')
      const pieces = inPiecesOf(61, new TextEncoder().encode(body))
      const { signals, failure } = await read(ollamaChat, { pieces })
      expect(failure).toMatchObject({ class: 'protocol', retryable: true })
      expect(failure?.message).not.toContain('secret')
      expect(failure?.cause).toBeUndefined()
      expect(signals).toEqual(whole.signals)
    }),
    { numRuns: tries(30) },
  )
})
