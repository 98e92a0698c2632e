// The claims of `projections.spec.ts` that take little time, and what a rebuild says.
import { ConfigurationError, LedgerUnavailableError, memoryLedger } from '@tallystick/core'
import { readLedgerStats, countProjectionLag, rebuildProjections } from '@tallystick/ledger'
import { describe, expect, it } from 'vitest'
import { getDatabase } from '../src/store/store.ts'
import { refreshed } from './support/compare-projections.ts'
import { projectionCases } from './support/projection-cases.ts'
import { recordRun } from './support/record-run.ts'
import { sqliteProjectionBed } from './support/sqlite-projection-bed.ts'

const brief = [
  'that are up to date answer',
  'fold what has changed',
  'of a long run continue',
  'are left as they are',
  'of another code',
  'that cannot be read are done without',
  'lose runs that are dropped',
  'name a run that cannot be read',
  'are found by their indexes',
  'find runs by what they did',
  'count runs that began',
  'are found by verify',
  'that are missing are not needed',
  'that are missing are made',
  'that are missing tell of damage',
]

describe('projections in a SQLite file', () => {
  it.each(
    brief.map((start) => {
      const [claim, holds] = Object.entries(projectionCases).find(([each]) => each.startsWith(start)) ?? []
      if (claim === undefined || holds === undefined) throw new Error(`No claim begins with ${start}.`)
      return [claim, holds] as const
    }),
  )('%s', async (_claim, holds) => {
    // One change for each table: `projection-audit.spec.ts` changes every column.
    await expect(holds({ ...sqliteProjectionBed(), isQuick: false })).resolves.toBeUndefined()
  })
})

describe('projections that cannot be brought up to date', () => {
  it('come with what they lack, unless the reason is a mistake in the code', async () => {
    const ledger = sqliteProjectionBed().open()
    await recordRun(ledger, 1)
    await refreshed(ledger)
    await recordRun(ledger, 2)
    const failing = (error: Error): void => {
      const change = async (): Promise<never> => {
        throw error
      }
      Object.assign(getDatabase(ledger) ?? {}, { change })
    }
    const done = async (): Promise<number> =>
      (await readLedgerStats(ledger, { since: 0, maxListed: 1 })).counts.done
    failing(new LedgerUnavailableError('The disk is full.'))
    expect(await done()).toBe(2)
    expect(await countProjectionLag(ledger)).toBeGreaterThan(0)
    failing(new TypeError('a mistake'))
    await expect(done()).rejects.toThrow('a mistake')
  })
})

describe('a rebuild', () => {
  it('makes projections anew, and says of how many runs and events', async () => {
    const bed = sqliteProjectionBed()
    const ledger = bed.open()
    const week = { since: 0, maxListed: 9 }
    await recordRun(ledger, 1)
    await recordRun(ledger, 2)
    const sound = await readLedgerStats(ledger, week)
    await bed.tamper(`update run_summary set notes = replace(notes, '"calls":2', '"calls":9')`)
    expect(await readLedgerStats(ledger, week)).not.toEqual(sound)
    const events = (await Array.fromAsync(ledger.find())).length
    const received: number[] = []
    expect(await rebuildProjections(ledger, (more) => received.push(more))).toEqual({ runs: 2, events })
    expect(received).toHaveLength(2)
    expect(await readLedgerStats(ledger, week)).toEqual(sound)
    expect(await countProjectionLag(ledger)).toBe(0)
  })

  it('is refused by a ledger that keeps no projections, or may not write them', async () => {
    const none = memoryLedger()
    await expect(rebuildProjections(none)).rejects.toThrow(ConfigurationError)
    await expect(rebuildProjections(none)).rejects.toThrow(/keeps no projections.*sqliteLedger/)
    expect(await countProjectionLag(none)).toBeUndefined()
    const bed = sqliteProjectionBed()
    await recordRun(bed.open())
    await expect(rebuildProjections(bed.open({ readOnly: true }))).rejects.toThrow(LedgerUnavailableError)
  })
})
