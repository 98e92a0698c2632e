import { realpathSync, statSync, type Stats } from 'node:fs'
import { open } from 'node:fs/promises'
import { LedgerUnavailableError, type Clock } from '@tallystick/core'
import type { AppendOptions } from '@tallystick/core/vocabulary'
import type { Database } from 'better-sqlite3'

/** How long a lazy commit may wait for a barrier, in milliseconds, before the log is synced without one. */
const maxUnsyncedMs = 200

export interface LogSyncOptions {
  /** The path of the database. */
  readonly path: string
  readonly clock: Pick<Clock, 'now' | 'schedule'>
  /** There are lazy commits that no barrier has hardened. */
  readonly hasUnsynced: () => boolean
  /** Makes the disk hold what was written to a file; rejects if it cannot. */
  readonly sync?: (path: string) => Promise<void>
}

/**
 * Bounds how long lazy commits stay unsynced while no barrier follows, as during a tool that needs none: they may hold a
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

async function syncFile(path: string): Promise<void> {
  const file = await open(path, 'r+')
  try {
    await file.datasync()
  } finally {
    await file.close()
  }
}

/** The size that the log may grow to by default. */
export const maxWalBytesUnlessGiven: number = 64 * 1024 * 1024

/**
 * After this time without writes the log is copied into the database. It is longer than most replies of a model, which a run
 * waits for without writing: to copy the log costs as much as a turn's commits.
 */
const restMs = 60_000

/**
 * A log that was copied stays as long as this, to be written over from its start: where a file has to grow, each sync also
 * records its new size. SQLite begins a log again at half of that, as long as no reader prevents it.
 */
const keptBytes = 8 * 1024 * 1024

/** The same where the log still holds what was taken away. */
const restAfterRemovalMs = 1_000

/** How long a log that is too long may keep writers waiting for those who read it. */
const patienceMs = 100

/** Time of this process. Waiting for a moment of rest keeps no process alive. */
export const processTime: Pick<Clock, 'now' | 'schedule'> = {
  now: () => performance.now(),
  schedule(delayMs, callback) {
    const timer = setTimeout(callback, delayMs).unref()
    return () => clearTimeout(timer)
  },
}

export interface WalCheckpointerOptions {
  /** The path of the database. */
  readonly path: string
  readonly maxBytes: number
  readonly clock: Pick<Clock, 'now' | 'schedule'>
}

/**
 * Keeps the write-ahead log short. SQLite restarts it only if no connection reads it at the moment when all of it has
 * been copied into the database, which may never happen. So the checkpointer has that done after a minute without
 * writes. It truncates the log when it has grown too long, and a second after content was taken away. A long read prevents
 * both and delays appends by a tenth of a second at most, and again only when the log has grown by a quarter of
 * its limit. In between it is tried without waiting.
 *
 * The log keeps its content until it is in the database and synced, so an error here loses nothing and fails no call:
 * the next attempt follows.
 */
export class WalCheckpointer {
  readonly #database: Database
  readonly #path: string
  readonly #maxBytes: number
  readonly #clock: WalCheckpointerOptions['clock']
  /** The sizes at which the next attempt is made, and the next one that waits. */
  #bytesAllowed: number
  #bytesEndured: number
  #writtenAt = -Infinity
  #restMs = restMs
  #cancel: (() => void) | undefined

  constructor(database: Database, { path, maxBytes, clock }: WalCheckpointerOptions) {
    this.#database = database
    this.#path = `${realpathSync(path)}-wal`
    this.#maxBytes = maxBytes
    this.#bytesAllowed = maxBytes
    this.#bytesEndured = maxBytes
    this.#clock = clock
  }

