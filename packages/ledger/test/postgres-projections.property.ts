import { sampleRunId } from '@tallystick/testkit'
import { verifyLedger } from '@tallystick/ledger'
import { postgresLedger } from '@tallystick/ledger/postgres'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { tries } from '../../../scripts/testing/effort.ts'
import { expectTold, refreshed } from './support/compare-projections.ts'
import { GrownLedger, runsOf, story } from './support/grown-ledger.ts'
import { connectionString, freshSchema, hasPostgres } from './support/postgres-database.ts'

const numRuns = tries(15)

// Only a platform without Postgres leaves them out, and the run says so.
describe.skipIf(!hasPostgres)('projections in Postgres', () => {
  it('tell what the events say, however the ledger grew and whichever process updated them', async () => {
    await fc.assert(
      fc.asyncProperty(story, async (reported) => {
        const schema = freshSchema()
        const open = (readOnly: boolean) => postgresLedger({ connectionString, schema, readOnly })
        const ledgers = [open(false), open(false)] as const
        const grown = new GrownLedger(await runsOf(reported))
        // Every reader finds a schema that is made.
        await ledgers[0].head(sampleRunId(1))
        const reader = open(true)
        for (const step of reported.steps) {
          if (step.do === 'grow') await grown.grow(ledgers[step.by], step.run, step.events)
          else if (step.do === 'refresh') await refreshed(ledgers[step.by])
          else await expectTold(reader, grown.runs, false)
        }
        await expectTold(reader, grown.runs, false)
        await refreshed(ledgers[0])
        await expectTold(ledgers[0], grown.runs, true)
        const verdicts = await Array.fromAsync(verifyLedger(reader))
        expect(verdicts.filter(({ ok, differs }) => !ok || differs)).toEqual([])
        for (const ledger of [...ledgers, reader]) await ledger.close()
      }),
      { numRuns },
    )
  })
})
