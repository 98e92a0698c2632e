import { LedgerUnavailableError } from '../../values/errors.ts'
import { finishedText, type Refusal } from '../../machine/rules.ts'
import type { RunId } from '../../values/ids.ts'

/** Why a run that is done takes no command. */
export function refusedAtEnd(runId: RunId): Refusal {
  return { code: 'run_finished', message: finishedText(`Run ${runId} is finished`) }
}

/** The refusal of a command by a handle of a drained runtime. */
export function refusedByDrain(runId: RunId): Refusal {
  const message = `The runtime that holds this handle of run ${runId} was drained and drives no run any more. Send the command from another process. A command that is in the inbox already is decided by the next process that drives the run.`
  return { code: 'drained', message }
}

/** The refusal of a command about a call that no run of the family has open. */
export function unknownCall(runId: RunId): Refusal {
  const message = `Run ${runId} has no open tool call of that id, nor has a child run of it; show the run to see which wait.`
  return { code: 'unknown_call', message }
}

/** How long a drain waits for the ledger after the grace time, in milliseconds. */
export const answerTimeoutMs = 5_000

/** The end of a drain that waits in vain for the result of an append. */
export function ledgerSilent(runId: RunId): LedgerUnavailableError {
  return new LedgerUnavailableError(
    `The ledger has not answered for ${answerTimeoutMs} ms after the grace time of a drain, so run ${runId} was left where it ` +
      'is. Whether its last append was carried out is not known; what was acknowledged is not lost. Resume it when the ledger answers.',
  )
}
