import type { Clock, ModelSignal } from '@tallystick/core'
import type { Subscriber } from 'rxjs'
import { type SilenceWatch, watchSilence } from './silence-watch.ts'

/** How long the rest of a finished answer may take to come, so that its connection can be used again. */
export const drainMs = 1000
/** The longest wait for an answer to begin, in milliseconds, where nobody says another: 5 minutes. */
export const responseTimeoutDefaultMs = 300_000
/** The longest silence while a reply streams, in milliseconds, where nobody says another: 2 minutes. */
export const idleTimeoutDefaultMs = 120_000

/** The connection of a call that is under way. */
export interface Line {
  readonly abort: AbortController
  readonly watch: SilenceWatch
  /** `finished`: the answer is whole, so that its connection is left to end by itself. */
  readonly outcome: { finished: boolean }
}

/** What a line is opened with. */
export interface LineOptions {
  readonly clock: Clock
  readonly subscriber: Subscriber<ModelSignal>
  /** The longest wait for an answer to begin, in milliseconds. */
  readonly responseTimeoutMs?: number | undefined
  /** The failure of an answer that was waited for so long, in milliseconds. */
  readonly silentReply: (limitMs: number) => Error
}

/**
 * Has `pump` carry what a wire says to the subscriber, and answers how to stop it: the connection is closed when that
 * returns. `pump` must not reject.
 */
export function openLine(
  { clock, subscriber, responseTimeoutMs = responseTimeoutDefaultMs, silentReply }: LineOptions,
  pump: (line: Line) => Promise<void>,
): () => void {
  const abort = new AbortController()
  const watch = watchSilence(clock, responseTimeoutMs, (limitMs) => subscriber.error(silentReply(limitMs)))
  const outcome = { finished: false }
  void pump({ abort, watch, outcome })
  return () => {
    watch.stop()
    if (!outcome.finished) abort.abort()
  }
}

/** A timer cannot wait longer. */
export const longestTimerMs: number = 2 ** 31 - 1
