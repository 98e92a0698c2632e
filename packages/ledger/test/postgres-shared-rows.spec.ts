import { describe, expect, it } from 'vitest'
import { freshSchema, hasPostgres, openLedger, rowsOf } from './support/postgres-database.ts'
import { tamperIn } from './support/postgres-recorded.ts'
import { sharedRowCases, type SharedRowBed } from './support/shared-row-cases.ts'

function bed(): SharedRowBed {
  const schema = freshSchema()
  const placed = (statement: string): string => statement.replaceAll('@', `${schema}.`)
  return {
    open: () => openLedger(schema),
    // Whole numbers of 64 bits come as texts.
    rows: async (query) =>
      (await rowsOf<Record<string, unknown>>(placed(query))).map((row) =>
        Object.fromEntries(
          Object.entries(row).map(([name, value]) => [
            name,
            typeof value === 'string' && /^\d+$/.test(value) ? Number(value) : value,
          ]),
        ),
      ),
    tamper: (statement) => tamperIn(schema, async (client) => void (await client.query(placed(statement)))),
  }
}

// Only a platform without Postgres leaves them out, and the run says so.
describe.skipIf(!hasPostgres)('rows in Postgres that hold events of several types', () => {
  it.each(Object.entries(sharedRowCases))('%s', async (_claim, holds) => {
    await expect(holds(bed())).resolves.toBeUndefined()
  })
})
