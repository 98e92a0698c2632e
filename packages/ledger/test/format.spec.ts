import { createHash, randomBytes } from 'node:crypto'
import type { RuntimeEvent } from '@tallystick/core'
import { emptyHistoryDigest, computeHistoryDigests } from '@tallystick/core/internal'
import type { EventOf } from '@tallystick/core/vocabulary'
import { sampleFacts, sampleCallId, sampleMessage, sampleRunId, stampFacts } from '@tallystick/testkit'
import { describe, expect, it } from 'vitest'
import { decodeEvent, encodeEvent, encodeRemains, type Decoding } from '../src/format/body.ts'
import {
  commitTo,
  firstRemoval,
  genesisHash,
  isRemovalIntact,
  computeLinkHash,
  linkRemovals,
  drawSalt,
  type RunCell,
  sealRun,
} from '../src/format/chain.ts'
import {
  eventColumns,
  findLinkFault,
  genesis,
  isSameEvent,
  linkEvents,
  readEvent,
  type EventRow,
} from '../src/format/event-row.ts'
import { HistoryReader, isHistoryRow, type HistoryRow } from '../src/format/history.ts'
import { Sealer } from '../src/format/keyring.ts'

const runId = sampleRunId(1)
const facts = sampleFacts(runId)
const sealer = new Sealer({ id: 'k1', bytes: randomBytes(32) })
const sha256 = (text: string): string => createHash('sha256').update(text).digest('base64url')

function rowsOf(events: readonly RuntimeEvent[], by?: Sealer): readonly EventRow[] {
  const rows = linkEvents(
    genesisHash,
    events.map((event) => encodeEvent(event, by)),
  )
  return rows.map((row, index) => ({ ...row, pos: index + 1, commitment: null }))
}

const someEvents = stampFacts(runId, [
  facts.run_started,
  facts.input_received,
  { ...facts.tool_started, toolCallId: sampleCallId(runId), attempt: 2 },
  { ...facts.tool_result, toolCallId: sampleCallId(runId) },
])

describe('the chain of hashes', () => {
  it('given a body, when it is committed to, then by SHA-256 of the salt and the body', () => {
    expect(commitTo('salt', '{"a":1}')).toBe(sha256('salt{"a":1}'))
    expect(genesisHash).toBe(Buffer.alloc(32).toString('base64url'))
  })

  it('given an envelope, when it is linked, then by the hash before, its fields as a JSON list, and the commitment', () => {
    const row = {
      ...{ run_id: 'r"', seq: 3, type: 'tool_result', turn: 1, tool_call_id: 'c', attempt: 0 },
      ...{ at: 1760000000001, epoch: 2, v: 1, key_id: null },
    }
    const list = JSON.stringify(['r"', 3, 'tool_result', 1, 'c', 0, 1760000000001, 2, 1, null])
    expect(computeLinkHash(genesisHash, row, sha256('x'))).toBe(sha256(genesisHash + list + sha256('x')))
    const sealed = { ...row, tool_call_id: null, attempt: null, key_id: 'k1' }
    const other = JSON.stringify(['r"', 3, 'tool_result', 1, null, null, 1760000000001, 2, 1, 'k1'])
    expect(computeLinkHash(genesisHash, sealed, sha256('x'))).toBe(sha256(genesisHash + other + sha256('x')))
  })

  it('given the row of a run, when any field of it changes, then its seal does', () => {
    const cell: RunCell = {
      ...{ pos: 1, run_id: runId, head_seq: 3, head_hash: genesisHash, epoch: 1 },
      ...{ session_id: 's', session_place: 1, ended_at: null, history: null },
    }
    const seals = [
      cell,
      ...Object.keys(cell).map((field) => ({ ...cell, [field]: field === 'run_id' ? 'other' : 9 })),
    ].map((each) => sealRun(each))
    expect(new Set(seals).size).toBe(seals.length)
  })

  it('given many salts, when they are compared, then no two are alike', () => {
    const salts = Array.from({ length: 1000 }, drawSalt)
    expect(new Set(salts).size).toBe(1000)
    for (const salt of salts) expect(salt).toMatch(/^[\w-]{20}$/)
  })

  it('given removals, when they are chained, then each is bound to its place and to the one before it', () => {
    const cause = { kind: 'redacted', at: 5, by: 'ada', reason: 'asked' } as const
    const [first, second] = linkRemovals(firstRemoval, [
      { ...cause, runId, seq: 2, body: '{}' },
      { runId, kind: 'dropped', at: 6, by: 'bob', seq: 9, headHash: genesisHash },
    ])
    expect(first).toMatchObject({ pos: 1, run_id: runId, seq: 2, digest: sha256('{}'), reason: 'asked' })
    expect(second).toMatchObject({ pos: 2, kind: 'dropped', digest: genesisHash, reason: null })
    expect(isRemovalIntact(firstRemoval, first!)).toBe(true)
    expect(isRemovalIntact(first!, second!)).toBe(true)
    expect(isRemovalIntact(firstRemoval, second!)).toBe(false)
    for (const column of Object.keys(first!)) {
      expect([column, isRemovalIntact(firstRemoval, { ...first!, [column]: 7 })]).toEqual([column, false])
    }
  })
})

