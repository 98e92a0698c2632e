import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { expect, it } from 'vitest'
import {
  countAppends,
  countHashes,
  countPreparations,
  countStatements,
  difference,
  Tally,
  type Work,
} from './support/counted-work.ts'
import { driveLookingSession } from './support/looking-run.ts'
import { temporaryFile } from './support/temporary-folder.ts'

/**
 * What the next run of a session costs in SQLite, on any machine, however many came before: two turns of 20 deltas, one tool
 * call, and one subscriber of its events. It asks whether anything of the run before it was
 * removed. No statement is prepared for it: that took as long as several take.
 */
const costs: Work = {
  'append, barrier': 3,
  'append, lazy': 3,
  begin: 6,
  'commit, synced': 3,
  'commit, unsynced': 3,
  event: 21,
  'hash, of Node': 59,
  'insert event': 6,
  'insert history': 4,
  'insert run': 1,
  'pragma synchronous': 4,
  'select history': 5,
  'select inbox': 1,
  'select removal': 1,
  'select run': 8,
  'select sqlite_sequence': 1,
  'select total_changes()': 6,
  'update run': 6,
}

it('the next run of a session costs at run 5 and at run 50 what the table says', async () => {
  const tally = new Tally()
  const workBefore = new Map<number, Work>()
  const sqlite = sqliteLedger(temporaryFile(), { deltaDelayMs: 0 })
  const ledger = countAppends(sqlite, tally, () => {})
  countStatements(tally)
  countPreparations(tally)
  await countHashes(tally)
  await driveLookingSession({
    ...{ ledger, turns: 2, seed: 3, runs: 51, pause: () => Promise.resolve() },
    before: (run) => void workBefore.set(run, tally.counts),
  })
  await ledger.close()
  const workOf = (run: number): Work => difference(workBefore.get(run) ?? {}, workBefore.get(run + 1) ?? {})
  expect({ run5: workOf(5), run50: workOf(50) }).toEqual({ run5: costs, run50: costs })
})
