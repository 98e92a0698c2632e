import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { memoryFolder } from '../../testing/memory-folder.ts'
import { inOwnProcess } from '../../testing/selection.ts'

/** Whether a test file can share a process with others, as it does in `pnpm test`. */
export function sharesProcess(test: string): boolean {
  return !inOwnProcess.includes(test)
}

/** The environment of trials: small numbers, and temporary files in memory where the machine has a folder for that. */
export function trialEnvironment(): Record<string, string> {
  const folder = memoryFolder()
  return {
    TALLYSTICK_EFFORT: 'quick',
    NODE_COMPILE_CACHE: join(tmpdir(), 'tallystick-compile-cache'),
    ...(folder !== undefined && { TMPDIR: folder }),
  }
}
