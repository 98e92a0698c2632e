import { ledgerStats, projectionLag } from '@tallystick/ledger'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import BetterSqlite3 from 'better-sqlite3'
import { describe, expect, it, onTestFinished } from 'vitest'
import { projectionCases, type ProjectionBed } from './support/projection-cases.ts'
import { tamper, withRaw } from './support/raw-database.ts'
import { recordRun } from './support/record-run.ts'
import { refreshingProcess } from './support/refreshing-process.ts'
import { temporaryFile } from './support/temporary-folder.ts'

function bed(): ProjectionBed {
  const path = temporaryFile()
  return {
    isQuick: true,
    open(options = {}) {
      const ledger = sqliteLedger(path, { ...options, oneWriter: false })
      onTestFinished(() => ledger.close())
      return ledger
    },
    tamper: (statement) => {
      tamper(path, (database) => void database.exec(statement))
      return Promise.resolve()
    },
    rows: (query) =>
      Promise.resolve(
        withRaw(path, (database) => database.prepare<[], Record<string, unknown>>(query).all()),
      ),
    plan: (text, values) =>
      Promise.resolve(
        withRaw(path, (database) => {
          const numbered = Object.fromEntries(values.map((value, index) => [index + 1, value]))
          const steps = database
            .prepare<[object], { detail: string }>(`explain query plan ${text}`)
            .all(numbered)
          return steps.map(({ detail }) => detail).join('\n')
        }),
      ),
    refresher: () => refreshingProcess(path),
  }
}

describe('projections in a SQLite file', () => {
  it.each(Object.entries(projectionCases))('%s', async (_claim, holds) => {
    await expect(holds(bed())).resolves.toBeUndefined()
  })

  it('keep no writer waiting, and are done without where they would have to wait for long', async () => {
    const path = temporaryFile()
    const ledger = sqliteLedger(path)
    onTestFinished(() => ledger.close())
    await recordRun(ledger, 1)
    const writer = new BetterSqlite3(path)
    onTestFinished(() => void writer.close())
    writer.exec('begin immediate')
    const { counts } = await ledgerStats(ledger, { since: 0, maxListed: 1 })
    expect(counts.done).toBe(1)
    writer.exec('commit')
    expect(await projectionLag(ledger)).toBeGreaterThan(0)
    await ledgerStats(ledger, { since: 0, maxListed: 1 })
    expect(await projectionLag(ledger)).toBe(0)
  })
})
