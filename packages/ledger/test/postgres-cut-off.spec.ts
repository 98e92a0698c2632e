import { describe, expect, it } from 'vitest'
import { cutOffCases } from './support/cut-off-cases.ts'
import { freshSchema, hasPostgres, openLedger } from './support/postgres-database.ts'

// Only a platform without Postgres leaves them out, and the run says so.
describe.skipIf(!hasPostgres)('closing a ledger in Postgres that is followed', () => {
  it.each(Object.entries(cutOffCases))('%s', async (_claim, keeps) => {
    const schema = freshSchema()
    await expect(keeps(() => openLedger(schema))).resolves.toBeUndefined()
  })
})
