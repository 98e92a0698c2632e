import { LedgerDamagedError, type RuntimeEvent } from '@tallystick/core'
import { everyFact, sampleRunId, stamped } from '@tallystick/core/testing'
import { describe, expect, it } from 'vitest'
import { decodedEvents, decodedSegments, segmentsOf } from '../src/content/event/decoded-events.ts'
import { extentsOf, keyIdOfSegments } from '../src/content/event/segments.ts'
import { presentEvents, withoutEvents } from '../src/content/event/taken-segments.ts'
import { genesisHash } from '../src/record/chain.ts'
import type { StoredRemoval } from '../src/record/removal.ts'
import type { StoredRow } from '../src/record/stored-row.ts'

const runId = sampleRunId(1)
const facts = everyFact(runId)
const [event] = stamped(runId, [facts.usage_updated]) as readonly [RuntimeEvent]
const salt = new Uint8Array(16).fill(7)
const notHeld = `Run ${runId} is damaged at seq 1: its body does not hold the events of its row`

/** A row of segments from event 1 on, whatever its bytes are. */
function rowOf(events: number, body: string | undefined, more: Partial<StoredRow> = {}): StoredRow {
  const { at, epoch } = event
  return {
    ...{ runId, firstSeq: 1, seq: events, epoch, turn: 1, type: 'several', v: 1, at, pos: events },
    ...{ bodyCommit: new Uint8Array(), hash: genesisHash },
    ...(body !== undefined && { payload: { salt, body: Buffer.from(body) } }),
    ...more,
  }
}

/** A body with these heads and segments, as one is written. */
function bodyOf(heads: unknown, segments: readonly unknown[], end = ']}', key = ''): string {
  const lines = segments.map((segment) => JSON.stringify(segment)).join(',\n')
  return `{${key}"heads":${JSON.stringify(heads)},"segments":[\n${lines}\n${end}`
}

const opened = (...of: readonly string[]): string => `],"opened":${JSON.stringify(of)}}`
const packed = { same: { attempt: 1, part: 0 }, text: ['a', 'b'] }

