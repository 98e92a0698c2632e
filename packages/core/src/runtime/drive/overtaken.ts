import { LedgerConflictError } from '../../vocabulary/errors.ts'
import type { Ledger } from '../../ports/ledger.ts'
import type { RunId } from '../../vocabulary/values/ids.ts'

/** Another process took the run over in the same moment, and writes it now. */
export function overtaken(runId: RunId, epoch: number): LedgerConflictError {
  return new LedgerConflictError(
    'epoch',
    `Another process took run ${runId} over (epoch ${epoch}) while this one did, and drives it now. Nothing was ` +
      `written here; load the run with resume() and look before you continue.`,
  )
}

/** Another process took commands out of the inbox of a run, which it drove in between. */
export function takenElsewhere(runId: RunId, keys: readonly string[]): LedgerConflictError {
  return new LedgerConflictError(
    'epoch',
    `Command ${keys.join(', ')} for run ${runId} was taken out of its inbox by another process, which drove the run ` +
      `in between. What became of it is on record: load the run with resume() and look before you ask again.`,
  )
}

/**
 * Refuses to stop where another writer has recorded more: it may have consumed the inbox that this one found empty, so
 * the state after `seq` is not the last. Throws a `LedgerConflictError` of kind `epoch`.
 */
export async function requireLast(ledger: Ledger, runId: RunId, seq: number): Promise<void> {
  const head = await ledger.head(runId)
  if (head && head.seq > seq) throw overtaken(runId, head.epoch)
}
