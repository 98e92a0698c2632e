import {
  ConfigurationError,
  RunNotFoundError,
  type Ledger,
  type RunId,
  type RunState,
} from '@tallystick/core'
import { option, requireOptions } from '@tallystick/core/kit'
import { foldRun } from './fold-run.ts'

/** How a fold goes. */
export interface FoldOptions {
  /** Whether it begins at the last snapshot that the store has of the run. `true` unless given. */
  readonly snapshots?: boolean
}

const foldOptions = option.fields<FoldOptions>({ snapshots: option.maybe(option.trueOrFalse) })

/**
 * The state of a run right after its event `seq`, or after its last one: time travel, without any call. It is the
 * state that the live run had there.
 *
 * Where the store keeps snapshots, only what comes after the nearest one is read, and a fold that came far leaves one,
 * if the ledger was opened to write. A snapshot is bound to the history that it is of and to the code that made it; what
 * is not as it was written is left aside.
 *
 * Rejects with `RunNotFoundError` where the ledger has no such run, with `ConfigurationError` where the run has no
 * such event, and with what `evolve` throws where an event is not legal.
 */
export async function foldTo(
  ledger: Ledger,
  runId: RunId,
  seq?: number,
  options: FoldOptions = {},
): Promise<RunState> {
  requireOptions('foldTo', foldOptions, options)
  const head = await ledger.head(runId)
  if (head === undefined) throw new RunNotFoundError(runId)
  const toSeq = seq ?? head.seq
  if (!Number.isInteger(toSeq) || toSeq < 1 || toSeq > head.seq) {
    throw new ConfigurationError(
      `Run ${runId} has the events 1 to ${head.seq}, so there is no state at seq ${toSeq}. Name one of them.`,
    )
  }
  const state = await foldRun(ledger, runId, { toSeq, usesSnapshots: options.snapshots ?? true })
  if (state === undefined) throw new RunNotFoundError(runId)
  return state
}
