import { memoryLedger } from '@tallystick/core'
import { sampleRunId } from '@tallystick/testkit'
import { verifyLedger } from '@tallystick/ledger'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { tries } from '../../../scripts/testing/effort.ts'
import { expectTold, refreshed } from './support/compare-projections.ts'
import { GrownLedger, runsOf, story } from './support/grown-ledger.ts'
import { emptyLedgerFile } from './support/temporary-folder.ts'

const numRuns = tries(30)

describe('projections', () => {
  it('tell what the events say, however the ledger grew and whichever process updated them', async () => {
    await fc.assert(
      fc.asyncProperty(story, async (reported) => {
        const path = emptyLedgerFile()
        const ledgers = [sqliteLedger(path), sqliteLedger(path)] as const
        const grown = new GrownLedger(await runsOf(reported))
        // Every reader finds a schema that is made.
        await ledgers[0].head(sampleRunId(1))
        const reader = sqliteLedger(path, { readOnly: true })
        for (const step of reported.steps) {
          if (step.do === 'grow') await grown.grow(ledgers[step.by], step.run, step.events)
          else if (step.do === 'refresh') await refreshed(ledgers[step.by])
          else await expectTold(reader, grown.runs, false)
        }
        await expectTold(reader, grown.runs, false)
        await refreshed(ledgers[0])
        await expectTold(ledgers[0], grown.runs, true)
        await expectTold(reader, grown.runs, true)
        const verdicts = await Array.fromAsync(verifyLedger(reader))
        expect(verdicts.filter(({ ok, differs }) => !ok || differs)).toEqual([])
        for (const ledger of [...ledgers, reader]) await ledger.close()
      }),
      { numRuns },
    )
  })

  // oxlint-disable-next-line vitest/expect-expect -- `expectTold` does
  it('tell of a ledger that keeps none what its events say too', async () => {
    await fc.assert(
      fc.asyncProperty(story, async (reported) => {
        const ledger = memoryLedger()
        const grown = new GrownLedger(await runsOf(reported))
        for (const step of reported.steps) {
          if (step.do === 'grow') await grown.grow(ledger, step.run, step.events)
        }
        await expectTold(ledger, grown.runs, true)
      }),
      { numRuns },
    )
  })
})
