import { type RuntimeEvent } from '@tallystick/core'
import { everyFact, sampleCallId, sampleRunId, stamped } from '@tallystick/core/testing'
import type { EventType } from '@tallystick/core/vocabulary'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { tries } from '../../../scripts/testing/effort.ts'
import { decodedEvents, decodedSegments, segmentsOf } from '../src/content/event/decoded-events.ts'
import { maxPackedMs } from '../src/content/event/packed-deltas.ts'
import { isSharedType, sharedTypes } from '../src/content/event/shared-types.ts'
import { isStored, storableRows } from '../src/content/event/stored-rows.ts'
import { presentEvents, withoutEvents } from '../src/content/event/taken-segments.ts'
import { Sealer } from '../src/content/payload/encrypted-bytes.ts'
import { redactedPayload } from '../src/content/payload/redacted-payload.ts'
import { genesisHash, hexOf } from '../src/record/chain.ts'
import { linkRows } from '../src/record/linked-row.ts'
import { genesis, linkFault, type Link } from '../src/record/link-check.ts'
import type { StoredRemoval } from '../src/record/removal.ts'
import { isSegmented, type StoredRow } from '../src/record/stored-row.ts'

const runId = sampleRunId(1)
const facts = everyFact(runId)
const types: readonly EventType[] = [...sharedTypes, 'cancel_requested', 'model_stream_failed']

/** Events of any type, call and time, as the clock of a host and a forked run may give them. */
const someEvents = fc
  .array(
    fc.record({
      type: fc.constantFrom(...types),
      text: fc.oneof(fc.string({ unit: 'binary' }), fc.constant('\n],\n'), fc.constant('x'.repeat(20_000))),
      call: fc.constantFrom(
        ...[1, 2].map((ordinal) => sampleCallId(runId, ordinal)),
        sampleCallId(sampleRunId(2)),
      ),
      attempt: fc.integer({ min: 1, max: 3 }),
      turn: fc.constantFrom(1, 1, 1, 2),
      later: fc.oneof(fc.constant(0), fc.integer({ min: -2, max: 1_200 })),
      repeat: fc.constantFrom(1, 1, 1, 3, 120),
    }),
    { minLength: 1, maxLength: 20 },
  )
  .map((choices) => {
    const said = choices.flatMap(({ repeat, ...choice }) =>
      Array.from({ length: choice.type.endsWith('_delta') ? repeat : 1 }, () => choice),
    )
    let at = 1_700_000_000_000
    return stamped(
      runId,
      said.map(({ type }) => facts[type]),
    ).map((event, index): RuntimeEvent => {
      const { text, call, attempt, turn, later } = said[index]!
      return {
        ...event,
        ...('text' in event && { text }),
        ...('toolCallId' in event && { toolCallId: call }),
        ...('attempt' in event && { attempt }),
        turn,
        at: (at += later),
      }
    })
  })

const subject = { id: 'k1', bytes: new Uint8Array(32).fill(7) }

function stored(events: readonly RuntimeEvent[], sealer?: Sealer): readonly StoredRow[] {
  const rows = storableRows(events, sealer)
  const contents = new Map(rows.flatMap((row) => row.contents.map(({ digest, bytes }) => [digest, bytes])))
  const decoding = {
    sealers: new Map(sealer ? [[subject.id, sealer]] : []),
    contents,
    histories: new Map(),
    hasKeys: true,
  }
  return linkRows(genesisHash, rows).map(({ envelope, onceKey, bodyCommit, hash, salt, body }, index) => {
    return {
      ...envelope,
      ...(onceKey !== undefined && { onceKey }),
      pos: index + 1,
      bodyCommit,
      hash,
      payload: { salt, body },
      decoding,
    }
  })
}

/** The faults of the chain of some rows. */
function faults(rows: readonly StoredRow[]): readonly unknown[] {
  let previous: Link = genesis
  return rows.flatMap((row) => {
    const fault = linkFault(previous, row)
    previous = row
    return fault ? [fault] : []
  })
}

const removal = (fromSeq: number, toSeq: number, kept: string): StoredRemoval => {
  return { pos: 1, runId, fromSeq, toSeq, kind: 'redacted', at: 1, by: 'me', kept, hash: genesisHash }
}

