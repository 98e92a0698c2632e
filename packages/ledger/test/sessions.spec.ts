import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { effort } from '../../../scripts/testing/effort.ts'
import { tamper, withRaw } from './support/raw-database.ts'
import { onAsk } from './support/lent-store.ts'
import { countedRows, keptTables, type SessionBed } from './support/session-bed.ts'
import { sessionCases } from './support/session-cases.ts'
import { emptyLedgerFile } from './support/temporary-folder.ts'

afterEach(() => void vi.restoreAllMocks())

function bed(): SessionBed {
  const path = emptyLedgerFile()
  let piecesRead = 0
  return {
    runsMany: effort({ quick: 60, thorough: 200 }),
    open: (options) => {
      const ledger = sqliteLedger(path, options)
      onAsk(ledger, (text) => (piecesRead += text.includes('from @.history') ? 1 : 0))
      return ledger
    },
    tamper: (statement) => {
      tamper(path, (database) => void database.exec(statement))
      return Promise.resolve()
    },
    // By another process: closing the file in this one would drop the locks of its ledger.
    holds: async (bytes) => {
      const files = [path, `${path}-wal`].filter((file) => existsSync(file))
      return spawnSync('grep', ['-q', '-a', '-F', bytes, ...files]).status === 0
    },
    stored: () => Promise.resolve(withRaw(path, (database) => storedIn(database))),
    pieces: () =>
      Promise.resolve(
        withRaw(
          path,
          (database) => database.prepare<[], number>('select count(*) from history').pluck().get() ?? 0,
        ),
      ),
    piecesRead: () => piecesRead,
  }
}

function storedIn(database: Parameters<Parameters<typeof withRaw>[1]>[0]): { rows: number; bytes: number } {
  const sum = { rows: 0, bytes: 0 }
  for (const table of keptTables) {
    for (const row of database
      .prepare<[], Record<string, unknown>>(`select * from ${countedRows(table)}`)
      .iterate()) {
      sum.rows++
      for (const value of Object.values(row)) {
        if (typeof value === 'string' || value instanceof Uint8Array) sum.bytes += value.length
        else if (value !== null) sum.bytes += 8
      }
    }
  }
  return sum
}

describe('sessions in a ledger file', () => {
  it.each(Object.entries(sessionCases))('%s', async (_claim, keeps) => {
    await expect(keeps(bed())).resolves.toBeUndefined()
  })
})
