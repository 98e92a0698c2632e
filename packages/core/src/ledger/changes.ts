import { Observable, type Subscriber, type Unsubscribable } from 'rxjs'
import type { Clock } from '../values/host.ts'
import type { Ledger, TailCursor, TailedEvent } from './ledger.ts'
import { LedgerUnavailableError } from '../values/errors.ts'
import type { RuntimeEvent } from '../events/event.ts'
import type { RunId } from '../values/ids.ts'

/** Wakes one waiter. Wake-ups before the wait are merged into one, and end the wait at once: none is lost. */
export class Wakeup {
  #isWoken = false
  #resolve: (() => void) | undefined

  /** True if a wake-up came since the last wait or `clear`. */
  get isWoken(): boolean {
    return this.#isWoken
  }

  wake(): void {
    this.#isWoken = true
    this.#resolve?.()
  }

  /** Forgets the wake-ups so far: the waiter looks now, and so sees what they were about. */
  clear(): void {
    this.#isWoken = false
  }

  /** Resolves at the next wake-up, and clears it. */
  async wait(): Promise<void> {
    if (!this.#isWoken) {
      await new Promise<void>((resolve) => {
        this.#resolve = resolve
      })
      this.#resolve = undefined
    }
    this.#isWoken = false
  }
}

/** Yielded after each look at the ledger: the reader has everything that was there, and waits next. */
export const caughtUp: unique symbol = Symbol('caught up')

/** Looks at the ledger without a hint, too, for a reader that must not depend on hints. */
export interface Poll {
  readonly clock: Clock
  /** How long to wait for a hint, in milliseconds; called before each wait. */
  readonly delayMs: () => number
}

/** Where the changes of a run begin, and whether a timer looks for them. */
export interface ChangeOptions {
  /** The event after which they begin; 0 for all. */
  readonly after: number
  readonly poll?: Poll
}

/**
 * The events of a run after one of them, as any process records them: no gap, no repeat. Yields the events that are
 * there, then `caughtUp`, then waits until the ledger hints at a change or the poll's time is over, and looks again. A
 * hint need not be about an event: `caughtUp` may follow `caughtUp`, when a command was put into the inbox, say.
 *
 * Once the ledger is closed it rejects with the `LedgerUnavailableError` that every read gives then, so that a reader does
 * not take that for the end of the run. With a poll it rejects only with the errors of a read; without one, with an error
 * of the hints, too.
 */
export function followChanges(
  ledger: Pick<Ledger, 'read' | 'changes'>,
  runId: RunId,
  { after, poll }: ChangeOptions,
): Changes<RuntimeEvent> {
  let seq = after
  const read = async function* (): AsyncGenerator<RuntimeEvent> {
    for await (const event of ledger.read(runId, { fromSeq: seq + 1 })) {
      seq = event.seq
      yield event
    }
  }
  return new Changes(() => ledger.changes(runId), read, poll)
}

/** The same of every run, after a cursor or from the first event on, in the order of `Ledger.tail`. */
export function followAllChanges(ledger: Ledger, after?: TailCursor): Changes<TailedEvent> {
  let cursor = after
  const read = async function* (): AsyncGenerator<TailedEvent> {
    for await (const tailed of ledger.tail(cursor)) {
      cursor = tailed.cursor
      yield tailed
    }
  }
  return new Changes(() => ledger.changes(), read)
}

/**
 * The events of a ledger, as one reader takes them. The reader asks for each item, so that a slow one holds nothing in
 * memory; hints that come in between are merged into one look. `return` ends it at any time, also while it waits.
 */
export class Changes<Item> implements AsyncIterableIterator<Item | typeof caughtUp, void> {
  readonly #hints: () => Observable<void>
  readonly #read: () => AsyncIterable<Item>
  readonly #poll: Poll | undefined
  readonly #wakeup = new Wakeup()
  readonly #items: AsyncGenerator<Item | typeof caughtUp, void>
  #subscription: Unsubscribable | undefined
  #hintFailure: { readonly error: unknown } | undefined
  #isClosed = false
  #isEnded = false

  constructor(hints: () => Observable<void>, read: () => AsyncIterable<Item>, poll?: Poll) {
    this.#hints = hints
    this.#read = read
    this.#poll = poll
    this.#items = this.#follow()
  }

  /** True if a hint came since the last look began: the next look comes without a wait. */
  get isWoken(): boolean {
    return this.#wakeup.isWoken
  }

  /** True once the ledger was closed: nothing follows any more. */
  get isCutOff(): boolean {
    return this.#isClosed
  }

  /** Looks again without a hint. */
  wake(): void {
    this.#wakeup.wake()
  }

  next(): Promise<IteratorResult<Item | typeof caughtUp, void>> {
    return this.#items.next()
  }

