import { postgresLedger } from '@tallystick/ledger/postgres'
import * as fc from 'fast-check'
import { describe, it } from 'vitest'
import { tries } from '../../../scripts/testing/effort.ts'
import { story } from './support/grown-ledger.ts'
import { connectionString, freshSchema, hasPostgres } from './support/postgres-database.ts'
import { expectToldStory } from './support/told-story.ts'

const numRuns = tries(15)

// Only a platform without Postgres leaves them out, and the run says so.
describe.skipIf(!hasPostgres)('projections in Postgres', () => {
  // oxlint-disable-next-line vitest/expect-expect -- `expectToldStory` does
  it('tell what the events say, however the ledger grew and whichever process updated them', async () => {
    await fc.assert(
      fc.asyncProperty(story, async (reported) => {
        const schema = freshSchema()
        await expectToldStory(reported, (readOnly) => postgresLedger({ connectionString, schema, readOnly }))
      }),
      { numRuns },
    )
  })
})
