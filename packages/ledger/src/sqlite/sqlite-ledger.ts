import type { OpenLedger } from '@tallystick/core/store-kit'
import { digestNatively } from '../format/chain.ts'
import { openLedger } from '../store/open-ledger.ts'
import { openDatabase, type SqliteLedgerOptions } from './open-database.ts'
import { SqliteStore } from './sqlite-store.ts'

/** How long deltas of a reply wait for more unless the ledger is given another time, in milliseconds. */
const deltaDelayMsUnlessGiven = 20

/**
 * A ledger in one SQLite file, created if missing. Any number of processes of one machine may use it; they wait for each
 * other's commits, and each run has one writer, by its epoch.
 *
 * Throws `LedgerUnavailableError`, before anything is written, if the file cannot be a ledger: a folder, a file in a
 * folder that does not exist, a file of another application, a ledger of a newer version.
 */
export function sqliteLedger(path: string, options: SqliteLedgerOptions = {}): OpenLedger {
  digestNatively()
  // The options are checked as the database is opened.
  const database = openDatabase(path, options)
  const { keys, deltaDelayMs = deltaDelayMsUnlessGiven } = options
  const store = new SqliteStore(database, options)
  return openLedger(store, { keys, deltaDelayMs })
}
