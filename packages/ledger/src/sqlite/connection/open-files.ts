import { realpathSync, statSync, type Stats } from 'node:fs'
import { dirname } from 'node:path'
import { LedgerUnavailableError } from '@tallystick/core'
import type { Database } from 'better-sqlite3'
import { UnchangedFolder } from './unchanged-folder.ts'

/**
 * The files of a ledger, as they were when it was opened. SQLite continues with files that are no longer at their
 * paths, and what it writes there goes with the process.
 */
export class OpenFiles {
  readonly #database: Database
  readonly #path: string
  readonly #file: Stats | undefined
  readonly #folder: UnchangedFolder
  #log: Stats | undefined

  /** `now` is the time of this machine, in milliseconds since 1970 UTC. */
  constructor(database: Database, path: string, now: () => number = Date.now) {
    this.#database = database
    this.#path = realpathSync(path)
    this.#file = lookAt(this.#path)
    this.#log = lookAt(`${this.#path}-wal`)
    const folder = dirname(this.#path)
    this.#folder = new UnchangedFolder(() => lookAt(folder), now)
  }

  /**
   * Called before a transaction that has to be durable, and after it before it is acknowledged. Throws
   * `LedgerUnavailableError` where the file or its log was removed, moved or replaced since it was opened. Returns the bytes
   * of the log, or `undefined` where the folder tells that the files are in their places, so that none was looked at.
   */
  requireSame(): number | undefined {
    return this.#folder.unlessUnchanged(() => this.#requireSameFiles())
  }

  #requireSameFiles(): number {
    if (!isSame(lookAt(this.#path), this.#file)) throw this.#gone(this.#path)
    const log = lookAt(`${this.#path}-wal`)
    this.#log ??= log
    if (isSame(log, this.#log)) return log?.size ?? 0
    if (log === undefined) this.#rescue()
    throw this.#gone(`${this.#path}-wal`)
  }

  /** Whether the log at its path is not another ledger's, which began there after the file was moved. */
  get hasOwnLog(): boolean {
    const log = lookAt(`${this.#path}-wal`)
    return log === undefined || isSame(log, this.#log ?? this.#logIfInPlace(log))
  }

  #logIfInPlace(log: Stats): Stats | undefined {
    return isSame(lookAt(this.#path), this.#file) ? log : undefined
  }

  /** Copies acknowledged events into the file, from a log that no other process can read. */
  #rescue(): void {
    try {
      this.#database.pragma('wal_checkpoint(passive)')
    } catch {
      // It can still be read here, which the error says.
    }
  }

  #gone(path: string): LedgerUnavailableError {
    return new LedgerUnavailableError(
      `The file ${path} was removed, moved or replaced while the ledger was open. What is written now would be lost, ` +
        'so it is not acknowledged. What was acknowledged can still be read through this ledger as long as it is open: ' +
        'export it if the file is not there any more, then close the ledger and open it again.',
    )
  }
}

function lookAt(path: string): Stats | undefined {
  return statSync(path, { throwIfNoEntry: false })
}

/** Whether two looks found one file. As long as we have it open, no other one gets its number. */
function isSame(left: Stats | undefined, right: Stats | undefined): boolean {
  return left?.ino === right?.ino && left?.dev === right?.dev
}
