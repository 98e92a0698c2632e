import { describe, expect, it } from 'vitest'
import { freshSchema, hasPostgres, openLedger } from './support/postgres-database.ts'
import { tamperIn } from './support/postgres-recorded.ts'
import { retentionRowCases, type RetentionRowBed } from './support/retention-row-cases.ts'

function bed(): RetentionRowBed {
  const schema = freshSchema()
  return {
    open: () => openLedger(schema),
    tamper: (statement) =>
      tamperIn(schema, async (client) => void (await client.query(statement.replaceAll('@', `${schema}.`)))),
    bytes: (hex) => `'\\x${hex}'::bytea`,
  }
}

// Only a platform without Postgres leaves them out, and the run says so.
describe.skipIf(!hasPostgres)('what a rule of retention reads in Postgres', () => {
  it.each(Object.entries(retentionRowCases))('%s', async (_claim, holds) => {
    await expect(holds(bed())).resolves.toBeUndefined()
  })
})
