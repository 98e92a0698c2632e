import { join } from 'node:path'
import { memoryLedger } from '@tallystick/core'
import { readRunSummaries } from '@tallystick/ledger'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { tries } from '../../../scripts/testing/effort.ts'
import { summarizeEndedRuns } from '../src/projection/ended-runs.ts'
import { GrownLedger, runsOf, story } from './support/grown-ledger.ts'
import { lastingFolder } from '../../../scripts/testing/temporary-folder.ts'

const numRuns = tries(40)

describe('the summary of a run that has ended', () => {
  const folder = lastingFolder()
  let files = 0

  it('is what folding all of its events tells', async () => {
    let ended = 0
    await fc.assert(
      fc.asyncProperty(story, async (reported) => {
        const planned = await runsOf(reported)
        const ledgers = [sqliteLedger(join(folder, `${++files}.db`)), memoryLedger()] as const
        for (const ledger of ledgers) {
          const grown = new GrownLedger(planned)
          for (let run = 0; run < planned.length; run++) await grown.grow(ledger, run, Infinity)
        }
        const [stored, folded] = ledgers
        const due = await Array.fromAsync(readRunSummaries(folded))
        const runs = await Array.fromAsync(stored.runs())
        const found = await summarizeEndedRuns(stored, runs)
        ended += found.size
        expect([...found.keys()].toSorted()).toEqual(
          due
            .filter(({ status }) => status === 'done' || status === 'failed')
            .map(({ runId }) => runId)
            .toSorted(),
        )
        expect([...found.values()]).toEqual(
          expect.arrayContaining(due.filter(({ runId }) => found.has(runId))),
        )
        await stored.close()
      }),
      { numRuns },
    )
    expect(ended).toBeGreaterThan(numRuns)
  })
})