/** A row without some of its events, as a store keeps it. */
function without(row: StoredRow, ranges: readonly (readonly [number, number])[]): StoredRow {
  const { pos, firstSeq = row.seq, seq, payload } = row
  let left = payload!
  const removals = ranges.map(([fromSeq, toSeq]) => {
    left = withoutEvents({ pos, firstSeq, seq, ...left }, { fromSeq, toSeq })
    const event = decodedEvents(row).find((each) => each.seq === fromSeq)!
    return removal(fromSeq, toSeq, JSON.stringify(redactedPayload(event)))
  })
  return { ...row, payload: left, removals }
}

const isSealedOrNot = fc.constantFrom(undefined, new Sealer(subject))

describe('rows that hold events of several types', () => {
  it('hold every event once, in order, as it was said, in a chain that holds', () => {
    fc.assert(
      fc.property(someEvents, isSealedOrNot, (events, sealer) => {
        const rows = stored(events, sealer)
        expect(faults(rows)).toEqual([])
        expect(rows.flatMap(decodedEvents)).toStrictEqual(events)
        for (const row of rows) {
          const due = events.filter(({ seq }) => seq >= (row.firstSeq ?? row.seq) && seq <= row.seq)
          expect(isStored(row, due, sealer)).toBe(true)
          expect(isStored(row, due.slice(1), sealer)).toBe(false)
        }
      }),
      { numRuns: tries(100) },
    )
  })

  it('are found by what they say of themselves: one turn, one second, and types that no index has', () => {
    fc.assert(
      fc.property(someEvents, (events) => {
        for (const row of stored(events).filter(isSegmented)) {
          const held = decodedEvents(row)
          expect(new Set(held.map(({ turn }) => turn))).toEqual(new Set([row.turn]))
          expect(held.every(({ at }) => at <= row.at && at >= row.at - maxPackedMs)).toBe(true)
          expect(held.every(({ type }) => isSharedType(type))).toBe(true)
          expect(row).not.toHaveProperty('onceKey')
          const calls = held.flatMap(({ toolCallId }) => toolCallId ?? [])
          expect(calls.filter((each) => !each.includes(`_${row.turn}_1_`))).toEqual([])
        }
      }),
      { numRuns: tries(100) },
    )
  })

  it('give the events of wanted types as they give all, whether segments were taken away or not', () => {
    fc.assert(
      fc.property(
        someEvents,
        isSealedOrNot,
        fc.subarray([...types]),
        fc.nat(),
        (events, sealer, some, pick) => {
          for (const row of stored(events, sealer).filter(isSegmented)) {
            const segments = segmentsOf(row)
            const { firstSeq, seq } = segments[pick % segments.length]!
            for (const each of [row, without(row, [[firstSeq ?? seq, seq]])]) {
              const wanted = decodedSegments(each, (type) => some.includes(type)).flat()
              expect(wanted).toStrictEqual(decodedEvents(each).filter(({ type }) => some.includes(type)))
            }
          }
        },
      ),
      { numRuns: tries(100) },
    )
  })

  it('lose single segments, and keep all others and the chain', () => {
    fc.assert(
      fc.property(
        someEvents,
        isSealedOrNot,
        fc.array(fc.nat(), { minLength: 1, maxLength: 4 }),
        (events, sealer, picks) => {
          const rows = stored(events, sealer)
          const left = rows.map((row): StoredRow => {
            if (!isSegmented(row)) return row
            const segments = segmentsOf(row)
            const chosen = new Set(picks.map((pick) => segments[pick % segments.length]!))
            return without(
              row,
              [...chosen].map(({ firstSeq, seq }) => [firstSeq ?? seq, seq] as const),
            )
          })
          expect(faults(left)).toEqual([])
          for (const [index, row] of left.entries()) {
            const before = rows[index]!
            if (!isSegmented(row)) continue
            const gone = new Set(row.removals?.flatMap(({ fromSeq, toSeq }) => rangeOf(fromSeq, toSeq)))
            const held = decodedEvents(row)
            expect(held.filter(({ seq }) => !gone.has(seq))).toStrictEqual(
              decodedEvents(before).filter(({ seq }) => !gone.has(seq)),
            )
            for (const event of held.filter(({ seq }) => gone.has(seq))) expect(event.removed?.by).toBe('me')
            // No salt is left that could confirm a guess.
            expect(Buffer.from(row.payload!.salt).every((byte) => byte === 0)).toBe(true)
            expect(Buffer.from(row.payload!.body).toString()).not.toContain(hexOf(before.payload!.salt))
            const { firstSeq = row.seq, seq, pos } = row
            const present = presentEvents(
              { pos, firstSeq, seq, ...row.payload! },
              { fromSeq: firstSeq, toSeq: seq },
            )
            expect(present).toBe(held.length - gone.size)
          }
        },
      ),
      { numRuns: tries(60) },
    )
  })

  it('are found changed whichever bit of them flips, whether segments were taken away or not', () => {
    const [row] = stored(
      stamped(runId, [facts.assistant_started, facts.usage_updated, facts.tool_started]),
    ) as readonly [StoredRow]
    for (const sound of [row, without(row, [[2, 2]])]) {
      expect(faults([sound])).toEqual([])
      const { salt, body } = sound.payload!
      for (let at = 0; at < body.length; at++) {
        const changed = Buffer.from(body)
        changed[at] = changed[at]! ^ (1 << (at % 8))
        expect([at, faults([{ ...sound, payload: { salt, body: changed } }]).length]).toEqual([at, 1])
      }
      for (let at = 0; at < salt.length; at++) {
        const changed = Buffer.from(salt)
        changed[at] = changed[at]! ^ 1
        expect(faults([{ ...sound, payload: { salt: changed, body } }])).toHaveLength(1)
      }
      for (const change of [
        { bodyCommit: new Uint8Array(1) },
        { onceKey: 'tool_started' },
        { toolCallId: sampleCallId(runId) },
        { at: sound.at + 1 },
        { turn: 2 },
        { v: 2 },
      ]) {
        expect(faults([{ ...sound, ...change }])).toHaveLength(1)
      }
    }
  })

  it('are damage where a part is put in the place of another, or said to be gone', () => {
    const [row] = stored(
      stamped(runId, [facts.assistant_started, facts.usage_updated, facts.tool_started]),
    ) as readonly [StoredRow]
    const { salt, body } = row.payload!
    const lines = Buffer.from(body).toString().split('\n')
    const [head, first, second, third, end] = lines as [string, string, string, string, string]
    for (const changed of [
      [head, second, first, third, end],
      [head, first, third, end],
      [head, 'null,', second, third, end],
      [head, first, second, `${third},`, end],
      [head, first, second, third, '],"opened":[]}'],
      [
        head,
        first,
        second,
        third,
        `],"opened":["${'0'.repeat(32)}","${'0'.repeat(32)}","${'0'.repeat(32)}"]}`,
      ],
      [head, first, second, third],
    ]) {
      expect(faults([{ ...row, payload: { salt, body: Buffer.from(changed.join('\n')) } }])).toHaveLength(1)
    }
  })
})

