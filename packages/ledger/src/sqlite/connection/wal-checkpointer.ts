import { realpathSync, statSync } from 'node:fs'
import type { Clock } from '@tallystick/core'
import type { Database } from 'better-sqlite3'

/** What the log may grow to, unless another size is given. */
export const maxWalBytesUnlessGiven: number = 64 * 1024 * 1024

/**
 * After this time without writes the log is copied into the database. It is longer than most replies of a model, which a run
 * waits for without writing: to copy the log costs as much as a turn's commits.
 */
const restMs = 60_000

/**
 * A log that was copied stays as long as this, to be written over from its start: where a file has to grow, each sync also
 * records its new size. SQLite begins a log anew at half of that, as long as no reader prevents it.
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

/** The options of a checkpointer. */
export interface WalCheckpointerOptions {
  /** The path of the database. */
  readonly path: string
  readonly maxBytes: number
  readonly clock: Pick<Clock, 'now' | 'schedule'>
}

/** What is known of a commit, and of the log after it. */
export interface Committed {
  readonly logBytes?: number | undefined
  readonly written?: number | undefined
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
  /** What may have been written since the size of the log was last known. */
  #unseenBytes = 0
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

  /**
   * Called after each commit. `logBytes` is the size of the log, if it is known; `written` is what the commit added to it at
   * most. The size is looked up only when a sixteenth of its limit may have been written: each look at a file
   * that is being written makes its next sync wait longer, as measured on ext4 with Linux 6.18.
   */
  committed({ logBytes, written = Infinity }: Committed = {}): void {
    this.#writtenAt = this.#clock.now()
    this.#cancel ??= this.#clock.schedule(this.#restMs, () => this.#whenIdle())
    this.#unseenBytes += written
    if (logBytes === undefined && this.#unseenBytes < this.#maxBytes / 16) return
    this.#unseenBytes = 0
    const bytes = logBytes ?? this.#bytes()
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

  /** Has the next commit begin the log anew; returns false if a reader prevented it. */
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

  /** Copies the log into the database, and has it begun anew; returns false if a reader prevented it. */
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
