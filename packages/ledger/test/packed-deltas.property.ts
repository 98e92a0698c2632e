import { isDeepStrictEqual } from 'node:util'
import { type RuntimeEvent } from '@tallystick/core'
import { advance } from '@tallystick/core/machine'
import { stretchesOf } from '@tallystick/core/store-kit'
import { everyFact, given, sampleRunId, stamped } from '@tallystick/core/testing'
import type { Signal } from '@tallystick/core/vocabulary'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { tries } from '../../../scripts/testing/effort.ts'
import { decodedEvents } from '../src/content/event/decoded-events.ts'
import { eventsBySegment, maxPackedMs } from '../src/content/event/packed-deltas.ts'
import { isStored, storableRows } from '../src/content/event/stored-rows.ts'
import { Sealer } from '../src/content/payload/encrypted-bytes.ts'
import { genesisHash } from '../src/record/chain.ts'
import { maxEventsOfRow } from '../src/record/envelope.ts'
import { linkRows } from '../src/record/linked-row.ts'
import { genesis, linkFault, type Link } from '../src/record/link-check.ts'
import type { StoredRow } from '../src/record/stored-row.ts'
import { anyText } from '../../../scripts/testing/any-text.ts'

const runId = sampleRunId(1)
const facts = everyFact(runId)
const types = [
  'assistant_text_delta',
  'assistant_reasoning_delta',
  'tool_input_delta',
  'usage_updated',
] as const

/** Events of any kind and time, as the clock of a host may give them. */
const someEvents = fc
  .array(
    fc.record({
      type: fc.constantFrom(...types),
      text: fc.oneof(anyText(), fc.constant('\ud800'), fc.constant('x'.repeat(3_000))),
      part: fc.nat({ max: 1 }),
      later: fc.oneof(fc.constant(0), fc.integer({ min: -2, max: 1_200 })),
      repeat: fc.constantFrom(1, 1, 1, 300),
    }),
    { minLength: 1, maxLength: 12 },
  )
  .map((choices) => {
    const said = choices.flatMap(({ repeat, ...choice }) => Array.from({ length: repeat }, () => choice))
    let at = 1_700_000_000_000
    return stamped(
      runId,
      said.map(({ type, text, part }) =>
        type === 'usage_updated' ? facts[type] : { ...facts[type], text, part },
      ),
    ).map((event, index): RuntimeEvent => ({ ...event, at: (at += said[index]!.later) }))
  })

const subject = { id: 'k1', bytes: new Uint8Array(32).fill(7) }

function stored(events: readonly RuntimeEvent[], sealer?: Sealer): readonly StoredRow[] {
  const linked = linkRows(genesisHash, storableRows(events, sealer))
  const decoding = {
    sealers: new Map(sealer ? [[subject.id, sealer]] : []),
    contents: new Map<string, Uint8Array>(),
    histories: new Map(),
    hasKeys: true,
  }
  return linked.map(({ envelope, bodyCommit, hash, salt, body }, index) => {
    return {
      ...envelope,
      pos: index + 1,
      bodyCommit,
      hash,
      payload: { salt, body },
      ...(sealer && { decoding }),
    }
  })
}

describe('rows that hold several deltas', () => {
  it('hold every event once, in order, as it was said, in a chain that holds', () => {
    fc.assert(
      fc.property(someEvents, fc.boolean(), (events, isSealed) => {
        const sealer = isSealed ? new Sealer(subject) : undefined
        const rows = storableRows(events, sealer).map((row) => row.events)
        expect(rows.flat()).toEqual(events)
        let previous: Link = genesis
        const read: RuntimeEvent[] = []
        for (const [index, row] of stored(events, sealer).entries()) {
          expect(linkFault(previous, row)).toBeUndefined()
          expect(isStored(row, rows[index]!, sealer)).toBe(true)
          read.push(...decodedEvents(row))
          previous = row
        }
        expect(read).toStrictEqual(events)
      }),
      { numRuns: tries(100) },
    )
  })

  it('are found by their last time: none holds an event that was recorded later, or much earlier', () => {
    fc.assert(
      fc.property(someEvents, (events) => {
        for (const { events: row } of storableRows(events)) {
          const last = row.at(-1)!.at
          for (const { at } of row) {
            expect(at).toBeLessThanOrEqual(last)
            expect(at).toBeGreaterThanOrEqual(last - maxPackedMs)
          }
          expect(row.length).toBeLessThanOrEqual(maxEventsOfRow)
        }
      }),
      { numRuns: tries(100) },
    )
  })
})

describe('the rows of an append', () => {
  it('hold 32 KB of bodies at most, however many events may share one', () => {
    const text = 'x'.repeat(10_000)
    const said = { ...facts.assistant_text_delta, part: 0, text }
    const thought = { ...facts.assistant_reasoning_delta, part: 1, text }
    const events = stamped(runId, [said, thought, said, thought, said, thought, said])
    expect(storableRows(events).map(({ events: row }) => row.length)).toEqual([3, 3, 1])
  })

  it('give no delta a field that only the one before it has', () => {
    const delta = facts.assistant_text_delta
    const events = stamped(runId, [
      { ...delta, replaces: true },
      { ...delta, ...({ written: undefined } as object) },
    ])
    expect(stored(events).flatMap((row) => decodedEvents(row))).toEqual(events)
  })
})

