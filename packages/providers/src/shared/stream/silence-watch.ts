import type { Clock } from '@tallystick/core'
import type { Cancel } from '@tallystick/core/vocabulary'

/** How long a call may take, in the options of each adapter. */
export interface Timeouts {
  /**
   * The longest wait for the beginning of an answer, in milliseconds, the loading of a model included. Default: 5 minutes,
   * after which Node's own fetch gives up, too.
   */
  readonly responseTimeoutMs?: number | undefined
  /** The longest silence while a reply streams, in milliseconds, which keep-alives interrupt. Default: 2 minutes. */
  readonly idleTimeoutMs?: number | undefined
  /**
   * The longest time in which nothing of the reply comes, in milliseconds, whatever keep-alives do. Default: 10 minutes; more
   * for a model that thinks longer without a word.
   */
  readonly contentTimeoutMs?: number | undefined
  /** The longest time for the whole reply, in milliseconds. Default: 1 hour. */
  readonly totalTimeoutMs?: number | undefined
}

/** What went on for too long: no byte came, nothing of the reply came, or the reply had no end. */
export type Overlong = 'silent' | 'empty' | 'endless'

/**
 * Notices a call that takes too long, and calls `onOver` once. One timer at a time, which is set again only when it goes off:
 * a sign of life costs a look at the clock.
 */
export class SilenceWatch {
  readonly #clock: Clock
  readonly #limits: { readonly [name in keyof Timeouts]-?: number }
  readonly #onOver: (what: Overlong, limitMs: number) => void
  readonly #startedAt: number
  #lastSignAt: number
  #lastContentAt: number
  #hasBegun = false
  #cancel: Cancel | undefined

  constructor(clock: Clock, timeouts: Timeouts, onOver: (what: Overlong, limitMs: number) => void) {
    this.#clock = clock
    this.#limits = {
      responseTimeoutMs: timeouts.responseTimeoutMs ?? 300_000,
      idleTimeoutMs: timeouts.idleTimeoutMs ?? 120_000,
      contentTimeoutMs: timeouts.contentTimeoutMs ?? 600_000,
      totalTimeoutMs: timeouts.totalTimeoutMs ?? 3_600_000,
    }
    this.#onOver = onOver
    this.#startedAt = this.#lastSignAt = this.#lastContentAt = clock.now()
    this.#set()
  }

  /** A request is sent: it may wait for its answer. */
  sent(): void {
    this.#from(false)
  }

  /** The answer begins: from now on it may pause only. */
  begun(): void {
    this.#from(true)
  }

  /** Something came. */
  signOfLife(): void {
    this.#lastSignAt = this.#clock.now()
  }

  /** Something of the reply came. */
  content(): void {
    this.#lastContentAt = this.#clock.now()
  }

  /** It notices nothing any more. */
  stop(): void {
    this.#cancel?.()
    this.#cancel = undefined
  }

  #from(hasBegun: boolean): void {
    if (this.#cancel === undefined) return
    this.stop()
    this.#hasBegun = hasBegun
    this.#lastSignAt = this.#lastContentAt = this.#clock.now()
    this.#set()
  }

  #set(): void {
    const { at } = this.#next()
    this.#cancel = this.#clock.schedule(at - this.#clock.now(), () => {
      const { at: over, what, limitMs } = this.#next()
      if (over > this.#clock.now()) return this.#set()
      this.#cancel = undefined
      this.#onOver(what, limitMs)
    })
  }

  /** What will have gone on for too long first, and when. */
  #next(): { readonly at: number; readonly what: Overlong; readonly limitMs: number } {
    const { responseTimeoutMs, idleTimeoutMs, contentTimeoutMs, totalTimeoutMs } = this.#limits
    const silentMs = this.#hasBegun ? idleTimeoutMs : responseTimeoutMs
    const all = [
      { at: this.#lastSignAt + silentMs, what: 'silent', limitMs: silentMs },
      { at: this.#startedAt + totalTimeoutMs, what: 'endless', limitMs: totalTimeoutMs },
      { at: this.#lastContentAt + contentTimeoutMs, what: 'empty', limitMs: contentTimeoutMs },
    ] as const
    return all.slice(0, this.#hasBegun ? 3 : 2).reduce((first, one) => (one.at < first.at ? one : first))
  }
}
