import { describe, expect, it } from 'vitest'
import { badInputCases } from './support/bad-input-cases.ts'
import { freshSchema, hasPostgres, openLedger } from './support/postgres-database.ts'

// Only a platform without Postgres leaves them out, and the run says so.
describe.skipIf(!hasPostgres)('what comes in bad into a ledger in Postgres', () => {
  it.each(Object.entries(badInputCases))('%s', async (_claim, keeps) => {
    await expect(keeps({ open: () => openLedger(freshSchema()) })).resolves.toBeUndefined()
  })
})
