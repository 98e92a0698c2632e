import type { ResponseFacts } from './observed-response.ts'
import type { SilenceWatch } from './silence-watch.ts'
import { StreamTail } from './stream-tail.ts'

/** A timer cannot wait longer. */
export const longestTimerMs: number = 2 ** 31 - 1
/** How long the rest of a finished answer may take to come, so that its connection can be used again. */
export const drainMs = 1000
/** The connection of one attempt, and what is known of its answer. */
export interface Connection {
  /** Aborting closes the connection. */
  readonly abort: AbortController
  readonly watch: SilenceWatch
  /** What the answer says besides its body. */
  readonly facts: ResponseFacts
  /** The end of the body, where the wire shows its bytes to it. */
  readonly tail: StreamTail
  /** Whether the wire reports bytes to `watch`; otherwise each event counts as a sign of life. */
  observed: boolean
}

/** A connection that nothing is known of yet. */
export function newConnection(watch: SilenceWatch): Connection {
  return { abort: new AbortController(), watch, facts: {}, tail: new StreamTail(), observed: false }
}
