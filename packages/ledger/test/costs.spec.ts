import { verifyRun } from '@tallystick/ledger'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { watchedLedger } from '@tallystick/testkit'
import { expect, it, describe } from 'vitest'
import { effort } from '../../../scripts/testing/effort.ts'
import {
  countAppends,
  countHashes,
  countPreparations,
  countStatements,
  difference,
  Tally,
  type Work,
} from './support/counted-work.ts'
import { driveLookingSession, driveLookingRun } from './support/looking-run.ts'
import { withRaw } from './support/raw-database.ts'
import { temporaryFile } from './support/temporary-folder.ts'

/**
 * What the next run of a session costs in SQLite, on any machine, however many came before: two turns of 20 deltas, one tool
 * call, and one subscriber of its events. It reads the run before it. No statement is prepared for it: that took as long as
 * several take.
 */
const costs: Work = {
  'append, barrier': 3,
  'append, lazy': 3,
  begin: 6,
  'commit, synced': 3,
  'commit, unsynced': 3,
  event: 21,
  'hash, of Node': 105,
  'insert event': 6,
  'insert history': 4,
  'insert run': 1,
  'pragma synchronous': 4,
  'select event': 1,
  'select history': 9,
  'select inbox': 1,
  'select run': 9,
  'select sqlite_sequence': 1,
  'select total_changes()': 6,
  'update run': 6,
}

it('the next run of a session costs at run 5 and at run 50 what the table says', async () => {
  const tally = new Tally()
  const workBefore = new Map<number, Work>()
  const sqlite = sqliteLedger(temporaryFile(), { deltaDelayMs: 0 })
  const ledger = countAppends(sqlite, tally, () => {})
  countStatements(tally)
  countPreparations(tally)
  await countHashes(tally)
  await driveLookingSession({
    ...{ ledger, turns: 2, seed: 3, runs: 51, pause: () => Promise.resolve() },
    before: (run) => void workBefore.set(run, tally.counts),
  })
  await ledger.close()
  const workOf = (run: number): Work => difference(workBefore.get(run) ?? {}, workBefore.get(run + 1) ?? {})
  expect({ run5: workOf(5), run50: workOf(50) }).toEqual({ run5: costs, run50: costs })
})

describe('costs of a turn', () => {
  /**
   * What one turn costs in SQLite, on any machine: 20 deltas of five characters, one call of a tool that reads, and its result.
   * Only the next model call is synced; a tool that writes takes one sync more. A change that
   * makes a turn cheaper, or dearer, changes a number here.
   */
  const costs = {
    /** The model is faster than the disk: what follows its first signals arrives while the ledger writes these. */
    'all deltas at once': {
      'append, barrier': 1,
      'append, lazy': 2,
      begin: 3,
      'commit, synced': 1,
      'commit, unsynced': 2,
      event: 11,
      'hash, of Node': 32,
      'insert event': 3,
      'pragma synchronous': 2,
      'select run': 3,
      'select total_changes()': 2,
      'update run': 3,
    },
    /** The model is slower than the disk, and no delta waits for others: the ledger is at rest before the next signal arrives. */
    'one delta at a time': {
      'append, barrier': 1,
      'append, lazy': 25,
      begin: 26,
      'commit, synced': 1,
      'commit, unsynced': 25,
      event: 30,
      'hash, of Node': 93,
      'insert event': 26,
      'pragma synchronous': 2,
      'select run': 26,
      'select total_changes()': 2,
      'update run': 26,
    },
  } as const satisfies Readonly<Record<string, Work>>

  /** Bytes of the bodies of a turn's rows, as they are stored, without salts, hashes, envelopes and indexes. */
  const bodyBytes = {
    'all deltas at once': { atTurn3: 1_512, atTurn300: 1_526 },
    'one delta at a time': { atTurn3: 2_152, atTurn300: 2_166 },
  } as const

  /** The bytes by which a turn lets the file grow, indexes included: the average of a hundred turns, since pages are whole. */
  const fileBytes = {
    'all deltas at once': { fromTurn3: 4_546.56, fromTurn200: 4_546.56 },
    'one delta at a time': { fromTurn3: 9_666.56, fromTurn200: 9_789.44 },
  } as const

  /** The turns at whose start the file is measured. */
  const measuredTurns: readonly number[] = [3, 103, 200, 300]

  type Arrival = keyof typeof costs

  /** Thousands of commits are for a thorough run. */
  const arrivals: readonly Arrival[] = effort({
    quick: ['all deltas at once'],
    thorough: ['all deltas at once', 'one delta at a time'],
  })

  describe.each(arrivals)('a turn with %s', (arrival) => {
    it('costs at turn 3 and at turn 300 what the table says', async () => {
      const path = temporaryFile()
      const tally = new Tally()
      const workBefore = new Map<number, Work>()
      const bytesBefore = new Map<number, number>()
      const sqlite = sqliteLedger(path, { deltaDelayMs: 0 })
      const counted = countAppends(sqlite, tally, (events) => {
        const turn = events.find(({ type }) => type === 'model_call_started')?.turn
        if (turn === undefined) return
        workBefore.set(turn, tally.counts)
        if (measuredTurns.includes(turn)) bytesBefore.set(turn, bytesOf(path))
      })
      const { ledger, outside } = watchedLedger(counted)
      const atRest = async (): Promise<void> => {
        do await Promise.all([outside(), new Promise((resolve) => setImmediate(resolve))])
        while (outside() !== undefined)
      }
      countStatements(tally)
      await countHashes(tally)
      const pause = arrival === 'all deltas at once' ? () => Promise.resolve() : atRest
      const seed = arrival === 'all deltas at once' ? 1 : 2
      const runId = await driveLookingRun({ ledger, turns: 301, seed, pause })

      const workOf = (turn: number): Work =>
        difference(valueAt(workBefore, turn), valueAt(workBefore, turn + 1))
      expect({ turn3: workOf(3), turn300: workOf(300) }).toEqual({
        turn3: costs[arrival],
        turn300: costs[arrival],
      })
      const growthFrom = (turn: number): number =>
        (valueAt(bytesBefore, turn + 100) - valueAt(bytesBefore, turn)) / 100
      expect({ fromTurn3: growthFrom(3), fromTurn200: growthFrom(200) }).toEqual(fileBytes[arrival])
      expect((await verifyRun(ledger, runId)).ok).toBe(true)
      await ledger.close()
      expect({ atTurn3: bodyBytesOf(path, 3), atTurn300: bodyBytesOf(path, 300) }).toEqual(bodyBytes[arrival])
    })
  })

  function valueAt<T>(values: ReadonlyMap<number, T>, turn: number): T {
    const value = values.get(turn)
    if (value === undefined) throw new Error(`Nothing was measured at the start of turn ${turn}.`)
    return value
  }

  /** The size of the file with what is still in its log. */
  function bytesOf(path: string): number {
    return withRaw(path, (database) => {
      const [pages, size] = ['page_count', 'page_size'].map((name) => database.pragma(name, { simple: true }))
      return (pages as number) * (size as number)
    })
  }

  function bodyBytesOf(path: string, turn: number): unknown {
    return withRaw(path, (database) =>
      database.prepare('select sum(length(body)) from event where turn = ?').pluck().get(turn),
    )
  }
})
