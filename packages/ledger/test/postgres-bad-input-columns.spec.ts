import { describe, expect, it } from 'vitest'
import { changeOf, digestedTables, guards, recordLargeRun } from './support/bad-input-columns.ts'
import { freshSchema, hasPostgres, openLedger, rowsOf } from './support/postgres-database.ts'
import { allVerifiedIn, tamperIn } from './support/postgres-recorded.ts'

async function largeSchema(): Promise<string> {
  const schema = freshSchema()
  const ledger = openLedger(schema)
  await recordLargeRun(ledger)
  await ledger.close()
  return schema
}

// Only a platform without Postgres leaves them out, and the run says so.
describe.skipIf(!hasPostgres)('the tables of a ledger in Postgres', () => {
  it('are all known by what holds them to what was written', async () => {
    const rows = await rowsOf<{ name: string }>(
      `select table_name::text as name from information_schema.tables
       where table_schema = $1 and table_type = 'BASE TABLE'`,
      [await largeSchema()],
    )
    const names = rows.map(({ name }) => name)
    expect(names.filter((name) => !Object.hasOwn(guards, name))).toEqual([])
    expect(names).toContain('event')
  })

  it('have every column of messages held to their digests', async () => {
    for (const table of digestedTables) {
      const columns = await rowsOf<{ name: string; type: string }>(
        `select column_name::text as name, data_type::text as type from information_schema.columns
         where table_schema = $1 and table_name = $2`,
        [await largeSchema(), table],
      )
      expect(columns.length).toBeGreaterThan(1)
      for (const { name, type } of columns) {
        const schema = await largeSchema()
        await tamperIn(schema, async (client) => {
          // What refers to what is held by triggers of Postgres itself.
          await client.query('set session_replication_role = replica')
          const { rowCount } = await client.query(changeOf(table, name, type, `convert_to('x', 'UTF8')`))
          expect(rowCount).toBeGreaterThan(0)
        })
        const { store } = await allVerifiedIn(schema)
        expect({ table, name, ok: store.ok }).toEqual({ table, name, ok: false })
      }
    }
  })
})