describe('the body of a row that holds several deltas', () => {
  const events = stamped(runId, [
    facts.assistant_text_delta,
    facts.assistant_text_delta,
    facts.assistant_text_delta,
  ])
  const [row] = stored(events) as readonly [StoredRow]
  const withBody = (body: unknown): StoredRow => {
    return { ...row, payload: { salt: row.payload!.salt, body: Buffer.from(JSON.stringify(body)) } }
  }
  const same = { attempt: 1, part: 0 }

  it.each<readonly [string, unknown]>([
    ['no texts', { same }],
    ['fewer texts than events', { same, text: ['a', 'b'] }],
    ['more texts than events', { same, text: ['a', 'b', 'c', 'd'] }],
    ['a text that is none', { same, text: ['a', 1, 'c'] }],
    ['nothing that is alike', { text: ['a', 'b', 'c'] }],
    ['a list as what is alike', { same: [], text: ['a', 'b', 'c'] }],
    ['fewer times than events', { same, text: ['a', 'b', 'c'], earlier: [1, 0] }],
    ['a time in the future of the row', { same, text: ['a', 'b', 'c'], earlier: [-1, 0, 0] }],
    ['a time long before the row', { same, text: ['a', 'b', 'c'], earlier: [1001, 1, 0] }],
    ['a time that falls', { same, text: ['a', 'b', 'c'], earlier: [1, 2, 0] }],
    ['no time of its own for the last event', { same, text: ['a', 'b', 'c'], earlier: [2, 1, 1] }],
  ])('is damage where it has %s', (_what, body) => {
    expect(() => decodedEvents(withBody(body))).toThrow(
      `Run ${runId} is damaged at seq 1: its body does not hold the events of its row`,
    )
  })

  it('says of each event how long before the last one it was recorded', () => {
    const earlier = [maxPackedMs, 1, 0]
    const events = decodedEvents(withBody({ same, text: ['a', 'b', 'c'], earlier }))
    expect(events.map(({ at }) => row.at - at)).toEqual(earlier)
  })

  it('is damage where the row is of a type that has rows of its own', () => {
    const body = { same, text: ['a', 'b', 'c'] }
    expect(decodedEvents(withBody(body)).map(({ seq }) => seq)).toEqual([1, 2, 3])
    expect(() => decodedEvents({ ...withBody(body), type: 'cancel_requested' })).toThrow(
      'is damaged at seq 1',
    )
  })
})

describe('two neighbouring deltas', () => {
  const changes = fc.dictionary(
    fc.constantFrom(
      'runId',
      'epoch',
      'v',
      'turn',
      'attempt',
      'part',
      'toolCallId',
      'name',
      'inboxKey',
      'more',
    ),
    fc.oneof(fc.constant(undefined), fc.constantFrom<unknown>(1, 'x', 'absent')),
    { maxKeys: 3 },
  )
  const changed = (event: object, by: Readonly<Record<string, unknown>>): object =>
    Object.fromEntries(Object.entries({ ...event, ...by }).filter(([, value]) => value !== 'absent'))
  const told = (event: object): unknown =>
    Object.entries(event)
      .filter(([name]) => name !== 'seq' && name !== 'text')
      .toSorted(([a], [b]) => (a < b ? -1 : 1))

  it('are the same where the machine has made the deltas of an append together', () => {
    const streaming = given([facts.run_started, facts.input_received, facts.model_call_started]).state!
    const { at, turn, epoch } = streaming
    const report = fc.record({
      type: fc.constantFrom('model_text' as const, 'model_text' as const, 'model_reasoning' as const),
      part: fc.nat({ max: 1 }),
      text: fc.oneof(anyText(), fc.constant('x'.repeat(3_000))),
      repeat: fc.constantFrom(1, 1, 3, 300),
    })
    fc.assert(
      fc.property(
        fc.array(report, { minLength: 1, maxLength: 8 }),
        fc.nat({ max: 600 }),
        (reports, apart) => {
          const signals = reports.flatMap(({ repeat, ...piece }) =>
            Array.from({ length: repeat }, (): Signal => ({ ...piece, turn, attempt: 1 })),
          )
          let now = at
          const stamp = () => ({ at: (now += apart), random: 0 })
          const { events } = advance(streaming, signals, { writer: { runId, epoch }, stamp })
          const isKnown = signals.some(({ type }, place) => type === signals[place + 1]?.type)
          expect(stretchesOf(events).length > 0 || !isKnown || signals.length < 300).toBe(true)
          expect(eventsBySegment(events)).toEqual(eventsBySegment([...events]))
          expect(storableRows(events)).toEqual(storableRows([...events]))
        },
      ),
      { numRuns: tries(200) },
    )
  })

  it('are packed where all of their fields are the same, and nowhere else', () => {
    const type = fc.constantFrom('assistant_text_delta' as const, 'tool_input_delta' as const)
    fc.assert(
      fc.property(type, changes, changes, fc.boolean(), (kind, before, after, isSame) => {
        const [first, second] = stamped(runId, [facts[kind], facts[kind]])
        const pair = [
          changed(first as RuntimeEvent, before),
          changed({ ...second, at: first?.at }, isSame ? before : after),
        ]
        const [left, right] = pair.map(told)
        const isEqual = isDeepStrictEqual(left, right)
        expect(eventsBySegment(pair as RuntimeEvent[])).toHaveLength(isEqual ? 1 : 2)
      }),
      { numRuns: tries(1_000) },
    )
  })
})
