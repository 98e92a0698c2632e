// Streams of events pass through unchanged, each event in a chunk of its own, and no event is longer than it may be.
import * as fc from 'fast-check'
import { expect, it } from 'vitest'
import { tries } from '../../../../scripts/testing/effort.ts'
import { boundFetch } from '../../src/mcp/fetch.ts'

const encoder = new TextEncoder()

function streamOf(chunks: readonly string[]): Response {
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(encoder.encode(chunk))
      controller.close()
    },
  })
  return new Response(body, { headers: { 'content-type': 'text/event-stream' } })
}

async function chunksOf(given: readonly string[], maxBytes: number): Promise<readonly string[]> {
  const response = await boundFetch(() => Promise.resolve(streamOf(given)), maxBytes)('http://a.example')
  const read: string[] = []
  for await (const chunk of response.body ?? []) read.push(new TextDecoder().decode(chunk as Uint8Array))
  return read
}

const line = fc.stringMatching(/^[a-z: ]{1,12}$/)
const end = fc.constantFrom('\n', '\r\n')
const event = fc
  .tuple(fc.array(line, { minLength: 1, maxLength: 3 }), end)
  .map(([lines, newline]) => [...lines, '', ''].join(newline))
const pieces = fc
  .tuple(fc.array(event, { minLength: 1, maxLength: 6 }), fc.array(fc.nat({ max: 400 }), { maxLength: 6 }))
  .map(([events, cuts]) => {
    const text = events.join('')
    const places = [0, ...cuts.filter((cut) => cut < text.length).toSorted((one, other) => one - other)]
    return { events, chunks: places.map((from, index) => text.slice(from, places[index + 1])) }
  })

it('a stream keeps its bytes, and no chunk holds a part of two events', async () => {
  await fc.assert(
    fc.asyncProperty(pieces, async ({ events, chunks }) => {
      const read = await chunksOf(chunks, 1_000)
      expect(read.join('')).toBe(events.join(''))
      const ends = events.map((_event, index) => events.slice(0, index + 1).join('').length)
      const readEnds = read.map((_chunk, index) => read.slice(0, index + 1).join('').length)
      expect(ends.filter((each) => !readEnds.includes(each))).toEqual([])
    }),
    { numRuns: tries(100) },
  )
})

it('a body, and the first event of a stream, may be just as long as a message', async () => {
  const bounded = async (text: string): Promise<string> => {
    const fetching = boundFetch(() => Promise.resolve(new Response(text)), 60)
    return await (await fetching('http://a.example')).text()
  }
  expect(await bounded('x'.repeat(60))).toBe('x'.repeat(60))
  await expect(bounded('x'.repeat(61))).rejects.toThrow('longer than 60 bytes')
  const event = `data: ${'x'.repeat(54)}\n\n`
  expect((await chunksOf([event], 60)).join('')).toBe(event)
  await expect(chunksOf([`x${event}`], 60)).rejects.toThrow('longer than 60 bytes')
  // The carriage returns count, that of the empty line included.
  const windows = `data: ${'x'.repeat(52)}\r\n\r\n`
  expect((await chunksOf([windows], 60)).join('')).toBe(windows)
  await expect(chunksOf([`x${windows}`], 60)).rejects.toThrow('longer than 60 bytes')
})

it('a stream ends in an error at an event that is too long, however it is cut', async () => {
  const short = `data: ${'x'.repeat(40)}\n\n`
  expect((await chunksOf([short.repeat(50)], 60)).join('')).toBe(short.repeat(50))
  for (const size of [1, 7, 500]) {
    const text = `${short}data: ${'x'.repeat(80)}\n\n`
    const cut = text.match(new RegExp(`[^]{1,${size}}`, 'g')) ?? []
    await expect(chunksOf(cut, 60)).rejects.toThrow('longer than 60 bytes')
  }
})
