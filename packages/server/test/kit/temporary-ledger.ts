import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Ledger } from '@tallystick/core'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { onTestFinished } from 'vitest'

/** A folder for one test. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'tallystick-server-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  return folder
}

/** A ledger in a file, for one test. */
export function temporaryLedger(): Ledger {
  const ledger = sqliteLedger(join(temporaryFolder(), 'runs.db'))
  onTestFinished(() => ledger.close())
  return ledger
}
