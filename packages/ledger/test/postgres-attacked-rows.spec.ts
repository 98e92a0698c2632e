import { describe, expect, it } from 'vitest'
import { attackedRowCases } from './support/attacked-row-cases.ts'
import { freshSchema, hasPostgres, openLedger, rowsOf } from './support/postgres-database.ts'
import { tamperIn } from './support/postgres-recorded.ts'
import type { SharedRowBed } from './support/shared-row-cases.ts'

function bed(): SharedRowBed {
  const schema = freshSchema()
  const placed = (statement: string): string => statement.replaceAll('@', `${schema}.`)
  return {
    open: () => openLedger(schema),
    // Whole numbers of 64 bits come as texts.
    rows: async (query) =>
      (await rowsOf<Record<string, unknown>>(placed(query))).map((row) =>
        'seq' in row ? { ...row, seq: Number(row['seq']) } : row,
      ),
    tamper: (statement) => tamperIn(schema, async (client) => void (await client.query(placed(statement)))),
  }
}

// Only a platform without Postgres leaves them out, and the run says so.
describe.skipIf(!hasPostgres)('rows in Postgres that an attacker writes', () => {
  it.each(Object.entries(attackedRowCases))('%s', async (_claim, holds) => {
    await expect(holds(bed())).resolves.toBeUndefined()
  })
})
