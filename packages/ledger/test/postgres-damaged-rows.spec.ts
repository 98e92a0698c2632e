import { verifyLedger } from '@tallystick/ledger'
import type { PostgresLedger } from '@tallystick/ledger/postgres'
import type { Client } from 'pg'
import { describe, expect, it } from 'vitest'
import { recordEverything, surprises, unfound, type Column, type DamagedBed } from './support/damaged-rows.ts'
import { freshSchema, hasPostgres, openLedger, rowsOf, withClient } from './support/postgres-database.ts'

function literal(value: unknown): string {
  if (value instanceof Uint8Array) return `'\\x${Buffer.from(value).toString('hex')}'::bytea`
  return `'${String(value).replaceAll("'", "''")}'`
}

const kinds: Readonly<Record<string, Column['type']>> = {
  bigint: 'number',
  integer: 'number',
  text: 'text',
}

async function bedOf(schema: string, ledger: PostgresLedger, client: Client): Promise<DamagedBed> {
  const tables = await rowsOf<{ name: string }>(
    `select table_name::text as name from information_schema.tables where table_schema = $1 and table_type = 'BASE TABLE'`,
    [schema],
  )
  const names = tables.map(({ name }) => name)
  // What refers to what is held by triggers of Postgres itself.
  await client.query(`set search_path = ${schema}; set session_replication_role = replica`)
  for (const name of names) await client.query(`create table saved_${name} as table ${name}`)
  /** Changes a table as its owner would, with its triggers off meanwhile. Answers how many rows were changed. */
  const change = async (table: string, statements: readonly string[]): Promise<number | null> => {
    const triggers = await client.query<{ name: string }>(
      'select tgname::text as name from pg_trigger where tgrelid = $1::regclass and not tgisinternal',
      [table],
    )
    await client.query('begin')
    try {
      await client.query(`alter table ${table} disable trigger user`)
      let changed: number | null = 0
      for (const statement of statements) changed = (await client.query(statement)).rowCount
      for (const { name } of triggers.rows)
        await client.query(`alter table ${table} enable always trigger ${name}`)
      await client.query('commit')
      return changed
    } catch (error) {
      await client.query('rollback')
      throw error
    }
  }
  return {
    tables: names,
    columnsOf: async (table) => {
      const columns = await rowsOf<{ name: string; type: string; key: boolean }>(
        `select attname::text as name, format_type(atttypid, null) as type, coalesce(attnum = any (indkey), attnum = 1) as key
         from pg_attribute left join pg_index on indrelid = attrelid and indisprimary
         where attrelid = $1::regclass and attnum > 0 and not attisdropped order by attnum`,
        [`${schema}.${table}`],
      )
      return columns.map(({ name, type, key }) => ({ name, type: kinds[type] ?? 'other', isKey: key }))
    },
    rowsOf: async (table, keys) => {
      const rows = await rowsOf<Record<string, unknown>>(
        `select * from ${schema}.${table} order by ${keys.join(', ')}`,
      )
      return rows.map((row) => keys.map((key) => `${table}.${key} = ${literal(row[key])}`).join(' and '))
    },
    flipped: (column) => `set_byte(${column}, 0, get_byte(${column}, 0) # 1)`,
    after: async (statement) => {
      const [, table = ''] = /^(?:update|delete from|insert into) (\w+)/.exec(statement) ?? []
      try {
        if ((await change(table, [statement])) === 0) return 'refused'
      } catch {
        return 'refused'
      }
      try {
        for await (const { ok, differs } of verifyLedger(ledger)) if (!ok || differs) return 'found'
        return 'not found'
      } finally {
        const insert = `insert into ${table} overriding system value select * from saved_${table}`
        await change(table, [`delete from ${table}`, insert])
      }
    },
  }
}

// Only a platform without Postgres leaves them out, and the run says so.
describe.skipIf(!hasPostgres)('a ledger in Postgres of which one row was changed', () => {
  it('is found by verify, or the table or the column is one that it does not go by', async () => {
    const schema = freshSchema()
    const ledger = openLedger(schema)
    await recordEverything(ledger)
    const missed = await withClient(async (client) =>
      unfound(await bedOf(schema, ledger, client), {
        choose: (rows) => rows.slice(-1),
        ways: ['least other', 'more', 'flipped', 'deleted'],
      }),
    )
    expect(surprises(missed)).toEqual([])
    expect(missed.map(({ what }) => what)).toContain('inbox.command')
  })
})
