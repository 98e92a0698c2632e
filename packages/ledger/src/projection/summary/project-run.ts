import { TallystickError, type Ledger, type RunId } from '@tallystick/core'
import { foldStoredRun } from '../snapshot/fold-to.ts'
import { RunAccumulator, type AccumulatedRun } from './run-accumulator.ts'
import type { StoredRun } from './stored-run.ts'
import { recordOf, unreadableRecord, type SummaryRecord } from './summary-record.ts'

/** Codes of errors that are about the record of one run, and say nothing about the others. */
const ofOneRun: ReadonlySet<string> = new Set([
  'ledger_damaged',
  'law_broken',
  'illegal_transition',
  'unknown_event',
])

/** Whether an error is about the record of one run, and says nothing about the others. */
function isOfOneRun(error: unknown): error is TallystickError {
  return error instanceof TallystickError && ofOneRun.has(error.code)
}

/** What is known of a run after an earlier event of it. */
export interface NotedSeq {
  readonly seq: number
  readonly accumulated: AccumulatedRun
}

/** What a row knows of a run that has had more events since; `undefined` where it tells of all of them. */
export function knownBefore(
  headSeq: number,
  row: Pick<StoredRun, 'seq' | 'accumulated'> | undefined,
): NotedSeq | undefined {
  return row?.accumulated && row.seq < headSeq ? { seq: row.seq, accumulated: row.accumulated } : undefined
}

/**
 * Projects a run after its event `toSeq`, starting from its known projection. Reports a run that cannot be read as
 * unreadable, and throws faults of the store itself. `undefined` if the run has no events.
 */
export async function projectRun(
  ledger: Ledger,
  runId: RunId,
  toSeq: number,
  known?: NotedSeq,
): Promise<SummaryRecord | undefined> {
  const accumulator = new RunAccumulator(known?.accumulated)
  try {
    const folded = await foldStoredRun(ledger, runId, {
      toSeq,
      usesSnapshots: true,
      onEventAfter: known?.seq ?? 0,
      onEvent: (event) => accumulator.add(event),
    })
    return folded && recordOf(folded.state, accumulator.run)
  } catch (error) {
    if (!isOfOneRun(error)) throw error
    // What was known may be what is wrong.
    if (known) return await projectRun(ledger, runId, toSeq)
    return unreadableRecord(runId, toSeq, error)
  }
}
