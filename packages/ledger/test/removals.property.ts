import * as fc from 'fast-check'
import { toTranscript } from '@tallystick/core/machine'
import { checkTranscript } from '@tallystick/testkit'
import { applyRetention, foldTo, redact, verifyLedger } from '@tallystick/ledger'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { describe, expect, it } from 'vitest'
import { tries } from '../../../scripts/testing/effort.ts'
import { watchedLedger } from '@tallystick/testkit'
import { emptyLedgerFile } from './support/temporary-folder.ts'
import { playProgram } from '../../../scripts/testing/programs/play-program.ts'
import { randomProgram } from '../../../scripts/testing/programs/random-program.ts'

const numRuns = tries(30)

describe('a random run of which something is taken away, again and again', () => {
  it('verifies after each time, and folds to the same totals, with what is left in its place', async () => {
    const removal = fc.oneof(
      fc.record({ seqs: fc.array(fc.nat(), { minLength: 1, maxLength: 9 }) }),
      fc.record({ deltasMs: fc.nat(60_000), contentMs: fc.nat(600_000) }),
      fc.record({ all: fc.constant(true) }),
    )
    const removals = fc.array(removal, { minLength: 1, maxLength: 4 })
    await fc.assert(
      fc.asyncProperty(randomProgram, removals, async (program, wanted) => {
        const ledger = sqliteLedger(emptyLedgerFile())
        const { events, others, result } = await playProgram(program, watchedLedger(ledger))
        const { totals, phase, seq, at } = await foldTo(ledger, result.runId)
        for (const each of wanted) {
          if ('seqs' in each) {
            const seqs = each.seqs.map((value) => 1 + (value % events.length))
            await redact(ledger, result.runId, seqs, { by: 'ada', reason: 'x' })
          } else if ('all' in each) await redact(ledger, result.runId, 'all', { by: 'ada', reason: 'x' })
          else await applyRetention(ledger, each, { now: at + 300_000 })
          const state = await foldTo(ledger, result.runId)
          expect({ ...state, definition: {} }).toMatchObject({ totals, phase, seq })
          expect(checkTranscript(toTranscript(state))).toEqual([])
          const verdicts = await Array.fromAsync(verifyLedger(ledger))
          expect(verdicts.map(({ ok }) => ok)).toEqual(Array.from({ length: others.length + 2 }, () => true))
        }
        await applyRetention(ledger, { factsMs: 0 }, { now: at + 1_000_000 })
        const left = await Array.fromAsync(verifyLedger(ledger))
        expect(left.every(({ ok }) => ok)).toBe(true)
        expect(left.at(-1)).toMatchObject({
          runs: left.length - 1,
          droppedRuns: others.length + 2 - left.length,
        })
        await ledger.close()
      }),
      { numRuns },
    )
  })
})
