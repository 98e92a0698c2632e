import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { tamper, withRaw } from './raw-database.ts'
import type { SharedRowBed } from './shared-row-cases.ts'
import { emptyLedgerFile } from './temporary-folder.ts'

/** A ledger file of its own for a test of rows. */
export function fileRowBed(): SharedRowBed {
  const path = emptyLedgerFile()
  return {
    open: () => sqliteLedger(path),
    rows: async (query) =>
      withRaw(path, (database) =>
        database.prepare<[], Record<string, unknown>>(query.replaceAll('@', '')).all(),
      ),
    tamper: async (statement) => tamper(path, (database) => database.exec(statement.replaceAll('@', ''))),
  }
}
