import { describe, expect, it } from 'vitest'
import { packedRowCases, type PackedRowBed } from './support/packed-row-cases.ts'
import { freshSchema, hasPostgres, openLedger, rowsOf } from './support/postgres-database.ts'

function bed(): PackedRowBed {
  const schema = freshSchema()
  return {
    open: () => openLedger(schema),
    // Whole numbers of 64 bits come as texts.
    rows: async (query) =>
      (await rowsOf<Record<string, unknown>>(query.replaceAll('@', `${schema}.`))).map((row) =>
        Object.fromEntries(
          Object.entries(row).map(([name, value]) => [
            name,
            typeof value === 'string' && /^\d+$/.test(value) ? Number(value) : value,
          ]),
        ),
      ),
  }
}

// Only a platform without Postgres leaves them out, and the run says so.
describe.skipIf(!hasPostgres)('rows in Postgres that hold several deltas', () => {
  it.each(Object.entries(packedRowCases))('%s', async (_claim, holds) => {
    await expect(holds(bed())).resolves.toBeUndefined()
  })
})
