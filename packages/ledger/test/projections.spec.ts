import { readLedgerStats, countProjectionLag } from '@tallystick/ledger'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import BetterSqlite3 from 'better-sqlite3'
import { describe, expect, it, onTestFinished } from 'vitest'
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
