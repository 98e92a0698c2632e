import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { MakeStore } from '@tallystick/ledger/contract'
import { sqliteLedger } from '@tallystick/ledger/sqlite'

/** A store that keeps every promise. */
const makeStore: MakeStore = () => {
  const folder = mkdtempSync(join(tmpdir(), 'tallystick-contract-'))
  return {
    open: () => sqliteLedger(join(folder, 'runs.db'), { pollIntervalMs: 5 }),
    remove: () => rmSync(folder, { recursive: true }),
  }
}
export default makeStore
