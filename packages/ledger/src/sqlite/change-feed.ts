import type { Database } from 'better-sqlite3'
import type { RunId } from '@tallystick/core'
import { filter, finalize, map, Observable, Subject } from 'rxjs'

/**
 * Hints that a run, or any, may have changed: at once for writes of this ledger, by polling for writes of other
 * connections. It polls only while it has subscribers, and never keeps a process alive.
 */
export class ChangeFeed {
  /** The run that changed; `undefined` if it is unknown. */
  readonly #changed$ = new Subject<RunId | undefined>()
  readonly #database: Database
  readonly #pollIntervalMs: number
  #listeners = 0
  #timer: NodeJS.Timeout | undefined
  #seenVersion: number | undefined

  constructor(database: Database, pollIntervalMs: number) {
    this.#database = database
    this.#pollIntervalMs = pollIntervalMs
  }

  notify(runId: RunId): void {
    this.#changed$.next(runId)
  }

  /** Hints about a run; about any where none is named. */
  of(runId?: RunId): Observable<void> {
    return new Observable((subscriber) => {
      this.#arrive()
      return this.#changed$
        .pipe(
          filter((changed) => runId === undefined || changed === undefined || changed === runId),
          map(() => undefined),
          finalize(() => this.#leave()),
        )
        .subscribe(subscriber)
    })
  }

  close(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
    this.#changed$.complete()
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
    this.#changed$.next(undefined)
  }

  /**
   * Changes whenever another connection has committed. A failed read counts as a change too: the reader that follows
   * the hint gets the error.
   */
  #version(): number | undefined {
    try {
      return this.#database.pragma('data_version', { simple: true }) as number
    } catch {
      return undefined
    }
  }
}
