import { join } from 'node:path'
import { writeEmptyLedger } from '../../../../scripts/testing/empty-ledger.ts'
import { lastingFolder, temporaryFolder } from '../../../../scripts/testing/temporary-folder.ts'

export { temporaryFolder }

/** The path of a ledger file that is not there yet, in a folder of its own. */
export function temporaryFile(name = 'runs.db'): string {
  return join(temporaryFolder(), name)
}

/** The path of an empty ledger, in a folder of its own. A test that asks how a ledger is made opens a `temporaryFile`. */
export function emptyLedgerFile(): string {
  const path = temporaryFile()
  writeEmptyLedger(path)
  return path
}

/** A path in a folder that is there for all tests of a file, to be made while tests are declared. */
export function makeFolder(name: string): string {
  return join(lastingFolder(), name)
}