describe('the row of an event', () => {
  it('given events, when they are read from their rows, then they are what was written', () => {
    for (const by of [undefined, sealer]) {
      const rows = rowsOf(someEvents, by)
      const decoding: Decoding = { sealers: new Map([['k1', sealer]]), hasKeys: true, history: () => [] }
      const read = rows.map((row, index) => readEvent(rows[index - 1] ?? genesis, { ...row, decoding }))
      expect(read).toEqual(someEvents)
      expect(rows.map(({ attempt }) => attempt)).toEqual([null, null, 2, 0])
    }
  })

  it('given a row, when any column of it but its place changes, then the change is found', () => {
    const [first, row] = rowsOf(someEvents) as [EventRow, EventRow]
    expect(findLinkFault(first, row)).toBeUndefined()
    for (const column of eventColumns) {
      const text = typeof row[column] === 'string' ? `${row[column]}.` : 7
      const changed = {
        ...row,
        [column]: column === 'commitment' || column === 'tool_call_id' || column === 'key_id' ? 'x' : text,
      }
      const fault = findLinkFault(first, changed)
      expect([column, fault !== undefined]).toEqual([column, column !== 'pos'])
    }
    expect(findLinkFault(first, { ...row, pos: first.pos })?.what).toBe('pos')
    expect(findLinkFault(first, { ...row, salt: null })?.what).toBe('salt')
  })

  it('given an event whose content was removed, when it is read, then its facts and the cause are there, and the chain holds', () => {
    const [first, row] = rowsOf(someEvents) as [EventRow, EventRow]
    const removed = { kind: 'redacted', at: 9, by: 'ada', reason: 'asked' } as const
    const body = encodeRemains(someEvents[1] as RuntimeEvent, removed)
    const left = { ...row, body, salt: null, commitment: commitTo(row.salt as string, row.body) }
    const event = readEvent(first, left) as EventOf<'input_received'>
    expect(event.removed).toEqual(removed)
    expect(event.message.parts).toEqual([{ type: 'text', text: '[removed]' }])
  })

  it('given a sealed row, when its key is gone, then its facts are read, marked as erased or as sealed', () => {
    const [row] = rowsOf(someEvents.slice(1, 2), sealer)
    expect(row?.body).not.toContain('Seoul')
    for (const [hasKeys, kind] of [
      [true, 'erased'],
      [false, 'sealed'],
    ] as const) {
      const decoding: Decoding = { sealers: new Map(), hasKeys, history: () => [] }
      expect(decodeEvent(row!, decoding)).toMatchObject({ type: 'input_received', removed: { kind } })
    }
  })

  it('given a sealed body, when it is put into the row of another event, then it does not open', () => {
    const [one, two] = rowsOf(someEvents, sealer)
    const decoding: Decoding = { sealers: new Map([['k1', sealer]]), hasKeys: true, history: () => [] }
    expect(() => decodeEvent({ ...one!, body: two!.body }, decoding)).toThrow('unable to authenticate data')
  })

  it('given a row, when it is compared with events, then only the very same one is the same', () => {
    const [, row] = rowsOf(someEvents) as [EventRow, EventRow]
    const event = someEvents[1] as RuntimeEvent
    expect(isSameEvent(row, encodeEvent(event))).toBe(true)
    for (const other of [
      { ...event, at: event.at + 1 },
      { ...event, turn: 5 },
      { ...event, delivery: 'queue' },
    ]) {
      expect(isSameEvent(row, encodeEvent(other as RuntimeEvent))).toBe(false)
    }
  })

  it.each(['{', '[]', '1', 'null'])(
    'given the body %s, when it is read, then the event is damaged',
    (body) => {
      const [row] = rowsOf(someEvents)
      const forged = { ...row!, body }
      const linked = {
        ...forged,
        hash: computeLinkHash(genesisHash, forged, commitTo(forged.salt as string, body)),
      }
      expect(() => readEvent(genesis, linked)).toThrow(`Run ${runId} is damaged at seq 1`)
    },
  )
})

