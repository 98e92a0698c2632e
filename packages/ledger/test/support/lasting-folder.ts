import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll } from 'vitest'

/**
 * A path in a folder of its own that is there for all tests of a file, and removed after the last. To be called while
 * tests are declared: within a hook or a test, `afterAll` does nothing.
 */
export function makeFolder(name: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'tallystick-ledger-'))
  afterAll(() => rmSync(folder, { recursive: true, force: true }))
  return join(folder, name)
}