describe('a forged row of several types, whose chain holds', () => {
  const [row] = stored(stamped(runId, [facts.assistant_started, facts.usage_updated])) as readonly [StoredRow]
  it.each<readonly [string, unknown, readonly unknown[]]>([
    ['no heads', 7, [{}, {}]],
    ['fewer heads than events', ['usage_updated'], [{}]],
    ['fewer segments than heads', ['usage_updated', 'usage_updated'], [{}]],
    ['more events than the row', ['usage_updated', { type: 'assistant_text_delta', events: 2 }], [{}, {}]],
    ['a head that is none', ['usage_updated', 7], [{}, {}]],
    ['a head without a type', ['usage_updated', { v: 1 }], [{}, {}]],
    ['a version that is none', ['usage_updated', { type: 'usage_updated', v: 'one' }], [{}, {}]],
    ['a call that is none', ['usage_updated', 'tool_started elsewhere'], [{}, {}]],
    ['a time in its future', ['usage_updated', { type: 'usage_updated', earlier: -1 }], [{}, {}]],
    ['a time long before it', [{ type: 'usage_updated', earlier: 1_001 }, 'usage_updated'], [{}, {}]],
    ['a field that no head has', ['usage_updated', { type: 'usage_updated', at: 1 }], [{}, {}]],
    ['a segment that is a list', ['usage_updated', 'usage_updated'], [{}, []]],
    ['a segment that is a text', ['usage_updated', 'usage_updated'], [{}, 'text']],
    ['packed deltas that are none', [{ type: 'assistant_text_delta', events: 2 }], [{}]],
  ])('is damage where it has %s', (_what, heads, segments) => {
    const lines = segments.map((segment) => JSON.stringify(segment)).join(',\n')
    const body = Buffer.from(`{"heads":${JSON.stringify(heads)},"segments":[\n${lines}\n]}`)
    expect(() => decodedEvents({ ...row, payload: { salt: row.payload!.salt, body } })).toThrow(
      `Run ${runId} is damaged at seq 1: its body does not hold the events of its row`,
    )
  })
})

function rangeOf(from: number, to: number): readonly number[] {
  return Array.from({ length: to - from + 1 }, (_, index) => from + index)
}
