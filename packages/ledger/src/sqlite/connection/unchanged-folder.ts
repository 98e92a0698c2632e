import type { Stats } from 'node:fs'

/** Times of files may be as old as this: systems record them by a clock that ticks every few milliseconds. */
const tickMs = 100

/** The same on file systems that record whole seconds, or every second one. */
const coarseTickMs = 3_000

/**
 * Tells that no file of a folder was made, removed, moved or replaced since its files were looked at: each of these changes
 * the times of the folder. A look at the folder costs less than one at each file, and one at a file that is being written
 * also makes the next sync wait longer, as measured on ext4 with Linux 6.18.
 */
export class UnchangedFolder {
  readonly #stat: () => Stats | undefined
  readonly #now: () => number
  /** The folder before the last look at its files, if its times were old enough to change with whatever came after it. */
  #seen: Stats | undefined

  /** `stat` looks at the folder; `now` is the time by which its times are recorded. */
  constructor(stat: () => Stats | undefined, now: () => number) {
    this.#stat = stat
    this.#now = now
  }

  /** Returns what `look` returns, or `undefined` where nothing has changed since it returned last. If it throws, so does this. */
  unlessUnchanged<T>(look: () => T): T | undefined {
    const folder = this.#stat()
    if (folder && this.#seen && isUnchanged(folder, this.#seen)) return undefined
    this.#seen = undefined
    const found = look()
    if (folder && isSettled(folder, this.#now())) this.#seen = folder
    return found
  }
}

function isUnchanged(left: Stats, right: Stats): boolean {
  return (
    left.mtimeMs === right.mtimeMs &&
    left.ctimeMs === right.ctimeMs &&
    left.ino === right.ino &&
    left.dev === right.dev
  )
}

/** Whether a change from now on gets another time than the last one had. */
function isSettled({ mtimeMs, ctimeMs }: Stats, now: number): boolean {
  const ms = mtimeMs % 1000 === 0 ? coarseTickMs : tickMs
  return now - mtimeMs > ms && now - ctimeMs > ms
}
