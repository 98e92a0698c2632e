import { accessSync, constants, readFileSync, statfsSync } from 'node:fs'

const folder = '/dev/shm'

/** Far more than the files of a test run take. */
const minFreeBytes = 4 * 1024 ** 3

/**
 * Returns a folder whose files are in memory, or `undefined` where the machine has none with enough room for tests. A
 * test may run a program that it wrote, which some machines forbid there.
 */
export function memoryFolder(): string | undefined {
  try {
    accessSync(folder, constants.W_OK)
    const mount = readFileSync('/proc/mounts', 'utf8')
      .split('\n')
      .map((line) => line.split(' '))
      .find(([, path, type]) => path === folder && type === 'tmpfs')
    const { bavail, bsize } = statfsSync(folder)
    const isFit = mount !== undefined && !mount[3]?.split(',').includes('noexec')
    return isFit && bavail * bsize >= minFreeBytes ? folder : undefined
  } catch {
    // Only Linux has it.
    return undefined
  }
}
