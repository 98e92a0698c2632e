import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { writeEmptyLedger } from '../../../../scripts/testing/empty-ledger.ts'

/** A folder of its own for the test that runs, removed when it ends. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'tallystick-ledger-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

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
