import type { Database, Statement } from 'better-sqlite3'
import type { RunId } from '@tallystick/core'
import { ChangeHints } from '@tallystick/core/store-kit'
import { finalize, Observable } from 'rxjs'

/**
 * Hints that a run, or any, may have changed: at once for writes of this ledger, by polling for writes of other
 * connections. It polls only while it has subscribers, and never keeps a process alive.
 */
export class ChangeFeed {
  readonly #hints = new ChangeHints()
  readonly #database: Database
  #dataVersion: Statement<[], number> | undefined
  readonly #pollIntervalMs: number
  #listeners = 0
  #timer: NodeJS.Timeout | undefined
  #seenVersion: number | undefined

  constructor(database: Database, pollIntervalMs: number) {
    this.#database = database
    this.#pollIntervalMs = pollIntervalMs
  }

  /**
   * Call it after this ledger wrote to a run; `isInbox`: its inbox may have changed. A writer is hinted at what others have
   * put into its inbox without a wait for the next poll.
   */
  notify(runId: RunId, isInbox: boolean = true): void {
    this.#hints.notify(runId, isInbox)
    if (this.#listeners > 0) this.#poll()
  }

  /** Hints about a run, or about any run; with `inbox`, only those that may concern an inbox. */
  of(runId?: RunId, part?: 'inbox'): Observable<void> {
    return new Observable((subscriber) => {
      this.#arrive()
      return this.#hints
        .of(runId, part)
        .pipe(finalize(() => this.#leave()))
        .subscribe(subscriber)
    })
  }

  close(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
    this.#hints.close()
  }

  #arrive(): void {
    this.#listeners++
    if (this.#listeners > 1 || !this.#database.open) return
    this.#seenVersion = this.#version()
    this.#timer = setInterval(() => this.#poll(), this.#pollIntervalMs).unref()
  }

  #leave(): void {
    this.#listeners--
    if (this.#listeners > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  #poll(): void {
    const version = this.#version()
    if (version === this.#seenVersion) return
    this.#seenVersion = version
    this.#hints.notifyAll()
  }

  /**
   * Changes whenever another connection has committed. A failed read counts as a change too: the reader that follows
   * the hint gets the error.
   */
  #version(): number | undefined {
    try {
      this.#dataVersion ??= this.#database.prepare<[], number>('pragma data_version').pluck()
      return this.#dataVersion.get()
    } catch {
      return undefined
    }
  }
}
