import { readdirSync, readlinkSync } from 'node:fs'

/** Whether the host lists which files a process has open. */
export const listsFilesOpen: boolean = process.platform === 'linux'

/** How often this process has files open whose paths begin so. */
export function filesOpen(path: string): number {
  return readdirSync('/proc/self/fd').filter((each) => {
    try {
      return readlinkSync(`/proc/self/fd/${each}`).startsWith(path)
    } catch {
      // It was that of the list itself.
      return false
    }
  }).length
}
