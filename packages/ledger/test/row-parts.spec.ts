import { LedgerDamagedError, type RuntimeEvent } from '@tallystick/core'
import { everyFact, sampleRunId, stamped } from '@tallystick/core/testing'
import { describe, expect, it } from 'vitest'
import { segmentsOf, withDecodingContext, type DecodingSource } from '../src/content/event/decoded-events.ts'
import { storableRows } from '../src/content/event/stored-rows.ts'
import { withoutEvents } from '../src/content/event/taken-segments.ts'
import { genesisHash } from '../src/record/chain.ts'
import { maxEventsOfRow } from '../src/record/envelope.ts'
import { storedRow, type EventRow } from '../src/record/event-row.ts'
import { genesis, linkFault } from '../src/record/link-check.ts'
import type { StoredRemoval } from '../src/record/removal.ts'
import { segmentedType } from '../src/record/segments/segmented-body.ts'

const [runId, otherId] = [sampleRunId(1), sampleRunId(2)]
const facts = everyFact(runId)
const digest = new Uint8Array(32)
const salt = new Uint8Array(16).fill(7)
const bytes = (text: string): Uint8Array => Buffer.from(text)

const row: EventRow = {
  ...{
    pos: 1,
    run_id: runId,
    first_seq: null,
    seq: 1,
    epoch: 1,
    type: 'usage_updated',
    v: 1,
    turn: 1,
    at: 1,
  },
  ...{ tool_call_id: null, once_key: null, body_commit: digest, hash: digest, salt, body: bytes('{}') },
}

describe('a payload of which a half is missing', () => {
  it.each([{ salt: null }, { body: null }])('counts as missing, and its row is damaged: %j', (change) => {
    const stored = storedRow({ ...row, ...change })
    expect(stored).not.toHaveProperty('payload')
    expect(linkFault(genesis, stored)).toEqual({ what: 'payload', expected: 'a payload', found: 'none' })
    expect(storedRow(row).payload).toEqual({ salt, body: bytes('{}') })
  })
})

describe('a row that is to be taken apart for a redaction', () => {
  const said = (first_seq: number, seq: number): ReturnType<typeof storedRow> =>
    storedRow({ ...row, type: 'assistant_text_delta', first_seq, seq })

  it('holds as many events as a row may, wherever in the run they are', () => {
    expect(segmentsOf(said(1, maxEventsOfRow))).toHaveLength(1)
    expect(segmentsOf(said(5_001, 5_000 + maxEventsOfRow))).toHaveLength(1)
  })

  it.each([
    [1, maxEventsOfRow + 1],
    [-1_000_000_000, 7],
    [8, 7],
  ])('is damage where it is said to begin at %i and to end at %i', (first, last) => {
    const begun = `is damaged at seq ${first}: its row is said to begin at seq ${first} and to end at ${last}`
    expect(() => segmentsOf(said(first, last))).toThrow(LedgerDamagedError)
    expect(() => segmentsOf(said(first, last))).toThrow(begun)
  })
})

describe('the removals of rows of which segments were taken away', () => {
  const removal = (fromSeq: number, toSeq: number, of = runId): StoredRemoval => ({
    ...{ pos: 1, runId: of, fromSeq, toSeq, kind: 'redacted', at: 1, by: 'me', hash: genesisHash },
  })
  const opened = (first_seq: number, seq: number, run_id: string = runId): EventRow => {
    const body = bytes(`{"heads":["a"],"segments":[\nnull\n],"opened":["${'0'.repeat(64)}"]}`)
    return { ...row, type: segmentedType, run_id, first_seq, seq, body }
  }
  const asked: unknown[] = []
  const source: DecodingSource = {
    keyring: undefined,
    contents: () => Promise.reject(new Error('not asked')),
    histories: () => Promise.reject(new Error('not asked')),
    removals: (of, fromSeq, toSeq) => {
      asked.push([of, fromSeq, toSeq])
      const ranges = [
        [1, 4],
        [4, 5],
        [8, 9],
        [9, 9],
      ] as const
      return Promise.resolve(
        of === runId ? ranges.map(([from, to]) => removal(from, to)) : [removal(5, 8, otherId)],
      )
    },
  }

  it('are asked for once a run, and each row gets those of its run that cover any of its events', async () => {
    const rows = await withDecodingContext(
      [opened(1, 4), opened(5, 8), opened(9, 12), opened(5, 8, otherId)],
      source,
    )
    expect(asked).toEqual([
      [runId, 1, 12],
      [otherId, 5, 8],
    ])
    const found = rows.map(({ removals }) => removals?.map(({ fromSeq, toSeq }) => [fromSeq, toSeq]))
    expect(found).toEqual([
      [
        [1, 4],
        [4, 5],
      ],
      [
        [4, 5],
        [8, 9],
      ],
      [
        [8, 9],
        [9, 9],
      ],
      [[5, 8]],
    ])
    expect(rows[3]?.removals).toEqual([removal(5, 8, otherId)])
  })
})

describe('segments that are taken away', () => {
  const delta = facts.assistant_text_delta
  const events = stamped(runId, [facts.assistant_started, delta, delta, facts.usage_updated])
  const [stored] = storableRows(events.map((event): RuntimeEvent => ({ ...event, turn: 1 })))
  const several = { pos: 1, firstSeq: 1, seq: 4, salt, body: stored?.bytes ?? digest }
  const only = (seq: number): { readonly fromSeq: number; readonly toSeq: number } => {
    return { fromSeq: seq, toSeq: seq }
  }

  it('leave a row as it is where none lies within the range', () => {
    // A row that has all its segments would be unreadable in the form of one that has not.
    for (const seq of [2, 3, 9]) expect(withoutEvents(several, only(seq))).toBe(several)
  })

  it('are taken once: again is the same bytes', () => {
    const once = withoutEvents(several, only(4))
    expect(once.body).not.toEqual(several.body)
    const again = withoutEvents({ ...several, ...once }, only(4))
    expect([again.salt, Buffer.from(again.body)]).toEqual([once.salt, Buffer.from(once.body)])
  })
})
