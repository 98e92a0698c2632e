import type { Observable, Unsubscribable } from 'rxjs'
import type { Clock } from './clock.ts'
import type { Ledger, TailCursor, TailedEvent } from './ledger.ts'
import { LedgerUnavailableError } from '../vocabulary/errors.ts'
import type { RuntimeEvent } from '../vocabulary/events/event.ts'
import type { RunId } from '../vocabulary/values/ids.ts'
import { Wakeup } from './wakeup.ts'

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
export function changesOf(
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
export function changesOfEveryRun(ledger: Ledger, after?: TailCursor): Changes<TailedEvent> {
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
 * What a ledger records, as one reader takes it. The reader asks for each item, so that a slow one holds nothing in
 * memory; hints that come meanwhile are merged into one look. `return` ends it at any time, also while it waits.
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

  /** Whether a hint came since the last look began: the next look comes without a wait. */
  get isWoken(): boolean {
    return this.#wakeup.isWoken
  }

  /** Whether the ledger was closed: nothing follows any more. */
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
    // Before the first look: a hint about what is recorded from here on leads to another look.
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
        if (wasClosed && !this.#poll) throw hintsEnded()
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
export function hintsEnded(): LedgerUnavailableError {
  return new LedgerUnavailableError(
    'The ledger ended its hints at changes, as it does when it is closed, so what is recorded from here on would be missed. Open it again, and continue after the last event that you have.',
  )
}
