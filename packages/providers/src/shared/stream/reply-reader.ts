import type { ProviderError } from '@tallystick/core'
import type { ModelSignal } from '@tallystick/core/vocabulary'
import type { StreamEnding } from './stream-tail.ts'

/** Reads the events of one reply. */
export interface ReplyReader<Event = unknown> {
  /** Returns the signals that follow from one event. Throws a `ProviderError` for a stream that cannot be believed. */
  read(event: Event): Iterable<ModelSignal>
  /**
   * Called when the stream is over without a terminal event. Returns the last signals where the reply is whole by then,
   * else `undefined`. Before a break only a finish reason proves that; a clean end proves it for servers that are known
   * to give no reason. A wire whose replies end only with a terminal event has no such function.
   */
  readonly end?: (ending: StreamEnding) => readonly ModelSignal[] | undefined
  /** The reply is whole; what follows does not matter. */
  readonly finished: boolean
  /** Set where the reply says that it failed. */
  readonly failure?: ProviderError | undefined
}
