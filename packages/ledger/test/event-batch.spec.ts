import { LedgerDamagedError, type RunId, type RuntimeEvent } from '@tallystick/core'
import { everyFact, sampleRunId, stamped } from '@tallystick/core/testing'
import type { RunFilter } from '@tallystick/core/vocabulary'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { describe, expect, it } from 'vitest'
import type { EventRange } from '../src/read/checked-events.ts'
import { eventBatch, eventRows } from '../src/sqlite/rows/event-batch.ts'
import { listRuns } from '../src/sqlite/rows/list-runs.ts'
import type { ReadQueries } from '../src/sqlite/rows/queries.ts'
import type { JoinedRow } from '../src/sqlite/rows/row-bytes.ts'
import { soundRow } from '../src/sqlite/rows/run-row.ts'
import { SqliteStore } from '../src/sqlite/sqlite-store.ts'
import { emptyLedgerFile } from './support/temporary-folder.ts'

const runId = sampleRunId(1)

function rowOf(seq: number, bytes = 10): JoinedRow {
  return {
    ...{
      pos: seq,
      run_id: runId,
      first_seq: null,
      seq,
      epoch: 1,
      type: 'usage_updated',
      v: 1,
      turn: 1,
      tool_call_id: null,
    },
    ...{ at: seq, once_key: null },
    // Two digests and a salt come before the body.
    bytes: new Uint8Array(32 + 32 + 16 + bytes),
  }
}

/** Queries over rows in memory, which count how many were asked for. */
function readsOf(rows: readonly JoinedRow[]): { readonly reads: ReadQueries; readonly asked: () => number } {
  let asked = 0
  const events = {
    *iterate({ fromSeq, toSeq }: EventRange): Generator<JoinedRow> {
      for (const row of rows.filter(({ seq }) => seq >= fromSeq && seq <= toSeq)) {
        asked++
        yield row
      }
    },
  }
  return { reads: { events } as unknown as ReadQueries, asked: () => asked }
}

describe('a page of events', () => {
  const range = { runId, fromSeq: 1, toSeq: 10_000 }

  it('ends after 256 events', () => {
    const { reads, asked } = readsOf(Array.from({ length: 1000 }, (_, index) => rowOf(index + 1)))
    expect(eventBatch(reads, range).map(({ seq }) => seq)).toEqual(
      Array.from({ length: 256 }, (_, index) => index + 1),
    )
    expect(asked()).toBe(256)
  })

  it('ends with the event that takes its bodies over a mebibyte, so that memory stays bounded', () => {
    const { reads, asked } = readsOf(Array.from({ length: 100 }, (_, index) => rowOf(index + 1, 400_000)))
    expect(eventBatch(reads, range).map(({ seq }) => seq)).toEqual([1, 2, 3])
    expect(asked()).toBe(3)
    const mebibyte = 1024 * 1024
    const batchOf = (...bytes: readonly number[]): number =>
      eventBatch(readsOf(bytes.map((each, index) => rowOf(index + 1, each))).reads, range).length
    expect([batchOf(mebibyte, 1), batchOf(mebibyte - 1, 1, 1)]).toEqual([1, 2])
  })

  it('has rows of which a column does not hold what was written read column by column', () => {
    const { bytes: _bytes, ...columns } = rowOf(2)
    const whole = { ...columns, body_commit: 'no bytes', hash: null, salt: null, body: null }
    const { reads } = readsOf([rowOf(1), { ...rowOf(2), bytes: null }, rowOf(3)])
    const asked: unknown[] = []
    Object.assign(reads, { eventAt: { get: (of: unknown) => (asked.push(of), whole) } })
    const [first, second, third] = eventBatch(reads, range)
    expect(asked).toEqual([{ pos: 2 }])
    expect(second).toEqual(whole)
    for (const row of [first, third]) {
      expect(row).toMatchObject({ body_commit: new Uint8Array(32), salt: new Uint8Array(16) })
    }
  })

  it('is followed by the next, without a gap and without a repetition', () => {
    const { reads } = readsOf(Array.from({ length: 700 }, (_, index) => rowOf(index + 1)))
    expect([...eventRows(reads, { ...range, fromSeq: 3 })].map(({ seq }) => seq)).toEqual(
      Array.from({ length: 698 }, (_, index) => index + 3),
    )
  })

  it('of an index that is out of order is damage, and never read for ever', () => {
    for (const seqs of [
      [1, 3, 2],
      [1, 2, 2],
    ]) {
      const { reads } = readsOf(seqs.map((seq) => rowOf(seq)))
      expect(() => eventBatch(reads, range)).toThrow(LedgerDamagedError)
    }
  })
})

