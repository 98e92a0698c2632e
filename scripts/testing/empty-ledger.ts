// An empty ledger file for tests that do not ask how one is made: to copy it takes a quarter of the time.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sqliteLedger } from '../../packages/ledger/src/sqlite/index.ts'

/** An empty ledger as `sqliteLedger` creates it, closed again: made once in each process of tests. */
const emptyLedger: Buffer = await made()

async function made(): Promise<Buffer> {
  const folder = mkdtempSync(join(tmpdir(), 'tallystick-empty-'))
  try {
    const path = join(folder, 'runs.db')
    await sqliteLedger(path).close()
    return readFileSync(path)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Writes an empty ledger of the newest schema to a path where no file is. */
export function writeEmptyLedger(path: string): void {
  writeFileSync(path, emptyLedger, { flag: 'wx' })
}
