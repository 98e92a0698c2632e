import { LedgerUnavailableError } from '../../vocabulary/errors.ts'
import type { Refusal } from '../../machine/state/decision.ts'
import type { RunId } from '../../vocabulary/values/ids.ts'

/** Why a run that is done takes no command. */
export function refusedAtEnd(runId: RunId): Refusal {
  const message = `Run ${runId} is finished; nothing can be asked of it any more.`
  return { code: 'run_finished', message }
}

/** Why a handle of a runtime that was drained takes no command. */
export function refusedByDrain(runId: RunId): Refusal {
  const message = `The runtime that holds this handle of run ${runId} was drained and takes no run further. Send the command from another process; one that is in the inbox already, whoever drives the run next decides about.`
  return { code: 'drained', message }
}

/** How long a drain waits for the ledger after the grace time, in milliseconds. */
export const answerTimeoutMs = 5_000

/** The end of a drain that waits for an append whose answer does not come. */
export function ledgerSilent(runId: RunId): LedgerUnavailableError {
  return new LedgerUnavailableError(
    `The ledger has not answered for ${answerTimeoutMs} ms behind the grace time of a drain, so run ${runId} was left where it ` +
      'is. Whether its last append was carried out is not known; what was acknowledged is not lost. Resume it when the ledger answers.',
  )
}
