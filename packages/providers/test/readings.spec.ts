import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { effort, tries } from '../../../scripts/testing/effort.ts'
import { callsOf, collect, deltasOf, finished, lastContext, lastUsage } from './kit/collect.ts'
import { serve } from './kit/loopback.ts'
import { forbidConsole, forbidUnhandledRejections } from './kit/quiet.ts'
import { answerOf, bytesOf, modelOver, readings } from './kit/readings.ts'
import type { Reading } from './kit/written/reading.ts'

forbidConsole()
forbidUnhandledRejections()

/** The reply, read by the adapter of its wire through the vendor's client, over HTTP in pieces that end at these places. */
async function read(reading: Reading, places: readonly number[] = []) {
  const server = await serve(answerOf(reading, places))
  return collect(modelOver[reading.folder](server.url))
}

/** What `readOnce` has read. */
const readBefore = new Map<Reading, ReturnType<typeof read>>()

/** The reply in one piece, which every claim about its stream looks at. */
function readOnce(reading: Reading): ReturnType<typeof read> {
  const outcome = readBefore.get(reading) ?? read(reading)
  readBefore.set(reading, outcome)
  return outcome
}

/** Streams of fewer bytes are parted at every third one. */
const partedBytesMax = effort({ quick: 600, thorough: 20_000 })

const started = readings.filter(({ status }: Reading & { status?: number }) => status === undefined)
const ending = readings.filter(({ stop }) => stop)

/** The reply of a stream that comes to its end. */
async function replyOf(reading: Reading) {
  const { signals, completed } = await readOnce(reading)
  expect(completed).toBe(true)
  return { signals, ...finished(signals)! }
}

describe('a stream that a person has read', () => {
  it.each(started)('$folder/$file begins, streams and is counted as it says', async (reading) => {
    const { signals } = await readOnce(reading)
    const { id, served } = reading
    expect(signals[0]).toEqual({
      ...{ type: 'model_started', ...(id && { providerMessageId: id }) },
      ...(served && { servedModel: served }),
    })
    expect(signals.filter(({ type }) => type === 'model_started')).toHaveLength(1)
    expect(lastUsage(signals)).toEqual(reading.usage)
    const calls = callsOf(signals)
    expect(calls.map((call) => [call.providerCallId, call.name, call.input])).toEqual(reading.calls)
    const malformed = calls.flatMap((call) =>
      call.malformed ? [[call.providerCallId, call.malformed.text]] : [],
    )
    expect(Object.fromEntries(malformed)).toEqual(reading.malformed ?? {})
    const shown = deltasOf(signals)
    const seen = reading.parts.map(([kind, length, begins = '', ends = begins], place) => {
      const text = shown.get(place) ?? ''
      if (length === undefined) return [kind, ...(text === '' ? [] : [text])]
      return [kind, text.length, text.slice(0, begins.length), text.slice(text.length - ends.length)]
    })
    expect(seen).toEqual(
      reading.parts.map(([kind, length, begins = '', ends = begins]) =>
        length === undefined ? [kind] : [kind, length, begins, ends],
      ),
    )
  })

  it.each(ending)('$folder/$file ends as it says', async (reading) => {
    const { signals, ...reply } = await replyOf(reading)
    const [stopReason, raw] = reading.stop!
    expect([reply.stopReason, reply.rawStopReason, reply.providerMessageId]).toEqual([
      ...[stopReason, raw, reading.id],
    ])
    expect(reply.parts.map((part) => (part.type === 'provider' ? part.kind : part.type))).toEqual(
      reading.parts.map(([kind]) => kind),
    )
    expect(reply.parts.map((part) => part.part)).toEqual(reading.parts.map((_, place) => place))
    const texts = reply.parts.flatMap((part) => ('text' in part ? [[part.part, part.text] as const] : []))
    const shown = deltasOf(signals)
    expect(texts).toEqual(texts.map(([place]) => [place, shown.get(place) ?? '']))
  })

  it.each(ending.filter(({ context }) => context))(
    '$folder/$file says how long the conversation is beside what is billed',
    async (reading) => {
      expect(lastContext((await readOnce(reading)).signals)).toBe(reading.context)
    },
  )

  it.each(ending.filter(({ carried }) => carried))(
    '$folder/$file gives its parts what the vendor wants back',
    async (reading) => {
      const { parts } = await replyOf(reading)
      const places = Object.keys(reading.carried!).map(Number)
      expect(places.map((place) => parts[place]?.opaque?.data)).toMatchObject(
        places.map((place) => reading.carried![place]),
      )
    },
  )

  it.each(ending.filter(({ executed }) => executed))(
    '$folder/$file shows the calls that the vendor ran itself',
    async (reading) => {
      const { parts } = await replyOf(reading)
      const ran = parts.flatMap((part) => (part.type === 'provider' && part.executed ? [part.executed] : []))
      expect(ran).toMatchObject([...reading.executed!])
    },
  )

  it.each(ending.filter(({ citations }) => citations))('$folder/$file cites as it says', async (reading) => {
    const { parts } = await replyOf(reading)
    const cited = parts.flatMap((part) =>
      part.type === 'text' && part.citations ? [[part.part, part.citations] as const] : [],
    )
    expect(Object.fromEntries(cited)).toEqual(reading.citations)
  })

  it.each(readings.filter(({ failure }) => failure))('$folder/$file fails as it says', async (reading) => {
    const { signals, failure } = await readOnce(reading)
    expect([failure?.class, failure?.retryable]).toEqual(reading.failure)
    expect(failure?.retryAfterMs).toBe(reading.retryAfterMs)
    expect(failure?.message).toContain(reading.failureWords ?? '')
    expect(finished(signals)).toBeUndefined()
  })

  it.each(readings)('$folder/$file reads alike at any borders of its pieces', async (reading) => {
    const whole = await readOnce(reading)
    const bytes = bytesOf(reading)
    const alike = async (places: readonly number[]) => {
      const { signals, failure } = await read(reading, places)
      // A reset may take what was sent right before it.
      const least = failure?.class === 'network' ? signals.length : whole.signals.length
      expect(signals).toEqual(whole.signals.slice(0, least))
      expect(failure?.toFailure()).toEqual(whole.failure?.toFailure())
    }
    // In pieces of three bytes each character of four and each escape is parted, whatever is around it.
    if (bytes.length < partedBytesMax)
      await alike(Array.from(bytes.keys()).filter((place) => place % 3 === 0))
    const borders = fc.array(fc.nat({ max: bytes.length }), { maxLength: 60 })
    await fc.assert(fc.asyncProperty(borders, alike), { numRuns: tries(3) })
  })
})

it('is there for every wire, is named once, and says how it ends or how it fails', () => {
  const names = readings.map(({ folder, file }) => `${folder}/${file}`)
  expect(new Set(names).size).toBe(names.length)
  const folders = Object.groupBy(readings, ({ folder }) => folder)
  expect(Object.values(folders).map((those) => those.length >= 20)).toEqual([true, true, true, true, true])
  expect(readings.filter(({ stop, failure }) => (stop === undefined) === (failure === undefined))).toEqual([])
})
