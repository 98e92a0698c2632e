import { type RunState, type RuntimeEvent } from '@tallystick/core'
import { evolve, serializeState } from '@tallystick/core/machine'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { tries } from '../../../scripts/testing/effort.ts'
import { getDatabase } from '../src/store/store.ts'
import { Snapshots } from '../src/projection/snapshots.ts'
import { watchedLedger } from '@tallystick/testkit'
import { emptyLedgerFile } from './support/temporary-folder.ts'
import { playProgram } from '../../../scripts/testing/programs/play-program.ts'
import { randomProgram } from '../../../scripts/testing/programs/random-program.ts'

const numRuns = tries(30)

function fold(events: readonly RuntimeEvent[], from?: RunState): RunState | undefined {
  return events.reduce<RunState | undefined>(evolve, from)
}

/** How many tokens messages are worth is counted when it is first asked for: no part of what is stored. */
const toJson = (state: RunState | undefined): unknown => state && serializeState(state)

describe('snapshots of a random run', () => {
  it('fold to what its events fold to, from each of them, at every event', async () => {
    await fc.assert(
      fc.asyncProperty(randomProgram, async (program) => {
        const ledger = sqliteLedger(emptyLedgerFile())
        const { events, others } = await playProgram(program, watchedLedger(ledger))
        const database = getDatabase(ledger)!
        for (const run of [events, ...others]) {
          const [{ runId }] = run as readonly [RuntimeEvent]
          const end = fold(run)
          for (const { seq } of run) {
            const snapshots = new Snapshots(database, ledger, runId)
            await snapshots.begin()
            for (const event of run.slice(0, seq)) snapshots.handle(event)
            await snapshots.keep(fold(run.slice(0, seq))!)
            const kept = await snapshots.findLast(seq)
            // A snapshot in the clear would outlive the key that a subject's events are encrypted with.
            const then = program.subject === undefined ? fold(run.slice(0, seq)) : undefined
            expect(toJson(kept)).toStrictEqual(toJson(then))
            expect(toJson(fold(run.slice(kept ? seq : 0), kept))).toStrictEqual(toJson(end))
          }
        }
        await ledger.close()
      }),
      { numRuns },
    )
  })
})
