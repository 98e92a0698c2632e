import { join } from 'node:path'
import { temporaryFolder } from '../../../../scripts/testing/temporary-folder.ts'

export { temporaryFolder }

/** The path of a ledger file that is not there yet, in a folder of its own. */
export function temporaryFile(name = 'runs.db'): string {
  return join(temporaryFolder(), name)
}
