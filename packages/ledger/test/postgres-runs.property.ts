import { postgresLedger } from '@tallystick/ledger/postgres'
import * as fc from 'fast-check'
import { describe, it } from 'vitest'
import { tries } from '../../../scripts/testing/effort.ts'
import { randomProgram } from '../../../scripts/testing/programs/random-program.ts'
import { connectionString, freshSchema, hasPostgres } from './support/postgres-database.ts'
import { expectSoundRuns } from './support/random-run.ts'

const numRuns = tries(20)

// Only a platform without Postgres leaves them out, and the run says so.
describe.skipIf(!hasPostgres)('a random run in Postgres, with crashes, cancels, denials and limits', () => {
  // oxlint-disable-next-line vitest/expect-expect -- `expectSoundRuns` does
  it('keeps every law, and is read back, folded, replayed and verified by another ledger', async () => {
    await fc.assert(
      fc.asyncProperty(randomProgram, async (program) => {
        const schema = freshSchema()
        const open = (readOnly: boolean) => postgresLedger({ connectionString, schema, readOnly })
        const ledgers = [open(false), open(true)] as const
        try {
          await expectSoundRuns(program, ...ledgers)
        } finally {
          for (const ledger of ledgers) await ledger.close()
        }
      }),
      { numRuns },
    )
  })
})
