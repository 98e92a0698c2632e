import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { memoryLedger } from '@tallystick/core'
import { runSummaries } from '@tallystick/ledger'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import * as fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { tries } from '../../../scripts/testing/effort.ts'
import { summarizeEndedRuns } from '../src/projection/ended-runs.ts'
import { countStatements, difference, Tally } from './support/counted-work.ts'
import { GrownLedger, runsOf, story } from './support/grown-ledger.ts'
import { longRun } from './support/long-run.ts'

const numRuns = tries(40)

describe('the summary of a run that has ended', () => {
  let folder: string
  let files = 0
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'tallystick-ended-'))
  })
  afterAll(() => rmSync(folder, { recursive: true }))

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
        const due = await Array.fromAsync(runSummaries(folded))
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

  it('takes a bounded number of rows at a time, however many calls the run has had', async () => {
    const ledger = sqliteLedger(join(folder, 'long.db'))
    const short = await longRun(ledger, 2)
    const long = await longRun(ledger, 300, { seed: 2 })
    const tally = new Tally()
    countStatements(tally)
    for (const runId of [short, long]) {
      const run = { runId, head: (await ledger.head(runId)) ?? { seq: 0, epoch: 1 } }
      const before = tally.counts
      const found = await summarizeEndedRuns(ledger, [run])
      const turns = runId === short ? 2 : 300
      const calls = [{ name: 'look', outcome: 'success', count: turns - 1 }]
      expect(found.get(runId)).toMatchObject({ turns, toolCalls: turns - 1, calls, seq: run.head.seq })
      // The first, whose text names JSON before the table, counts its rows; each part that is read has about 512.
      const parts = runId === short ? 1 : 2
      expect(difference(before, tally.counts)).toEqual({ 'select json_each': 1, 'select event': parts })
    }
    await ledger.close()
  })
})
