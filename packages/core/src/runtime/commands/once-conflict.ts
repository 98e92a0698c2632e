import { LedgerConflictError } from '../../vocabulary/errors.ts'
import type { RunId } from '../../vocabulary/values/ids.ts'

/** A command of a key that another one has had. */
export function sentBefore(runId: RunId, key: string): LedgerConflictError {
  const message = `Run ${runId} has had a command of the key ${key} before; send it again.`
  return new LedgerConflictError('unique', message)
}
