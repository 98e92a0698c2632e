import { realpathSync, statSync } from 'node:fs'
import type { Clock } from '@tallystick/core'
import type { Database } from 'better-sqlite3'

/** What the log may grow to, unless another size is given. */
export const walBytesMaxUnlessGiven: number = 64 * 1024 * 1024

/** Nothing was written for this long: then nobody is kept waiting by cutting the log. */
const idleMs = 1_000

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

/** What the keeper of a log is told. */
export interface WalCheckpointerOptions {
  /** The path of the database. */
  readonly path: string
  readonly bytesMax: number
  readonly clock: Pick<Clock, 'now' | 'schedule'>
}

/**
 * Keeps the write-ahead log short. SQLite begins it anew only when nobody reads it at the moment that all of it has
 * been copied into the database, which need never come: so it is cut off when nothing was written for a moment, and when
 * it has grown too long. Whoever reads for long keeps it from being cut, and appends from nothing: they wait a tenth of a
 * second at most, and again only when the log has grown by a quarter of its bound. In between it is tried without
 * waiting.
 *
 * What is in the log stays there until it is in the database and synced, so an error here loses nothing, and fails
 * nobody: the next attempt follows.
 */
export class WalCheckpointer {
  readonly #database: Database
  readonly #path: string
  readonly #bytesMax: number
  readonly #clock: WalCheckpointerOptions['clock']
  /** The sizes at which the next attempt is made, and the next one that waits. */
  #bytesAllowed: number
  #bytesEndured: number
  #writtenAt = 0
  #cancel: (() => void) | undefined

  constructor(database: Database, { path, bytesMax, clock }: WalCheckpointerOptions) {
    this.#database = database
    this.#path = `${realpathSync(path)}-wal`
    this.#bytesMax = bytesMax
    this.#bytesAllowed = bytesMax
    this.#bytesEndured = bytesMax
    this.#clock = clock
  }

  /** Called behind each commit. */
  committed(): void {
    this.#writtenAt = this.#clock.now()
    this.#cancel ??= this.#clock.schedule(idleMs, () => this.#whenIdle())
    const bytes = this.#bytes()
    if (bytes <= this.#bytesAllowed) return
    const waits = bytes > this.#bytesEndured
    if (this.#cut(waits ? patienceMs : 0)) return this.#begunAnew()
    this.#bytesAllowed = bytes + this.#bytesMax / 16
    if (waits) this.#bytesEndured = bytes + this.#bytesMax / 4
  }

  close(): void {
    this.#cancel?.()
    this.#cancel = undefined
  }

  #whenIdle(): void {
    this.#cancel = undefined
    const left = this.#writtenAt + idleMs - this.#clock.now()
    if (left <= 0 && (this.#bytes() === 0 || this.#cut(0))) return this.#begunAnew()
    this.#cancel = this.#clock.schedule(left > 0 ? left : idleMs, () => this.#whenIdle())
  }

  #begunAnew(): void {
    this.#bytesAllowed = this.#bytesMax
    this.#bytesEndured = this.#bytesMax
  }

  /** Copies the log into the database and cuts it to nothing; answers whether nobody kept it from that. */
  #cut(waitMs: number): boolean {
    if (!this.#database.open || this.#database.inTransaction) return false
    const timeout = this.#database.pragma('busy_timeout', { simple: true }) as number
    try {
      this.#database.pragma(`busy_timeout = ${waitMs}`)
      const [done] = this.#database.pragma('wal_checkpoint(truncate)') as readonly { busy: number }[]
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