  async return(): Promise<IteratorResult<Item | typeof caughtUp, void>> {
    this.#isEnded = true
    this.#subscription?.unsubscribe()
    this.#wakeup.wake()
    return await this.#items.return()
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  async *#follow(): AsyncGenerator<Item | typeof caughtUp, void> {
    // Before the first read: a hint about later events leads to another read.
    this.#subscription = this.#hints().subscribe({
      next: () => this.#wakeup.wake(),
      error: (error: unknown) => {
        this.#hintFailure = { error }
        this.#wakeup.wake()
      },
      complete: () => {
        this.#isClosed = true
        this.#wakeup.wake()
      },
    })
    try {
      while (!this.#isEnded) {
        const wasClosed = this.#isClosed
        this.#wakeup.clear()
        for await (const item of this.#read()) {
          if (this.#isEnded) return
          yield item
        }
        // A ledger that is closed refuses the look, in its own words.
        if (wasClosed && !this.#poll) throw createHintsEndedError()
        yield caughtUp
        await this.#untilNextLook()
      }
    } finally {
      this.#subscription.unsubscribe()
    }
  }

  /** Waits for a hint or for the poll. */
  async #untilNextLook(): Promise<void> {
    if (this.#poll) {
      const stopTimer = this.#poll.clock.schedule(this.#poll.delayMs(), () => this.#wakeup.wake())
      return await this.#wakeup.wait().finally(stopTimer)
    }
    if (!this.#hintFailure && !this.#isClosed) await this.#wakeup.wait()
    if (this.#hintFailure) throw this.#hintFailure.error
  }
}

/** The error of following a ledger that hints at nothing any more, and yet does not say that it is closed. */
export function createHintsEndedError(): LedgerUnavailableError {
  return new LedgerUnavailableError(
    'The ledger ended its hints at changes, as it does when it is closed, so what is recorded from here on would be missed. Open it again, and continue after the last event that you have.',
  )
}

/**
 * Hints of a ledger to those who follow its runs. A hint about a run costs the same however many other runs are followed.
 */
export class ChangeHints {
  /** By the run that they follow; `undefined` for those that follow any. */
  readonly #followers = new Map<RunId | undefined, Set<Follower>>()
  #isClosed = false

  /** Hints about a run, or about any run where none is named; with `inbox`, only those about inboxes. */
  of(runId: RunId | undefined, part?: 'inbox'): Observable<void> {
    return new Observable((subscriber) => {
      if (this.#isClosed) return subscriber.complete()
      const follower = { subscriber, part }
      const followers = this.#followers.get(runId) ?? new Set()
      this.#followers.set(runId, followers.add(follower))
      return () => {
        followers.delete(follower)
        if (followers.size === 0) this.#followers.delete(runId)
      }
    })
  }

  /** The events of a run may have changed, and its inbox if `isInbox` says so. */
  notify(runId: RunId, isInbox: boolean): void {
    this.#hint(runId, isInbox)
    this.#hint(undefined, isInbox)
  }

  /** Any run may have changed. Hints at each run that is followed. */
  notifyAll(): void {
    for (const { subscriber } of this.#all()) subscriber.next()
  }

  /** A run that no caller follows by its id may have changed. */
  notifyFollowersOfAny(): void {
    this.#hint(undefined, true)
  }

  #hint(runId: RunId | undefined, isInbox: boolean): void {
    // A copy: followers may come and go while they are given a hint.
    for (const { subscriber, part } of [...(this.#followers.get(runId) ?? [])])
      if (isInbox || part === undefined) subscriber.next()
  }

  close(): void {
    this.#isClosed = true
    for (const { subscriber } of this.#all()) subscriber.complete()
  }

  #all(): readonly Follower[] {
    return [...this.#followers.values()].flatMap((followers) => [...followers])
  }
}

interface Follower {
  readonly subscriber: Subscriber<void>
  /** Set for one that follows inboxes only. */
  readonly part: 'inbox' | undefined
}

/** Uses that have to end before a ledger closes: the runs that the runtimes of this process drive. */
export class OpenUses {
  readonly #uses = new Set<{ readonly end: () => Promise<unknown> }>()

  /** Calls `end` before the ledger closes, unless the returned function was called first. */
  add(end: () => Promise<unknown>): () => void {
    const use = { end }
    this.#uses.add(use)
    return () => void this.#uses.delete(use)
  }

  /** Ends every use, then calls `close`; at once where nothing is to be ended. */
  closeAfter(close: () => Promise<void>): Promise<void> {
    return this.#uses.size === 0 ? close() : this.#end().then(close)
  }

  /** Also ends those that begin while it waits. Each is asked once: one that fails to end keeps nothing open. */
  async #end(): Promise<void> {
    const asked = new Set<unknown>()
    for (;;) {
      const uses = [...this.#uses].filter((use) => !asked.has(use))
      if (uses.length === 0) return
      for (const use of uses) asked.add(use)
      await Promise.allSettled(uses.map(({ end }) => end()))
    }
  }
}
