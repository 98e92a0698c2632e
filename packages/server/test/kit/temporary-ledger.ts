import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Ledger } from '@tallystick/core'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { onTestFinished } from 'vitest'

/** A ledger in a file, for one test. */
export function temporaryLedger(): Ledger {
  const folder = mkdtempSync(join(tmpdir(), 'tallystick-server-'))
  const ledger = sqliteLedger(join(folder, 'runs.db'))
  onTestFinished(async () => {
    await ledger.close()
    rmSync(folder, { recursive: true })
  })
  return ledger
}
