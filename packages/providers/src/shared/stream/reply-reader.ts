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

/** What a reader asks of what it remembers of a reply. */
interface ReadReply {
  readonly finished?: boolean
  readonly failure?: ProviderError | undefined
}

/**
 * Reads a reply into the state that remembers it. A class, since V8 would keep a hidden class of its own for each object literal with
 * a getter, and with it the whole reply, until the next full collection.
 */
export class RememberingReader<Reply extends ReadReply, Event = unknown> implements ReplyReader<Event> {
  readonly #reply: Reply
  readonly #read: (reply: Reply, event: Event) => Iterable<ModelSignal>

  constructor(reply: Reply, read: (reply: Reply, event: Event) => Iterable<ModelSignal>) {
    this.#reply = reply
    this.#read = read
  }

  /** Reads one event, or several that a server sent as one list. */
  read(given: Event | readonly Event[]): Iterable<ModelSignal> {
    return Array.isArray(given)
      ? this.#readEach(given as readonly Event[])
      : this.#read(this.#reply, given as Event)
  }

  /** What the events before a faulty one say counts. */
  *#readEach(events: readonly Event[]): Generator<ModelSignal, void> {
    for (const event of events) {
      if (this.finished || this.failure !== undefined) return
      yield* this.#read(this.#reply, event)
    }
  }

  get finished(): boolean {
    return this.#reply.finished ?? false
  }

  get failure(): ProviderError | undefined {
    return this.#reply.failure
  }
}