describe('what a run begins with', () => {
  const messages = ['a', 'b', 'c'].map(sampleMessage)
  const carrying = (upTo: number): RuntimeEvent =>
    stampFacts(runId, [
      facts.run_started,
      { type: 'history_carried', turn: 0, messages: messages.slice(0, upTo) },
    ])[1] as RuntimeEvent

  it.each([
    ['plain', undefined],
    ['sealed', sealer],
  ])('given %s messages, when they are kept, then a row each, and none that is there already', (_how, by) => {
    const rows = new Map<string, HistoryRow>()
    const counts = [2, 3, 3].map((upTo) => {
      const added = encodeEvent(carrying(upTo), by).history!.rowsAfter((name) => rows.has(name))
      for (const row of added) rows.set(row.digest, row)
      return added.length
    })
    expect(counts).toEqual([2, 1, 0])
    const { history, body } = encodeEvent(carrying(3), by)
    expect(body).toContain(history!.name)
    const restored = new HistoryReader().restore(history!.name, rows, by)
    expect(restored).toEqual(messages)
    expect([...rows.values()].every(isHistoryRow)).toBe(true)
  })

  it('given a plain history, when it is named, then by the running digest that core computes', () => {
    const { history } = encodeEvent(carrying(3))
    expect([...history!.names()]).toEqual(computeHistoryDigests(messages).toReversed())
    expect(history!.rowsAfter(() => false).map(({ before }) => before)).toEqual([
      null,
      ...computeHistoryDigests(messages).slice(0, 2),
    ])
    expect(emptyHistoryDigest).toHaveLength(64)
  })

  it.each([
    ['plain', undefined],
    ['sealed', sealer],
  ])('given the row of a %s message, when any of it changes, then it is found', (_how, by) => {
    const rows = encodeEvent(carrying(2), by).history!.rowsAfter(() => false)
    const row = rows[1] as HistoryRow
    for (const column of ['digest', 'before', 'message'] as const) {
      const text = row[column] as string
      for (let at = 0; at < text.length; at++) {
        const changed = {
          ...row,
          [column]: text.slice(0, at) + (text[at] === '0' ? '1' : '0') + text.slice(at + 1),
        }
        let isIntact = true
        try {
          isIntact = isHistoryRow(changed)
        } catch {
          isIntact = false
        }
        expect([column, at, isIntact]).toEqual([column, at, false])
      }
    }
  })

  it('given rows that lack one, or go round in a circle, when they are restored, then that is refused', () => {
    const { history } = encodeEvent(carrying(3))
    const [first, second, third] = history!.rowsAfter(() => false) as [HistoryRow, HistoryRow, HistoryRow]
    const byName = (rows: readonly HistoryRow[]): ReadonlyMap<string, HistoryRow> =>
      new Map(rows.map((row) => [row.digest, row]))
    expect(() => new HistoryReader().restore(third.digest, byName([first, third]), undefined)).toThrow(
      'is not there',
    )
    const circle = byName([{ ...second, before: third.digest }, third])
    expect(() => new HistoryReader().restore(third.digest, circle, undefined)).toThrow('is not there')
    const changed = byName([first, { ...second, message: first.message }, third])
    expect(() => new HistoryReader().restore(third.digest, changed, undefined)).toThrow('has changed')
  })
})
