import { memoryLedger } from '@tallystick/core'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import * as fc from 'fast-check'
import { describe, it } from 'vitest'
import { tries } from '../../../scripts/testing/effort.ts'
import { expectTold } from './support/compare-projections.ts'
import { GrownLedger, runsOf, story } from './support/grown-ledger.ts'
import { emptyLedgerFile } from './support/temporary-folder.ts'
import { expectToldStory } from './support/told-story.ts'

const numRuns = tries(30)

describe('projections', () => {
  // oxlint-disable-next-line vitest/expect-expect -- `expectToldStory` does
  it('tell what the events say, however the ledger grew and whichever process updated them', async () => {
    await fc.assert(
      fc.asyncProperty(story, async (reported) => {
        const path = emptyLedgerFile()
        await expectToldStory(reported, (readOnly) => sqliteLedger(path, { readOnly }))
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
