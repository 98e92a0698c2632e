import { ConfigurationError, LedgerUnavailableError, memoryLedger } from '@tallystick/core'
import { readLedgerStats, countProjectionLag, rebuildProjections } from '@tallystick/ledger'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import BetterSqlite3 from 'better-sqlite3'
import { describe, expect, it, onTestFinished } from 'vitest'
import { getDatabase } from '../src/store/store.ts'
import { refreshed } from './support/compare-projections.ts'
import { projectionCases } from './support/projection-cases.ts'
import { recordRun } from './support/record-run.ts'
import { sqliteProjectionBed } from './support/sqlite-projection-bed.ts'
import { temporaryFile } from './support/temporary-folder.ts'

describe('projections in a SQLite file', () => {
  it.each(Object.entries(projectionCases))('%s', async (_claim, holds) => {
    await expect(holds(sqliteProjectionBed())).resolves.toBeUndefined()
  })

  it('keep no writer waiting, and are done without where they would have to wait for long', async () => {
    const path = temporaryFile()
    const ledger = sqliteLedger(path)
    onTestFinished(() => ledger.close())
    await recordRun(ledger, 1)
    const writer = new BetterSqlite3(path)
    onTestFinished(() => void writer.close())
    writer.exec('begin immediate')
    const { counts } = await readLedgerStats(ledger, { since: 0, maxListed: 1 })
    expect(counts.done).toBe(1)
    writer.exec('commit')
    expect(await countProjectionLag(ledger)).toBeGreaterThan(0)
    await readLedgerStats(ledger, { since: 0, maxListed: 1 })
    expect(await countProjectionLag(ledger)).toBe(0)
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
