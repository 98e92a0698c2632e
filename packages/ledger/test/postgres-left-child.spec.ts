import { describe, expect, it } from 'vitest'
import { demandCancelled } from './support/left-child.ts'
import { freshSchema, hasPostgres, openLedger } from './support/postgres-database.ts'

// Only a platform without Postgres leaves them out, and the run says so.
describe.skipIf(!hasPostgres)('a child run that its parent had to leave, in Postgres', () => {
  it('is cancelled, whichever call of the ledger is late', async () => {
    const schema = freshSchema()
    await expect(demandCancelled(() => openLedger(schema), [1])).resolves.toBeUndefined()
  })
})
