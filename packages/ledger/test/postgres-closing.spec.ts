import { describe, expect, it } from 'vitest'
import { closingCases } from './support/closing-cases.ts'
import { freshSchema, hasPostgres, openLedger } from './support/postgres-database.ts'

// Only a platform without Postgres leaves them out, and the run says so.
describe.skipIf(!hasPostgres)('closing a ledger in Postgres whose runs are driven', () => {
  it.each(Object.entries(closingCases))('%s', async (_claim, keeps) => {
    const schema = freshSchema()
    await expect(keeps(() => openLedger(schema))).resolves.toBeUndefined()
  })
})
