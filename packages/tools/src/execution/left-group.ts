import { readdirSync, readFileSync, readlinkSync } from 'node:fs'

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
  endProcesses((name) => namesIn(`/proc/${name}/fd`).some((fd) => ends.has(linkAt(`/proc/${name}/fd/${fd}`))))
}

/** The variable of its environment by which a process is known that has left the group of the one that started it. */
export const markVariable = 'TALLYSTICK_STARTED_BY'

/** How often processes with a mark are sought: one may start another while it is being ended. */
const maxSearches = 10

/** Ends processes that were started with a mark in their environment, whatever group they are in; on Linux alone. */
export function endMarked(mark: string): void {
  const variable = `${markVariable}=${mark}\0`
  for (let search = 0; search < maxSearches; search++) {
    if (endProcesses((name) => environmentOf(name).includes(variable)) === 0) return
  }
}

/** Ends the processes whose folder in `/proc` is one of these, and returns how many it ended. */
function endProcesses(isMeant: (name: string) => boolean): number {
  let ended = 0
  for (const name of namesIn('/proc')) {
    const processId = Number(name)
    if (!Number.isInteger(processId) || processId === process.pid || !isMeant(name)) continue
    try {
      process.kill(processId, 'SIGKILL')
      ended++
    } catch {
      // It has ended, or belongs to another user.
    }
  }
  return ended
}

/** An empty text for a process that has ended, or that belongs to another user. */
function environmentOf(name: string): string {
  try {
    return readFileSync(`/proc/${name}/environ`, 'latin1')
  } catch {
    return ''
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
