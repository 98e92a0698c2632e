import { TallystickError, type Ledger, type RunId } from '@tallystick/core'
import { foldRun } from '../snapshot/fold-run.ts'
import { RunAccumulator, type AccumulatedRun } from './run-accumulator.ts'
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

/** What is known of a run behind an earlier event of it. */
export interface NotedSeq {
  readonly seq: number
  readonly accumulated: AccumulatedRun
}

/**
 * Tells of a run behind its event `toSeq`, going on from what is known of it already. A run that cannot be read is one of
 * which that is told; what is wrong with the store itself is thrown. `undefined` where the run has no events.
 */
export async function projectRun(
  ledger: Ledger,
  runId: RunId,
  toSeq: number,
  known?: NotedSeq,
): Promise<SummaryRecord | undefined> {
  const accumulator = new RunAccumulator(known?.accumulated)
  try {
    const state = await foldRun(ledger, runId, {
      ...{ toSeq, usesSnapshots: true, onEventAfter: known?.seq ?? 0 },
      onEvent: (event) => accumulator.add(event),
    })
    return state && recordOf(state, accumulator.run)
  } catch (error) {
    if (!isOfOneRun(error)) throw error
    // What was known may be what is wrong.
    if (known) return await projectRun(ledger, runId, toSeq)
    return unreadableRecord(runId, toSeq, error)
  }
}