describe('a row of segments whose bytes were forged', () => {
  it.each<readonly [string, number, string | undefined]>([
    ['no payload', 2, undefined],
    ['bytes in no form', 2, 'x'],
    ['no segments', 2, `{"heads":["usage_updated","usage_updated"],"others":[\n{},\n{}\n]}`],
    ['more segments than heads', 2, bodyOf([{ type: 'assistant_text_delta', events: 2 }], [packed, {}])],
    ['nothing as a segment', 2, bodyOf(['usage_updated', 'usage_updated'], [{}, null])],
    ['half an event', 2, bodyOf(['usage_updated', { type: 'usage_updated', events: 1.5 }], [{}, {}])],
    [
      'a segment of no event',
      2,
      bodyOf(['usage_updated', 'usage_updated', { type: 'usage_updated', events: 0 }], [{}, {}, {}]),
    ],
    ['a text as a number of events', 2, bodyOf([{ type: 'assistant_text_delta', events: '2' }], [packed])],
    ['a text as a time', 2, bodyOf([{ type: 'usage_updated', earlier: '1' }, 'usage_updated'], [{}, {}])],
    ['half a millisecond', 2, bodyOf([{ type: 'usage_updated', earlier: 0.5 }, 'usage_updated'], [{}, {}])],
    ['a number as a type', 2, bodyOf([{ type: 7 }, 'usage_updated'], [{}, {}])],
    ['a number as a call', 2, bodyOf([{ type: 'usage_updated', call: 1 }, 'usage_updated'], [{}, {}])],
    [
      'a call in a head of fields that is none',
      2,
      bodyOf([{ type: 'usage_updated', call: '1_1' }, 'usage_updated'], [{}, {}]),
    ],
    [
      'more events in a segment than a row holds',
      257,
      bodyOf([{ type: 'assistant_text_delta', events: 257 }], [{ ...packed, text: Array(257).fill('a') }]),
    ],
    ['opened segments in no form', 2, bodyOf(['usage_updated', 'usage_updated'], [null, {}], ']x}')],
    [
      'fewer heads than opened segments',
      2,
      bodyOf(
        [{ type: 'assistant_text_delta', events: 2 }],
        [null, packed],
        opened('0'.repeat(64), '0'.repeat(32)),
      ),
    ],
    [
      'heads of opened segments that are none',
      2,
      bodyOf(7, [null, {}], opened('0'.repeat(64), '0'.repeat(32))),
    ],
    [
      'a number as a sealed segment',
      2,
      bodyOf(['usage_updated', 'usage_updated'], [7, 7], ']}', '"key":"k1",'),
    ],
  ])('is damage where it has %s', (_what, events, body) => {
    const row = rowOf(events, body)
    expect(() => decodedEvents(row)).toThrow(LedgerDamagedError)
    expect(() => decodedEvents(row)).toThrow(events > 256 ? 'is damaged at seq 1' : notHeld)
  })

  it('is read where a head says what it need not say', () => {
    const heads = [
      { type: 'usage_updated', events: 1, earlier: 0, v: 1 },
      { type: 'usage_updated', earlier: 1000 },
    ]
    const read = decodedEvents(rowOf(2, bodyOf(heads, [{ a: 1 }, { b: 2 }])))
    expect(read).toEqual([
      { ...baseOf(1), a: 1 },
      { ...baseOf(2), at: event.at - 1000, b: 2 },
    ])
  })

  it('is read up to as many events as a row holds', () => {
    const body = bodyOf(
      [{ type: 'assistant_text_delta', events: 256 }],
      [{ ...packed, text: Array(256).fill('a') }],
    )
    expect(decodedEvents(rowOf(256, body)).map(({ seq }) => seq)).toEqual(
      Array.from({ length: 256 }, (_, index) => index + 1),
    )
  })

  it('keeps to its envelope whatever a segment claims', () => {
    const claimed = { seq: 9, runId: 'another', epoch: 9, turn: 9, type: 'run_finished', v: 9, at: 9, a: 1 }
    const [read] = decodedEvents(rowOf(2, bodyOf(['usage_updated', 'usage_updated'], [claimed, {}])))
    expect(read).toEqual({ ...baseOf(1), a: 1 })
  })
})

function baseOf(seq: number): object {
  return { runId, seq, epoch: event.epoch, turn: 1, type: 'usage_updated', v: 1, at: event.at }
}

