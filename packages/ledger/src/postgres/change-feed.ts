import { randomUUID } from 'node:crypto'
import type { RunId } from '@tallystick/core'
import { ChangeHints } from '@tallystick/core/store-kit'
import { finalize, Observable } from 'rxjs'
import { channelOf, ChangeListener } from './change-listener.ts'
import { ChangeNotifier } from './change-notifier.ts'
import type { PostgresTail } from './rows/tail.ts'
import type { PostgresLedgerOptions } from './connection/postgres-ledger-options.ts'
import { isStorable } from './connection/storable-name.ts'
import type { StoreAccess } from './store-access.ts'
import { TailPoller } from './rows/tail-poller.ts'

/**
 * Hints that a run, or any, may have changed: at once for writes of this ledger; for writes of other processes by
 * notification, and by polling, since a notification may be lost. It listens and polls only while it has subscribers,
 * and never keeps a process alive.
 */
export class ChangeFeed {
  readonly #hints = new ChangeHints()
  readonly #access: StoreAccess
  readonly #listener: ChangeListener | undefined
  readonly #notifier: ChangeNotifier
  readonly #pollIntervalMs: number
  /** How many listen to a run, and how it stood when it was last looked at. */
  readonly #followed = new Map<RunId, { listeners: number; mark: string | undefined }>()
  readonly #tailPoller: TailPoller
  #followers = 0
  #timer: NodeJS.Timeout | undefined
  #isPolling = false
  #isClosed = false

  constructor(access: StoreAccess, options: PostgresLedgerOptions) {
    const { pooled = false, pollIntervalMs = pooled ? 250 : 1_000 } = options
    const channel = channelOf(access.place.schema)
    this.#access = access
    this.#pollIntervalMs = pollIntervalMs
    const own = randomUUID()
    this.#notifier = new ChangeNotifier(own, (payload) => access.notify(channel, payload))
    const readMark = (): ReturnType<PostgresTail['mark']> => {
      void this.#listener?.listen()
      return access.read(({ tail }) => tail.mark())
    }
    this.#tailPoller = new TailPoller(readMark, pollIntervalMs, () => this.#hints.notifyFollowersOfAny())
    if (!pooled) {
      this.#listener = new ChangeListener(options, channel, ({ from, runIds }) => {
        // What this ledger wrote it has hinted at already.
        if (from === own) return
        for (const runId of runIds) this.#hints.notify(runId, true)
        if (runIds.length === 0) this.#hints.notifyAll()
      })
    }
  }

  /** To be called for what this ledger wrote; `isInbox` says whether the inbox of the run may have changed. */
  notify(runId: RunId, isInbox: boolean = true): void {
    this.#hints.notify(runId, isInbox)
    if (!this.#isClosed) this.#notifier.notify(runId)
  }

  /** Hints about every run. */
  ofAll(): Observable<void> {
    return new Observable((subscriber) => {
      this.#followers++
      if (!this.#isClosed) this.#tailPoller.begin()
      const leave = (): void => {
        if (--this.#followers > 0) return
        this.#tailPoller.stop()
        this.#stopIdle()
      }
      return this.#hints.of(undefined).pipe(finalize(leave)).subscribe(subscriber)
    })
  }

  /** To be called where a tail ended before committed events. */
  pollSoon(): void {
    this.#tailPoller.soon()
  }

  /** Hints about a run; with `inbox`, only about its inbox as far as that is known. */
  of(runId: RunId, part?: 'inbox'): Observable<void> {
    return new Observable((subscriber) => {
      this.#arrive(runId)
      return this.#hints
        .of(runId, part)
        .pipe(finalize(() => this.#leave(runId)))
        .subscribe(subscriber)
    })
  }

  /** Closes its connection, after sending its pending notifications. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#tailPoller.stop()
    this.#followed.clear()
    this.#followers = 0
    this.#stopIdle()
    this.#hints.close()
    await Promise.all([this.#notifier.flush(), this.#listener?.leave()])
  }

  #arrive(runId: RunId): void {
    const followed = this.#followed.get(runId)
    if (followed) {
      followed.listeners++
      return
    }
    this.#followed.set(runId, { listeners: 1, mark: undefined })
    if (this.#isClosed || !isStorable(runId)) return
    this.#timer ??= setInterval(() => this.#poll(), this.#pollIntervalMs).unref()
    this.#poll()
  }

  #leave(runId: RunId): void {
    const followed = this.#followed.get(runId)
    if (followed === undefined || --followed.listeners > 0) return
    this.#followed.delete(runId)
    this.#stopIdle()
  }

  /** Stops polling without subscribers. */
  #stopIdle(): void {
    if (this.#followed.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
    if (this.#followers === 0) void this.#listener?.leave()
  }

  /** If the database cannot be reached, the next poll may succeed; a reader meanwhile gets the error. */
  #poll(): void {
    void this.#listener?.listen()
    if (this.#isPolling) return
    this.#isPolling = true
    const runIds = [...this.#followed.keys()].filter(isStorable)
    this.#access
      .read((store) => store.marks(runIds))
      .then(
        (marks) => {
          this.#isPolling = false
          this.#compare(runIds, marks)
          if (this.#timer && this.#hasUnseen()) this.#poll()
        },
        () => {
          this.#isPolling = false
        },
      )
  }

  /** Whether a subscriber joined while the database was asked about the others. */
  #hasUnseen(): boolean {
    return [...this.#followed].some(([runId, { mark }]) => mark === undefined && isStorable(runId))
  }

  /** A run that is looked at for the first time may have changed since its listener came, so that is a hint too. */
  #compare(runIds: readonly RunId[], marks: ReadonlyMap<string, string>): void {
    for (const runId of runIds) {
      const followed = this.#followed.get(runId)
      const mark = marks.get(runId) ?? 'none'
      if (followed === undefined || followed.mark === mark) continue
      followed.mark = mark
      this.#hints.notify(runId, true)
    }
  }
}
