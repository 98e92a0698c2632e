import { mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, onTestFinished } from 'vitest'

const makeFolder = (): string => realpathSync(mkdtempSync(join(tmpdir(), 'tallystick-')))
const remove = (folder: string): void => rmSync(folder, { recursive: true, force: true })

/** A folder of its own for the test that runs, removed when it ends. */
export function temporaryFolder(): string {
  const folder = makeFolder()
  onTestFinished(() => remove(folder))
  return folder
}

/**
 * A folder of its own that is there for all tests of a file, and removed after the last. To be called while tests are
 * declared: within a hook or a test, `afterAll` does nothing.
 */
export function lastingFolder(): string {
  const folder = makeFolder()
  afterAll(() => remove(folder))
  return folder
}