  /** Called after each commit. */
  committed(): void {
    this.#writtenAt = this.#clock.now()
    this.#cancel ??= this.#clock.schedule(this.#restMs, () => this.#whenIdle())
    const bytes = this.#bytes()
    if (bytes <= this.#bytesAllowed) return
    const waits = bytes > this.#bytesEndured
    if (this.#checkpoint('truncate', waits ? patienceMs : 0)) return this.#begunAnew()
    this.#bytesAllowed = bytes + this.#maxBytes / 16
    if (waits) this.#bytesEndured = bytes + this.#maxBytes / 4
  }

  /** Called in a transaction that takes content away: copies of it stay in the log until it is truncated. */
  tookAway(): void {
    this.#restMs = restAfterRemovalMs
    this.#cancel?.()
    this.#cancel = this.#clock.schedule(this.#restMs, () => this.#whenIdle())
  }

  /** Called before the connection is closed. */
  close(): void {
    this.#cancel?.()
  }

  #whenIdle(): void {
    this.#cancel = undefined
    const left = this.#writtenAt + this.#restMs - this.#clock.now()
    if (left <= 0 && this.#isCopied()) return this.#begunAnew()
    this.#cancel = this.#clock.schedule(left > 0 ? left : this.#restMs, () => this.#whenIdle())
  }

  /** Makes the next commit start the log over; returns false if a reader prevented it. */
  #isCopied(): boolean {
    const bytes = this.#bytes()
    const isCut = this.#restMs === restAfterRemovalMs || bytes > Math.min(keptBytes, this.#maxBytes)
    return bytes === 0 || this.#checkpoint(isCut ? 'truncate' : 'restart', 0)
  }

  #begunAnew(): void {
    this.#restMs = restMs
    this.#bytesAllowed = this.#maxBytes
    this.#bytesEndured = this.#maxBytes
  }

  /** Copies the log into the database, and has it begun again; returns false if a reader prevented it. */
  #checkpoint(mode: 'truncate' | 'restart', waitMs: number): boolean {
    if (this.#database.inTransaction) return false
    const timeout = this.#database.pragma('busy_timeout', { simple: true }) as number
    try {
      this.#database.pragma(`busy_timeout = ${waitMs}`)
      const [done] = this.#database.pragma(`wal_checkpoint(${mode})`) as readonly { busy: number }[]
      return done?.busy === 0
    } catch {
      return false
    } finally {
      this.#database.pragma(`busy_timeout = ${timeout}`)
    }
  }

  #bytes(): number {
    return statSync(this.#path, { throwIfNoEntry: false })?.size ?? 0
  }
}

/**
 * The files of a ledger, as they were when it was opened. SQLite continues with files that are no longer at their
 * paths, and what it writes there goes with the process.
 */
export class OpenFiles {
  readonly #database: Database
  readonly #path: string
  readonly #file: Stats | undefined
  #log: Stats | undefined

  constructor(database: Database, path: string) {
    this.#database = database
    this.#path = realpathSync(path)
    this.#file = findStats(this.#path)
    this.#log = findStats(`${this.#path}-wal`)
  }

  /**
   * Called before a transaction that has to be durable, and after it before it is acknowledged. Throws
   * `LedgerUnavailableError` where the file or its log was removed, moved or replaced since it was opened.
   */
  requireSame(): void {
    if (!isSameFile(findStats(this.#path), this.#file)) throw this.#gone(this.#path)
    const log = findStats(`${this.#path}-wal`)
    this.#log ??= log
    if (isSameFile(log, this.#log)) return
    if (log === undefined) this.#rescue()
    throw this.#gone(`${this.#path}-wal`)
  }

  /** `false` if the log at its path belongs to another ledger, created there after the file was moved. */
  get hasOwnLog(): boolean {
    const log = findStats(`${this.#path}-wal`)
    return log === undefined || isSameFile(log, this.#log ?? this.#logIfInPlace(log))
  }

  #logIfInPlace(log: Stats): Stats | undefined {
    return isSameFile(findStats(this.#path), this.#file) ? log : undefined
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
        'export it if the file no longer exists, then close the ledger and open it again.',
    )
  }
}

function findStats(path: string): Stats | undefined {
  return statSync(path, { throwIfNoEntry: false })
}

/** The same file: as long as we have it open, no other one gets its number. */
function isSameFile(left: Stats | undefined, right: Stats | undefined): boolean {
  return left?.ino === right?.ino && left?.dev === right?.dev
}
