import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { onTestFinished } from 'vitest'
import type { ProjectionBed } from './projection-bed.ts'
import { tamper, withRaw } from './raw-database.ts'
import { refreshingProcess } from './refreshing-process.ts'
import { emptyLedgerFile } from './temporary-folder.ts'

/** A ledger file of its own for a test of projections. */
export function sqliteProjectionBed(): ProjectionBed {
  const path = emptyLedgerFile()
  return {
    isQuick: true,
    open(options = {}) {
      const ledger = sqliteLedger(path, { ...options })
      onTestFinished(() => ledger.close())
      return ledger
    },
    tamper: (statement) => {
      tamper(path, (database) => void database.exec(statement))
      return Promise.resolve()
    },
    rows: (query) =>
      Promise.resolve(
        withRaw(path, (database) => database.prepare<[], Record<string, unknown>>(query).all()),
      ),
    plan: (text, values) =>
      Promise.resolve(
        withRaw(path, (database) => {
          const numbered = Object.fromEntries(values.map((value, index) => [index + 1, value]))
          const steps = database
            .prepare<[object], { detail: string }>(`explain query plan ${text.replaceAll('@.', '')}`)
            .all(numbered)
          return steps.map(({ detail }) => detail).join('\n')
        }),
      ),
    refresher: () => refreshingProcess(path),
  }
}
