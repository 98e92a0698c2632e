import type { RunId } from '@tallystick/core'
import { requireTextId } from '@tallystick/core/store-kit'
import type { Keyring } from '../content/payload/keyring.ts'

/**
 * Whether nothing of a run was removed, by what the store says of removals; `undefined` where the ledger has keys, since
 * sealed content goes with its key, of which the store says nothing.
 */
export async function isWholeRun(
  runId: RunId,
  keys: Keyring | undefined,
  hasLost: (runId: RunId) => Promise<boolean>,
): Promise<boolean | undefined> {
  requireTextId('ledger.isWhole', runId)
  return keys ? undefined : !(await hasLost(runId))
}
