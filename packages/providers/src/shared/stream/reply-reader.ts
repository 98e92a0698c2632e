import type { ProviderError } from '@tallystick/core'
import type { ModelSignal } from '@tallystick/core/vocabulary'
import { type PackedDelta, packMark } from './packed-deltas.ts'
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

/** Gives the event of a delta other texts. Only the reader holds the event, so it may be changed for that. */
type OtherTexts<Event> = (event: Event) => (text: string) => Event

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
  readonly #otherTexts: OtherTexts<Event> | undefined

  /** `otherTexts` is there for a wire whose packs have texts in the place of events. */
  constructor(
    reply: Reply,
    read: (reply: Reply, event: Event) => Iterable<ModelSignal>,
    otherTexts?: OtherTexts<Event>,
  ) {
    this.#reply = reply
    this.#read = read
    this.#otherTexts = otherTexts
  }

  /**
   * Reads one event of the client, or several that it gave at once: those of a pack, or those that a server itself sent as
   * one list.
   */
  read(given: Event | readonly PackedDelta<Event>[]): Iterable<ModelSignal> {
    return Array.isArray(given)
      ? this.#readEach(given as readonly PackedDelta<Event>[])
      : this.#read(this.#reply, given as Event)
  }

  /** What the events before a faulty one say counts. */
  *#readEach(packed: readonly PackedDelta<Event>[]): Generator<ModelSignal, void> {
    const isPack = packed[0] === packMark
    let withText: ((text: string) => Event) | undefined
    for (let place = isPack ? 1 : 0; place < packed.length; place++) {
      if (this.finished || this.failure !== undefined) return
      const each = packed[place] as PackedDelta<Event>
      const event = typeof each === 'string' && withText ? withText(each) : (each as Event)
      if (isPack && typeof each !== 'string') withText = this.#otherTexts?.(event)
      for (const signal of this.#read(this.#reply, event)) yield signal
    }
  }

  get finished(): boolean {
    return this.#reply.finished ?? false
  }

  get failure(): ProviderError | undefined {
    return this.#reply.failure
  }
}
