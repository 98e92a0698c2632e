import { copyFileSync } from 'node:fs'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { beforeAll, describe, expect, it } from 'vitest'
import { changeOf, digestedTables, guards, recordLargeRun } from './support/bad-input-columns.ts'
import { makeFolder } from './support/lasting-folder.ts'
import { tamper, withRaw } from './support/raw-database.ts'
import { allVerified } from './support/recorded.ts'
import { temporaryFile } from './support/temporary-folder.ts'

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
