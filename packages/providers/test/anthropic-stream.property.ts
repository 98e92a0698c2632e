import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { tries } from '../../../scripts/testing/effort.ts'
import { anthropic } from '../src/anthropic.ts'
import { inPiecesOf, splitAt, sseBytes, sseRecord } from './kit/bytes.ts'
import { callsOf, collect, finished, type Outcome } from './kit/collect.ts'
import { serve, type Answer } from './kit/loopback.ts'
import { bytesOf, readingsIn } from './kit/readings.ts'
import { rich } from './kit/streams.ts'
import type { Loose } from './kit/loose.ts'

const named = new Set([
  ...['thinking-between-calls', 'parallel-calls-parted-inside-escapes', 'parallel-calls-interleaved'],
  ...['web-search-with-citations', 'call-from-within-code', 'max-tokens-in-an-open-call'],
  ...['thinking-text.sse', 'parallel-tools.sse', 'web-search-citations.sse'],
  ...['programmatic-1-code-exec-calls-tool.jsonl', 'max-tokens-mid-tool-json.sse'],
])
const streams: readonly (readonly [string, Uint8Array])[] = [
  ['a reply with everything', sseBytes(rich)],
  ...readingsIn('anthropic')
    .filter(({ file }) => named.has(file))
    .map((reading) => [reading.file, bytesOf(reading)] as const),
]

async function read(answer: Answer): Promise<Outcome> {
  const server = await serve(answer)
  return collect(anthropic('claude-test-1', { apiKey: 'k', baseURL: server.url }))
}

/** Where the blocks of calls close, as bytes from the beginning: before it, the call is open. */
function callsClosedBefore(bytes: Uint8Array, place: number): number {
  const records = new TextDecoder().decode(bytes.subarray(0, place)).split('\n\n').slice(0, -1)
  const events = records.flatMap((record) => {
    const data = record.split('\n').find((line) => line.startsWith('data:'))
    return data ? [JSON.parse(data.slice(5))] : []
  })
  const calls = new Set<number>()
  let closed = 0
  for (const event of events) {
    if (event.type === 'content_block_start' && event.content_block.type === 'tool_use')
      calls.add(event.index)
    if (event.type === 'content_block_stop' && calls.delete(event.index)) closed += 1
  }
  return closed
}

describe.each(streams)('%s', (_, bytes) => {
  it('gives the same signals however its bytes are cut into pieces', async () => {
    const whole = await read({ pieces: [bytes] })
    expect(whole.completed).toBe(true)
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat({ max: bytes.length }), { maxLength: 40 }), async (places) => {
        expect((await read({ pieces: splitAt(bytes, places) })).signals).toEqual(whole.signals)
      }),
      { numRuns: tries(15) },
    )
  })

  it('cut off anywhere, ends once, and requests no call that was open', async () => {
    const whole = await read({ pieces: [bytes] })
    await fc.assert(
      fc.asyncProperty(
        fc.nat({ max: bytes.length - 1 }),
        fc.constantFrom('end', 'break'),
        async (place, ending) => {
          const { signals, failure, completed } = await read({ pieces: [bytes.subarray(0, place)], ending })
          expect(completed).toBe(false)
          expect(failure).toMatchObject({ retryable: true })
          expect(['truncated', 'network']).toContain(failure?.class)
          expect(finished(signals)).toBeUndefined()
          expect(signals).toEqual(whole.signals.slice(0, signals.length))
          expect(callsOf(signals).length).toBeLessThanOrEqual(callsClosedBefore(bytes, place))
          // A proper end brings all that was sent before it; a broken connection may lose some.
          const least = ending === 'end' ? callsClosedBefore(bytes, place) : 0
          expect(callsOf(signals).length).toBeGreaterThanOrEqual(least)
        },
      ),
      { numRuns: tries(40) },
    )
  })
})

it('a reply gives the same signals byte by byte', async () => {
  const bytes = sseBytes(rich)
  const whole = await read({ pieces: [bytes] })
  expect(callsOf(whole.signals).map((call) => call.input)).toEqual([{ city: 'Seoul', days: 3 }, {}])
  expect((await read({ pieces: inPiecesOf(1, bytes) })).signals).toEqual(whole.signals)
})

it('line ends of all kinds, comments and unknown fields change nothing', async () => {
  const whole = await read({ pieces: [sseBytes(rich)] })
  const dressed = rich.map((event) => `: hello\nid: 7\n${sseRecord(event)}`.replaceAll('\n', '\r\n')).join('')
  expect((await read({ pieces: [dressed] })).signals).toEqual(whole.signals)
})

it('whatever order the events come in, a call that was not closed is never requested, and the stream ends once', async () => {
  await fc.assert(
    fc.asyncProperty(fc.shuffledSubarray([...rich]), async (events) => {
      const { signals, completed, failure } = await read({ pieces: [sseBytes(events)] })
      expect(completed).toBe(failure === undefined)
      expect(signals.filter((signal) => signal.type === 'model_finished')).toHaveLength(completed ? 1 : 0)
      expect(signals.slice(0, -1).map((signal) => signal.type)).not.toContain('model_finished')
      const closed = events
        .filter((event: Loose) => event.type === 'content_block_stop')
        .map((event: Loose) => event.index)
      expect(callsOf(signals).length).toBeLessThanOrEqual(closed.filter((index) => index >= 5).length)
    }),
    { numRuns: tries(60) },
  )
})
