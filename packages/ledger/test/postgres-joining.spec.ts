import { describe, expect, it } from 'vitest'
import { unheard } from './support/joining-cases.ts'
import { freshSchema, hasPostgres, openLedger } from './support/postgres-database.ts'

// Only a platform without Postgres leaves them out, and the run says so.
describe.skipIf(!hasPostgres)('input that joins a run of another process', () => {
  it('is heard, however close to the end of the run it comes', async () => {
    const schema = freshSchema()
    expect(await unheard(openLedger(schema), openLedger(schema), 25)).toEqual([])
  })
})
