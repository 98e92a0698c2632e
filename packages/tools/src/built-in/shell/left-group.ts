import { readdirSync, readlinkSync } from 'node:fs'

/** The ends of the output of a process, by which the processes are known that it handed them on to. */
export function outputEndsOf(processId: number | undefined): ReadonlySet<string> {
  const ends = [1, 2].flatMap((descriptor) => {
    const end = linkAt(`/proc/${processId}/fd/${descriptor}`)
    return /^(?:socket|pipe):/.test(end) ? [end] : []
  })
  return new Set(ends)
}

/** Ends processes that have left the group of a program and still hold its output. Linux alone tells which these are. */
export function endHolders(ends: ReadonlySet<string>): void {
  for (const name of namesIn('/proc')) {
    const processId = Number(name)
    if (!Number.isInteger(processId) || processId === process.pid) continue
    const isHolder = namesIn(`/proc/${name}/fd`).some((fd) => ends.has(linkAt(`/proc/${name}/fd/${fd}`)))
    if (isHolder) endProcess(processId)
  }
}

function endProcess(processId: number): void {
  try {
    process.kill(processId, 'SIGKILL')
  } catch {
    // It has ended, or belongs to another user.
  }
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}

/** Returns where a link leads; an empty text if the link cannot be read. */
function linkAt(path: string): string {
  try {
    return readlinkSync(path)
  } catch {
    return ''
  }
}
