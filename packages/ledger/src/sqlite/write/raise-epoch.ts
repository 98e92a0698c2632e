import { RunNotFoundError, type RunId } from '@tallystick/core'
import type { Head, TakeOverClaim } from '@tallystick/core/vocabulary'
import { headRow, type AppendStore } from './append.ts'
import type { Write } from './group-commit.ts'
import { cellOf, runRow } from '../rows/run-row.ts'

/** Raises the epoch of a run, durably. From then on the writer before can append nothing. */
export function acquire(
  { reads, writes, known, leases }: AppendStore,
  runId: RunId,
  claim: TakeOverClaim | undefined,
): Write<Head> {
  const work = (): Head => {
    const run = runRow(reads, runId)
    if (run === undefined) throw new RunNotFoundError(runId)
    leases.acquired(runId, claim)
    const cell = { ...cellOf(runId, run), epoch: run.epoch + 1 }
    writes.moveHead.run(headRow(cell))
    known.forget(runId)
    return { seq: cell.headSeq, epoch: cell.epoch }
  }
  return { durability: 'barrier', events: 0, bytes: 0, work }
}
