import { existsSync } from 'node:fs'
import type { Ledger } from '@tallystick/core'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { CommandError } from './exit-code.ts'

/**
 * Whether a process may have the ledger open. As long as one has, SQLite keeps its log beside the file; one that was
 * killed leaves the log there, and the next that opens the file to write takes it away at its end.
 */
export function isOpenSomewhere(path: string): boolean {
  return existsSync(`${path}-shm`) || existsSync(`${path}-wal`)
}

/**
 * Opens a ledger: one that is there already, for looking (`read`: nothing can be written) or for commands and driving
 * (`write`); or one that is made where there is none (`make`).
 */
export async function withLedger<Result>(
  path: string,
  access: 'read' | 'write' | 'make',
  use: (ledger: Ledger) => Promise<Result>,
): Promise<Result> {
  if (access !== 'make' && !existsSync(path)) {
    throw new CommandError(
      'not_found',
      `There is no ledger at ${path}. Name the file that the runs were recorded in.`,
    )
  }
  const ledger = sqliteLedger(path, { readOnly: access === 'read' })
  try {
    return await use(ledger)
  } finally {
    await ledger.close()
  }
}
