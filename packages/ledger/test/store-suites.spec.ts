import { spawnSync } from 'node:child_process'
import { existsSync, copyFileSync } from 'node:fs'
import { memoryLedger } from '@tallystick/core'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { describe, expect, it, beforeAll } from 'vitest'
import { badInputCases } from './support/bad-input-cases.ts'
import { changeOf, digestedTables, guards, recordLargeRun } from './support/bad-input-columns.ts'
import { closingCases } from './support/closing-cases.ts'
import { cutOffCases } from './support/cut-off-cases.ts'
import { digestsOnlyCases } from './support/digests-only-cases.ts'
import { makeFolder } from './support/temporary-folder.ts'
import { tamper, withRaw } from './support/raw-database.ts'
import { allVerified } from './support/recorded.ts'
import type { RemovalBed } from './support/removal-bed.ts'
import { removalCases } from './support/removal-cases.ts'
import { sealingCases } from './support/sealing-cases.ts'
import { temporaryFile, emptyLedgerFile } from './support/temporary-folder.ts'

describe('what comes in bad into a ledger file', () => {
  it.each(Object.entries(badInputCases))('%s', async (_claim, keeps) => {
    await expect(keeps({ open: () => sqliteLedger(temporaryFile()) })).resolves.toBeUndefined()
  })
})

describe('closing a ledger file whose runs are driven', () => {
  it.each(Object.entries(closingCases))('%s', async (_claim, keeps) => {
    const path = emptyLedgerFile()
    await expect(keeps(() => sqliteLedger(path))).resolves.toBeUndefined()
  })
})

describe('closing a ledger file that is followed', () => {
  it.each(Object.entries(cutOffCases))('%s', async (_claim, keeps) => {
    const path = emptyLedgerFile()
    await expect(keeps(() => sqliteLedger(path))).resolves.toBeUndefined()
  })
})

describe('closing a ledger in memory that is followed', () => {
  // It drains no run.
  const cases = Object.entries(cutOffCases).filter(([claim]) => !claim.includes('interrupts'))
  it.each(cases)('%s', async (_claim, keeps) => {
    await expect(keeps(memoryLedger)).resolves.toBeUndefined()
  })
})

function bed(): RemovalBed {
  const path = emptyLedgerFile()
  return {
    open: (options) => sqliteLedger(path, options),
    tamper: (statement) => {
      tamper(path, (database) => void database.exec(statement))
      return Promise.resolve()
    },
    // By another process: closing the file in this one would drop the locks of its ledger.
    holds: async (bytes) => {
      const files = [path, `${path}-wal`].filter((file) => existsSync(file))
      const { status } = spawnSync('grep', ['-q', '-a', '-F', bytes, ...files])
      if (status !== 0 && status !== 1) throw new Error('grep failed')
      return status === 0
    },
  }
}

describe('taking content away from a ledger file', () => {
  it.each(Object.entries({ ...removalCases, ...sealingCases, ...digestsOnlyCases }))(
    '%s',
    async (_claim, keeps) => {
      await expect(keeps(bed())).resolves.toBeUndefined()
    },
  )
})

describe('the tables of a ledger file', () => {
  const path = makeFolder('runs.db')
  beforeAll(async () => {
    const ledger = sqliteLedger(path)
    await recordLargeRun(ledger)
    await ledger.close()
  })

  it('are all known by what holds them to what was written', () => {
    const names = withRaw(path, (database) =>
      database
        .prepare(`select name from sqlite_schema where type = 'table' and name not like 'sqlite_%'`)
        .pluck()
        .all(),
    ) as readonly string[]
    expect(names.filter((name) => !Object.hasOwn(guards, name))).toEqual([])
    expect(names).toContain('event')
  })

  it('have every column of messages held to their digests', async () => {
    for (const table of digestedTables) {
      const columns = withRaw(path, (database) => database.pragma(`table_info(${table})`)) as readonly {
        readonly name: string
        readonly type: string
      }[]
      expect(columns.length).toBeGreaterThan(1)
      for (const { name, type } of columns) {
        const copy = temporaryFile()
        copyFileSync(path, copy)
        tamper(copy, (database) => {
          expect(
            database.prepare(changeOf(table, name, type, `cast('x' as blob)`)).run().changes,
          ).toBeGreaterThan(0)
        })
        const { store } = await allVerified(copy)
        expect({ table, name, ok: store.ok }).toEqual({ table, name, ok: false })
      }
    }
  })
})
