import { close, fdatasync, open, realpathSync } from 'node:fs'
import type { Clock } from '@tallystick/core'
import type { AppendOptions } from '@tallystick/core/vocabulary'

/** How long a lazy commit may wait for a barrier, in milliseconds, before the log is synced without one. */
const maxUnsyncedMs = 200

/** The options of a log sync. */
export interface LogSyncOptions {
  /** The path of the database. */
  readonly path: string
  readonly clock: Pick<Clock, 'now' | 'schedule'>
  /** Whether there are lazy commits that no barrier has hardened. */
  readonly hasUnsynced: () => boolean
  /** Makes the disk hold what was written to a file; rejects where it cannot. */
  readonly sync?: (path: string) => Promise<void>
}

/**
 * Bounds how long lazy commits stay unsynced while no barrier follows, as while a tool runs that needs none: they may hold a
 * reply that was paid for. Syncs the log beside the work of the process, through a descriptor of its own. To close that
 * drops no lock, since SQLite holds its locks on the database and on `-shm`, never on the log.
 *
 * Nothing waits for it, and nothing is acknowledged by it: where it fails, the next barrier meets the same disk and says so.
 */
export class LogSync {
  readonly #path: string
  readonly #clock: LogSyncOptions['clock']
  readonly #hasUnsynced: () => boolean
  readonly #sync: (path: string) => Promise<void>
  /** When the first lazy commit was made that no sync has begun for. */
  #unsyncedSince: number | undefined
  /** One timer for many commits: those of a busy run are mostly hardened by barriers. */
  #cancel: (() => void) | undefined
  #underWay: Promise<void> | undefined
  #isClosed = false

  constructor({ path, clock, hasUnsynced, sync = syncFile }: LogSyncOptions) {
    this.#path = `${realpathSync(path)}-wal`
    this.#clock = clock
    this.#hasUnsynced = hasUnsynced
    this.#sync = sync
  }

  /** Called after each commit. */
  committed(durability: AppendOptions['durability']): void {
    if (durability === 'lazy') {
      this.#unsyncedSince ??= this.#clock.now()
      this.#cancel ??= this.#clock.schedule(maxUnsyncedMs, () => this.#whenDue())
    } else if (!this.#hasUnsynced()) this.#unsyncedSince = undefined
  }

  /** Called before the connection is closed; resolves once no file is open. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#cancel?.()
    await this.#underWay
  }

  #whenDue(): void {
    this.#cancel = undefined
    if (this.#unsyncedSince === undefined || this.#isClosed) return
    const left = this.#unsyncedSince + maxUnsyncedMs - this.#clock.now()
    if (left > 0 || this.#underWay) {
      this.#cancel = this.#clock.schedule(left > 0 ? left : maxUnsyncedMs, () => this.#whenDue())
      return
    }
    this.#unsyncedSince = undefined
    this.#underWay = this.#sync(this.#path)
      .catch(() => undefined)
      .finally(() => (this.#underWay = undefined))
  }
}

/** Opens, syncs and closes a file, without stopping the event loop. */
function syncFile(path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    open(path, 'r+', (unopened, file) => {
      if (unopened) return reject(unopened)
      fdatasync(file, (unsynced) => {
        close(file, (unclosed) => {
          const error = unsynced ?? unclosed
          if (error) reject(error)
          else resolve()
        })
      })
    })
  })
}
