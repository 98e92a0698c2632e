import { copyFileSync } from 'node:fs'
import { verifyLedger } from '@tallystick/ledger'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { beforeAll, describe, expect, it } from 'vitest'
import { effort } from '../../../scripts/testing/effort.ts'
import {
  recordEverything,
  surprises,
  unfound,
  type Column,
  type DamagedBed,
  type Tried,
} from './support/damaged-rows.ts'
import { makeFolder } from './support/temporary-folder.ts'
import { tamper, withRaw } from './support/raw-database.ts'
import { temporaryFile } from './support/temporary-folder.ts'

type Described = { readonly name: string; readonly type: string; readonly pk: number }

function literal(value: unknown): string {
  if (value instanceof Uint8Array) return `x'${Buffer.from(value).toString('hex')}'`
  return typeof value === 'string' ? `'${value.replaceAll("'", "''")}'` : String(value)
}

type Row = Readonly<Record<string, unknown>>

function bedOf(path: string): DamagedBed {
  const ask = (query: string): readonly Row[] =>
    withRaw(path, (database) => database.prepare<[], Row>(query).all())
  return {
    get tables() {
      const query = `select name from sqlite_schema where type = 'table'`
      return ask(query).map(({ name }) => String(name))
    },
    columnsOf: async (table) => {
      const columns = ask(`select name, type, pk from pragma_table_info('${table}')`) as readonly Described[]
      const isKeyed = columns.some(({ pk }) => pk > 0)
      return columns.map(({ name, type, pk }, index): Column => {
        const kind = /int/i.test(type) ? 'number' : /blob/i.test(type) ? 'bytes' : 'text'
        return { name, type: kind, isKey: isKeyed ? pk > 0 : index === 0 }
      })
    },
    rowsOf: async (table, keys) =>
      ask(`select * from ${table} order by ${keys.join(', ')}`).map((row) =>
        keys.map((key) => `${table}.${key} = ${literal(row[key])}`).join(' and '),
      ),
    flipped: (column) => `cast(x'00' || substr(${column}, 2) as blob)`,
    after: async (statement) => {
      const copy = temporaryFile()
      copyFileSync(path, copy)
      try {
        let changes = 0
        tamper(copy, (database) => (changes = database.prepare(statement).run().changes))
        if (changes === 0) return 'refused'
      } catch {
        return 'refused'
      }
      const ledger = sqliteLedger(copy, { readOnly: true })
      try {
        for await (const { ok, differs } of verifyLedger(ledger)) if (!ok || differs) return 'found'
        return 'not found'
      } finally {
        await ledger.close()
      }
    },
  }
}

describe('a ledger file of which one row was changed', () => {
  const path = makeFolder('runs.db')
  beforeAll(async () => {
    const ledger = sqliteLedger(path)
    await recordEverything(ledger)
    await ledger.close()
  })

  it('is found by verify, or the table or the column is one that it does not go by', async () => {
    const missed = await unfound(
      bedOf(path),
      effort<Tried>({
        quick: { choose: (rows) => rows.slice(-1), ways: ['least other', 'deleted'] },
        thorough: {
          choose: (rows) => rows.filter((_row, index) => index % Math.ceil(rows.length / 2) === 0),
        },
      }),
    )
    expect(surprises(missed)).toEqual([])
    expect(missed.map(({ what }) => what)).toContain('inbox.command')
  })
})