describe('segments that were taken away', () => {
  const removal = (fromSeq: number, toSeq: number, by: string): StoredRemoval => ({
    ...{ pos: 1, runId, fromSeq, toSeq, kind: 'redacted', at: 1, by, kept: '{}', hash: genesisHash },
  })
  const gone = '0'.repeat(64)
  const heads = [
    'usage_updated',
    { type: 'assistant_text_delta', events: 3 },
    'usage_updated',
    'usage_updated',
  ]
  const body = bodyOf(heads, [null, null, {}, null], opened(gone, gone, '0'.repeat(32), gone))
  const readWith = (...removals: readonly StoredRemoval[]): readonly unknown[] =>
    decodedEvents(rowOf(6, body, { removals })).map(({ seq, removed }) => [seq, removed?.by])

  it('are each accounted for by the first removal that covers all of their events', () => {
    expect(readWith(removal(1, 1, 'a'), removal(2, 4, 'b'), removal(6, 6, 'c'))).toEqual([
      [1, 'a'],
      ...[2, 3, 4].map((seq) => [seq, 'b']),
      [5, undefined],
      [6, 'c'],
    ])
    expect(readWith(removal(6, 9, 'c'), removal(1, 4, 'a'), removal(2, 4, 'b'))).toEqual([
      ...[1, 2, 3, 4].map((seq) => [seq, 'a']),
      [5, undefined],
      [6, 'c'],
    ])
  })

  it.each([
    ['begins within it', removal(3, 4, 'b')],
    ['ends within it', removal(2, 3, 'b')],
  ])('are damage where the only removal of a segment %s', (_what, part) => {
    expect(() => readWith(removal(1, 1, 'a'), part, removal(6, 6, 'c'))).toThrow(
      `Run ${runId} is damaged at seq 2: nothing says why its payload is gone`,
    )
  })

  it('leave out what a removal did not keep: its reason, where it has none', () => {
    const read = decodedEvents(rowOf(6, body, { removals: [{ ...removal(1, 6, 'a'), reason: 'asked' }] }))
    expect(read[0]?.removed).toEqual({ kind: 'redacted', at: 1, by: 'a', reason: 'asked' })
    const without = decodedEvents(rowOf(6, body, { removals: [removal(1, 6, 'a')] }))
    expect(without[0]?.removed).toStrictEqual({ kind: 'redacted', at: 1, by: 'a' })
  })

  it('are counted, and taken, in whole segments of the range', () => {
    const row = { pos: 6, firstSeq: 1, seq: 6, salt: new Uint8Array(16) }
    const whole = {
      ...row,
      salt,
      body: Buffer.from(bodyOf(heads, [{}, { ...packed, text: ['a', 'b', 'c'] }, {}, {}])),
    }
    const counted = (fromSeq: number, toSeq: number): number => presentEvents(whole, { fromSeq, toSeq })
    expect([
      counted(1, 6),
      counted(2, 4),
      counted(2, 5),
      counted(3, 4),
      counted(2, 3),
      counted(5, 5),
    ]).toEqual([6, 3, 4, 0, 0, 1])
    expect(presentEvents({ ...row, body: Buffer.from(body) }, { fromSeq: 1, toSeq: 6 })).toBe(1)
    const left = withoutEvents(whole, { fromSeq: 2, toSeq: 5 })
    expect(presentEvents({ ...row, ...left }, { fromSeq: 1, toSeq: 6 })).toBe(2)
  })

  it.each<readonly [string, string]>([
    ['no heads', bodyOf(7, [{}])],
    ['heads of fewer events', bodyOf(['usage_updated'], [{}])],
    [
      'heads of more events',
      bodyOf(['usage_updated', { type: 'assistant_text_delta', events: 2 }], [{}, packed]),
    ],
  ])('are not taken where a row has %s', (_what, bytes) => {
    const row = { pos: 6, firstSeq: 4, seq: 5, salt, body: Buffer.from(bytes) }
    expect(() => presentEvents(row, { fromSeq: 4, toSeq: 5 })).toThrow(
      'its body does not hold the events of its row',
    )
    expect(() => withoutEvents({ ...row, body: Buffer.from('x') }, { fromSeq: 4, toSeq: 5 })).toThrow(
      'The row at place 6 does not hold the segments that its columns announce, so nothing was taken away from it.',
    )
  })

  it('have the extents that the heads give them', () => {
    expect(extentsOf({ firstSeq: 4, seq: 8 }, ['a', { type: 'b', events: 3 }, 'c'])).toEqual([
      { fromSeq: 4, toSeq: 4 },
      { fromSeq: 5, toSeq: 7 },
      { fromSeq: 8, toSeq: 8 },
    ])
  })
})

describe('a row that is read apart by segments', () => {
  it('has one list for each, and its events are those of the lists', () => {
    const row = rowOf(3, bodyOf(['usage_updated', { type: 'assistant_text_delta', events: 2 }], [{}, packed]))
    expect(decodedSegments(row).map((events) => events.map(({ seq }) => seq))).toEqual([[1], [2, 3]])
    expect(segmentsOf(row).map(({ firstSeq, seq, pos }) => [firstSeq, seq, pos])).toEqual([
      [undefined, 1, 3],
      [2, 3, 3],
    ])
  })
})

describe('the key of a row of segments', () => {
  it('is named in its first line, where it has one', () => {
    const of = (body: string): string | undefined => keyIdOfSegments(Buffer.from(body))
    expect(of(bodyOf(['usage_updated'], ['AA=='], ']}', '"key":"k1",'))).toBe('k1')
    expect(of(bodyOf(['usage_updated'], [{}]))).toBeUndefined()
    expect(of(bodyOf(['usage_updated'], ['AA=='], ']}', '"key":7,'))).toBeUndefined()
    expect(of('x')).toBeUndefined()
  })
})
