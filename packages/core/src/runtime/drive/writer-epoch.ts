import { LedgerConflictError } from '../../values/errors.ts'
import type { RunState } from '../../machine/state.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import type { RunId } from '../../values/ids.ts'

/**
 * THE EPOCH OF A WRITER: each process that takes a run over raises it, and signs every append with it. Every ledger
 * refuses an append of an older epoch (`requireHead` of its append rules), so two processes never write one run.
 */

/**
 * Refuses to drive a run whose events say that another writer has raised the epoch further since. Throws a
 * `LedgerConflictError` of kind `epoch`.
 */
export function requireOwnEpoch({ runId, epoch }: RunState, own: number): void {
  if (epoch > own) throw overtaken(runId, epoch)
}

/**
 * Refuses to stop where another writer has recorded more: it may have consumed the inbox that this one found empty, so
 * the state after `seq` is not the last. Throws a `LedgerConflictError` of kind `epoch`.
 */
export async function requireLast(ledger: Ledger, runId: RunId, seq: number): Promise<void> {
  const head = await ledger.head(runId)
  if (head && head.seq > seq) throw overtaken(runId, head.epoch)
}

/** Another process took the run over in the same moment, and writes it now. */
export function overtaken(runId: RunId, epoch: number): LedgerConflictError {
  return new LedgerConflictError(
    'epoch',
    `Another process has taken run ${runId} over (epoch ${epoch}), and drives it now. Nothing more is written here; ` +
      `resume() follows it.`,
  )
}