describe('the row of a run', () => {
  const sound = {
    ...{ run_id: runId, pos: 5, head_seq: 1, epoch: 1 },
    ...{ head_hash: new Uint8Array(32), seal: new Uint8Array(32), session_id: null, session_place: null },
  }

  it.each([
    { pos: null },
    { head_seq: 'x' },
    { epoch: 0.5 },
    { head_hash: 'text' },
    { seal: 7 },
    { session_id: 'a' },
    { session_place: 1 },
    { session_id: 'a', session_place: 'x' },
  ])('is damage where it holds %j', (change) => {
    expect(soundRow(sound)).toBe(sound)
    const placed = { ...sound, session_id: 'a', session_place: 0 }
    expect(soundRow(placed)).toBe(placed)
    expect(() => soundRow({ ...sound, ...(change as object) })).toThrow(LedgerDamagedError)
  })

  it('is damage where an index lists it out of order, and never listed for ever', () => {
    const store = Object.create(SqliteStore.prototype) as SqliteStore
    const page = [sound, { ...sound, pos: 7 }]
    Object.assign(store, { reads: { runs: { all: () => page } } })
    expect(() => [...store.runs()]).toThrow(LedgerDamagedError)
    page.reverse()
    expect([...store.runs()]).toHaveLength(2)
  })
})

describe('a list of runs', () => {
  it('is asked for 256 rows at a time, and for no more than are left to list', () => {
    const asked: unknown[] = []
    const reads = {
      runs: {
        all: ({ beforePos, limit }: { readonly beforePos: number; readonly limit: number }) => {
          asked.push([beforePos, limit])
          const rows = Math.min(limit, Math.max(0, Math.min(beforePos, 301) - 1))
          return Array.from({ length: rows }, (_, index) => ({
            ...{ run_id: sampleRunId(1), pos: Math.min(beforePos, 301) - 1 - index, head_seq: 1, epoch: 1 },
            ...{
              head_hash: new Uint8Array(32),
              seal: new Uint8Array(32),
              session_id: null,
              session_place: null,
            },
          }))
        },
      },
    } as unknown as ReadQueries
    const listed = (filter: RunFilter): number => [...listRuns(reads, filter)].length
    const newest = Number.MAX_SAFE_INTEGER
    expect([listed({}), asked.splice(0)]).toEqual([
      300,
      [
        [newest, 256],
        [45, 256],
      ],
    ])
    expect([listed({ limit: 260 }), asked.splice(0)]).toEqual([
      260,
      [
        [newest, 256],
        [45, 4],
      ],
    ])
    expect([listed({ limit: Infinity }), asked.splice(0).length]).toEqual([300, 2])
    expect([listed({ limit: 0 }), asked.splice(0)]).toEqual([0, []])
    expect([listed({ limit: 256 }), asked.splice(0)]).toEqual([256, [[newest, 256]]])
  })
})

describe('reading a long run', () => {
  it('yields each event once over many pages, also while the run grows', async () => {
    const ledger = sqliteLedger(emptyLedgerFile())
    const facts = everyFact(runId)
    const first = stamped(runId, [
      facts.run_started,
      ...Array.from({ length: 999 }, () => facts.usage_updated),
    ])
    await ledger.append(runId, { expectedSeq: 0, epoch: 1 }, first, { durability: 'lazy' })
    const seqs: number[] = []
    for await (const { seq } of ledger.read(runId)) {
      seqs.push(seq)
      if (seq % 300 !== 0) continue
      const head = (await ledger.head(runId))?.seq ?? 0
      const more = stamped(runId, [facts.usage_updated], { afterSeq: head })
      await ledger.append(runId, { expectedSeq: head, epoch: 1 }, more, { durability: 'lazy' })
    }
    expect(seqs).toEqual(Array.from({ length: 1000 }, (_, index) => index + 1))
    expect(await ledger.head(runId)).toEqual({ seq: 1003, epoch: 1 })
    await ledger.close()
  })

  it('lists more runs than a page holds, the newest first', async () => {
    const ledger = sqliteLedger(emptyLedgerFile())
    const ids = Array.from({ length: 600 }, (_, index): RunId => sampleRunId(index + 1))
    for (const id of ids) {
      const start: readonly RuntimeEvent[] = stamped(id, [everyFact(id).run_started])
      await ledger.append(id, { expectedSeq: 0, epoch: 1 }, start, { durability: 'lazy' })
    }
    expect((await Array.fromAsync(ledger.runs())).map(({ runId: id }) => id)).toEqual(ids.toReversed())
    await ledger.close()
  })
})
