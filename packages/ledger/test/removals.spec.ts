import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { describe, expect, it } from 'vitest'
import { digestsOnlyCases } from './support/digests-only-cases.ts'
import type { RemovalBed } from './support/removal-bed.ts'
import { removalCases } from './support/removal-cases.ts'
import { sealingCases } from './support/sealing-cases.ts'
import { tamper } from './support/raw-database.ts'
import { emptyLedgerFile } from './support/temporary-folder.ts'

function bed(): RemovalBed {
  const path = emptyLedgerFile()
  return {
    open: (options) => sqliteLedger(path, options),
    tamper: (statement) => {
      tamper(path, (database) => void database.exec(statement))
      return Promise.resolve()
    },
    // By another process: closing the file in this one would drop the locks of its ledger.
    holds: async (bytes) => {
      const files = [path, `${path}-wal`].filter((file) => existsSync(file))
      const { status } = spawnSync('grep', ['-q', '-a', '-F', bytes, ...files])
      if (status !== 0 && status !== 1) throw new Error('grep failed')
      return status === 0
    },
  }
}

describe('taking content away from a ledger file', () => {
  it.each(Object.entries({ ...removalCases, ...sealingCases, ...digestsOnlyCases }))(
    '%s',
    async (_claim, keeps) => {
      await expect(keeps(bed())).resolves.toBeUndefined()
    },
  )
})
