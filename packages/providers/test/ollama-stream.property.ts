import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { tries } from '../../../scripts/testing/effort.ts'
import { ollama } from '../src/ollama.ts'
import { inPiecesOf, splitAt } from './kit/bytes.ts'
import { callsOf, collect, finished, type Outcome } from './kit/collect.ts'
import { serve, type Answer } from './kit/loopback.ts'
import { answer, lineBytes, rich } from './kit/ollama-lines.ts'
import { forbidConsole } from './kit/quiet.ts'
import { bytesOf, readingsIn } from './kit/readings.ts'
import type { Loose } from './kit/loose.ts'

// The client writes lines that it cannot read to the console.
forbidConsole()

/** Streams that say something on every line, and nothing after their last one. */
const streams: readonly (readonly [string, Uint8Array])[] = [
  ['a reply with everything', lineBytes(rich)],
  ...readingsIn('ollama')
    .filter(({ stop, file }) => stop && !['blank-lines', 'behind-its-end-other-words'].includes(file))
    .map((reading) => [reading.file, bytesOf(reading)] as const),
]

async function read(given: Answer): Promise<Outcome> {
  const server = await serve(given)
  return collect(ollama('qwen-test', { baseURL: server.url }))
}

/** How many calls are on lines that end before this place. */
function callsBefore(bytes: Uint8Array, place: number): number {
  const lines = new TextDecoder().decode(bytes.subarray(0, place)).split('\n').slice(0, -1)
  return lines.flatMap((line) => JSON.parse(line).message.tool_calls ?? []).length
}

describe.each(streams)('%s', (_, bytes) => {
  it('gives the same signals however its bytes are cut into pieces', async () => {
    const whole = await read(answer([bytes]))
    expect(whole.completed).toBe(true)
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat({ max: bytes.length }), { maxLength: 40 }), async (places) => {
        expect((await read(answer(splitAt(bytes, places)))).signals).toEqual(whole.signals)
      }),
      { numRuns: tries(10) },
    )
  })

  it('cut off anywhere, ends once, and requests no call that was not whole', async () => {
    const whole = await read(answer([bytes]))
    // The last line is whole without its end.
    const { length } = new TextEncoder().encode(new TextDecoder().decode(bytes).trimEnd())
    await fc.assert(
      fc.asyncProperty(
        fc.nat({ max: length - 1 }),
        fc.constantFrom('end' as const, 'break' as const),
        async (place, ending) => {
          const { signals, failure, completed } = await read(answer([bytes.subarray(0, place)], { ending }))
          expect(completed).toBe(false)
          expect(failure).toMatchObject({ retryable: true })
          expect(['truncated', 'network']).toContain(failure?.class)
          expect(finished(signals)).toBeUndefined()
          expect(signals).toEqual(whole.signals.slice(0, signals.length))
          // A proper end brings all that was sent before it; a broken connection may lose some.
          const least = ending === 'end' ? callsBefore(bytes, place) : 0
          expect(callsOf(signals).length).toBeGreaterThanOrEqual(least)
          // The last line counts without its line feed.
          expect(callsOf(signals).length).toBeLessThanOrEqual(callsBefore(bytes, place + 1))
        },
      ),
      { numRuns: tries(25) },
    )
  })
})

it('a reply gives the same signals byte by byte', async () => {
  const bytes = lineBytes(rich)
  const whole = await read(answer([bytes]))
  expect(callsOf(whole.signals).map((call) => call.input)).toEqual([
    { city: 'Seoul', days: 3 },
    {},
    { city: 'Busan' },
  ])
  expect((await read(answer(inPiecesOf(1, bytes)))).signals).toEqual(whole.signals)
})

it('line ends of all kinds, and blank lines, change nothing and get on no console', async () => {
  const bytes = lineBytes(rich)
  const whole = await read(answer([bytes]))
  const dressed = `\n\r\n${new TextDecoder().decode(bytes).replaceAll('\n', '\r\n \r\n\n')}`
  expect((await read(answer([dressed]))).signals).toEqual(whole.signals)
})

it('garbage among the lines ends the reply as one that cannot be trusted, after what came before it', async () => {
  const lines = rich.map((one) => JSON.stringify(one))
  const garbage = fc.constantFrom(
    '<html>',
    '{"message": ',
    'null',
    '[1]',
    '"secret words"',
    '{}}',
    'data: {}',
    '\u0000',
  )
  await fc.assert(
    fc.asyncProperty(fc.nat({ max: lines.length - 1 }), garbage, async (place, words) => {
      const whole = await read(answer([lines.slice(0, place).concat('').join('\n')]))
      const body = [...lines.slice(0, place), words, ...lines.slice(place), ''].join('\n')
      const { signals, failure } = await read(answer(inPiecesOf(61, new TextEncoder().encode(body))))
      expect(failure).toMatchObject({ class: 'protocol', retryable: true })
      expect(failure?.message).not.toContain('secret')
      expect(failure?.cause).toBeUndefined()
      expect(signals).toEqual(whole.signals)
    }),
    { numRuns: tries(30) },
  )
})

it('whatever order the lines come in, the stream ends once, with all calls before its last line', async () => {
  await fc.assert(
    fc.asyncProperty(fc.shuffledSubarray([...rich]), async (lines) => {
      const { signals, completed, failure } = await read(answer([lineBytes(lines)]))
      const last = lines.findIndex((one: Loose) => one.done)
      expect(completed).toBe(last >= 0)
      expect(failure?.class).toBe(last >= 0 ? undefined : 'truncated')
      expect(signals.filter((signal) => signal.type === 'model_finished')).toHaveLength(completed ? 1 : 0)
      const asked = (last >= 0 ? lines.slice(0, last) : lines).flatMap(
        (one: Loose) => one.message.tool_calls ?? [],
      )
      expect(callsOf(signals)).toHaveLength(asked.length)
    }),
    { numRuns: tries(40) },
  )
})
