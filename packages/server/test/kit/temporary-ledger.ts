import { join } from 'node:path'
import type { Ledger } from '@tallystick/core'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { onTestFinished } from 'vitest'
import { temporaryFolder } from '../../../../scripts/testing/temporary-folder.ts'

export { temporaryFolder }

/** A ledger in a file, for one test. */
export function temporaryLedger(): Ledger {
  const ledger = sqliteLedger(join(temporaryFolder(), 'runs.db'))
  onTestFinished(() => ledger.close())
  return ledger
}
