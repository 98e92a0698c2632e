import type { ProviderError } from '@tallystick/core'
import type { Cancel, ModelContext, ModelSignal } from '@tallystick/core/vocabulary'
import type { Subscriber } from 'rxjs'
import { observeResponse, type ResponseFacts, SilenceWatch, StreamTail, type Timeouts } from './body.ts'
import { type WireFailures, withRequestId } from './failure.ts'
import { getText } from './json.ts'
import type { ReplyReader } from './reply.ts'

export const longestTimerMs: number = 2 ** 31 - 1
/** How long the rest of a finished answer may take, so that its connection can be used again. */
const drainMs = 1000
/** The connection of one attempt. */
export interface Connection {
  /** Aborting closes the connection. */
  readonly abort: AbortController
  readonly watch: SilenceWatch
  readonly facts: ResponseFacts
  readonly tail: StreamTail
  /** The wire reports bytes to `watch`; otherwise each event counts as a sign of life. */
  observed: boolean
}

function createConnection(watch: SilenceWatch): Connection {
  return { abort: new AbortController(), watch, facts: {}, tail: new StreamTail(), observed: false }
}

/** Notes the facts of an answer. Returns the response to read, whose bytes are seen as they pass. */
export function observeAnswer(
  connection: Connection,
  response: Response,
  requestId: string | undefined,
): Response {
  const { facts, tail, watch } = connection
  facts.requestId = requestId
  facts.contentType = response.headers.get('content-type') ?? undefined
  facts.hasNoBody = response.ok && response.body === null
  const observed = observeResponse(response, {
    onBytes(bytes) {
      watch.signOfLife()
      tail.saw(bytes)
    },
    onEnd: () => tail.ended(),
  })
  connection.observed = observed !== response
  return observed
}

/** The events of an answer, and their reader. */
export interface Opened<Event> {
  readonly events: AsyncIterable<Event>
  readonly reader: ReplyReader<Event>
}

/** Sends a request over the connection. Resolves to `undefined` if the call was given up before that. */
export type Connect<Event> = (connection: Connection) => Promise<Opened<Event> | undefined>

/** One call of a model. */
export interface ForwardedCall<Event> {
  readonly context: ModelContext
  readonly subscriber: Subscriber<ModelSignal>
  readonly timeouts?: Timeouts | undefined
  readonly failures: WireFailures
  readonly connect: Connect<Event>
  /** Returns another request for one that failed before it showed anything; `undefined` if the call failed. */
  readonly fallbackRequest?: (failure: ProviderError) => Connect<Event> | undefined
  /** Returns how to continue a reply that broke off, with its own reader; `undefined` if the call failed. */
  readonly goOn?: (failure: ProviderError) => Connect<Event> | undefined
}

/** Events that only keep the connection alive, and deltas, which count by what they show. */
const signsOfLife = /^(ping|keepalive|response\.(queued|in_progress))$|[._-]delta$/

/**
 * Forwards the events of a call's answer as signals to the subscriber, until the answer is complete, fails or falls silent.
 * Returns how to stop: that closes the connection, unless the answer is complete, so that it may be used again.
 */
export function forwardEvents<Event>(call: ForwardedCall<Event>): () => void {
  const forwarding = new Forwarding(call)
  void forwarding.run()
  return () => forwarding.stop()
}

class Forwarding<Event> {
  readonly #call: ForwardedCall<Event>
  readonly #watch: SilenceWatch
  #connection: Connection
  #reader: ReplyReader<Event> | undefined
  /** An event came. */
  #receivedAny = false
  /** A signal was passed on. */
  #shown = false
  #finished = false

  constructor(call: ForwardedCall<Event>) {
    const { context, subscriber, failures, timeouts = {} } = call
    this.#call = call
    this.#watch = new SilenceWatch(context.clock, timeouts, (what, limitMs) => {
      if (this.#complete('broken')) return
      subscriber.error(failures.overlongReply(what, limitMs, this.#connection.facts.requestId))
    })
    this.#connection = createConnection(this.#watch)
  }

  stop(): void {
    this.#watch.stop()
    if (!this.#finished) this.#connection.abort.abort()
  }

  /** Makes attempts until one ends the call. Never rejects. */
  async run(): Promise<void> {
    const { subscriber, fallbackRequest, goOn } = this.#call
    for (let { connect } = this.#call; ;) {
      try {
        await this.#follow(connect)
        if (!subscriber.closed && !this.#complete('clean')) throw this.#endedEarly()
        return
      } catch (error) {
        if (subscriber.closed) return
        const failure = this.#toFailure(error)
        const other = this.#shown ? undefined : fallbackRequest?.(failure)
        const next = other ?? goOn?.(failure)
        if (next === undefined) {
          // A break after a complete reply takes nothing from it.
          const broke = failure.class === 'network' || failure.class === 'timeout'
          if (!broke || !this.#complete('broken')) subscriber.error(failure)
          return
        }
        connect = next
        this.#connection.abort.abort()
        this.#connection = createConnection(this.#watch)
        this.#reader = undefined
        this.#receivedAny = this.#finished = false
        if (other) this.#shown = false
        this.#watch.sent()
      }
    }
  }

  /** Sends the request and reads its answer to the end, or until the subscriber has left. */
  async #follow(connect: Connect<Event>): Promise<void> {
    const { context, subscriber } = this.#call
    const connection = this.#connection
    let stopDraining: Cancel | undefined
    try {
      const opened = await connect(connection)
      if (opened === undefined) return
      const { events, reader } = opened
      this.#reader = reader
      this.#watch.begun()
      for await (const event of events) {
        if (!this.#receivedAny) connection.tail.begun()
        this.#receivedAny = true
        if (!connection.observed) this.#watch.signOfLife()
        // The rest is only read because a connection that is read to its end can be used again.
        if (this.#finished) continue
        if (subscriber.closed) return
        // Some servers send several events as one list. Those before a faulty one count.
        if (!Array.isArray(event)) this.#read(reader, event)
        else for (const one of event as readonly Event[]) this.#read(reader, one)
        if (!reader.finished || subscriber.closed) continue
        this.#finished = true
        stopDraining = context.clock.schedule(drainMs, () => connection.abort.abort())
        subscriber.complete()
      }
    } finally {
      stopDraining?.()
    }
  }

  #read(reader: ReplyReader<Event>, event: Event): void {
    if (reader.finished) return
    // Also without a signal it may be a step of the reply: a block that begins or ends, a search of the vendor's.
    if (this.#show(reader.read(event)) || !signsOfLife.test(getText(event, 'type') ?? 'ping'))
      this.#watch.content()
    if (reader.failure !== undefined) throw reader.failure
  }

  /** Passes signals on. Returns whether there was one. */
  #show(signals: Iterable<ModelSignal>): boolean {
    let any = false
    for (const signal of signals) {
      any = true
      this.#shown = true
      this.#call.subscriber.next(signal)
    }
    return any
  }

  #toFailure(error: unknown): ProviderError {
    const { context, failures } = this.#call
    const { facts, tail } = this.#connection
    // A client that parses what came of an event, when the stream was cut inside it, finds broken JSON.
    const isCut = error instanceof SyntaxError && tail.endedInLine
    // Clients throw errors of their own for an answer without a body.
    if (isCut || facts.hasNoBody) return failures.truncatedReply(facts.requestId)
    return failures.toProviderError(error, { now: context.clock.now(), requestId: facts.requestId })
  }

  /** Ends the reply if it is complete already: some wires prove it before their last word. */
  #complete(ending: 'clean' | 'broken'): boolean {
    const { subscriber } = this.#call
    try {
      const last = this.#reader?.end?.(this.#connection.tail.terminated ? 'terminated' : ending)
      if (last === undefined) return false
      this.#show(last)
      subscriber.complete()
    } catch (error) {
      subscriber.error(this.#toFailure(error))
    }
    return true
  }

  #endedEarly(): ProviderError {
    const { failures } = this.#call
    const { facts, tail } = this.#connection
    const { contentType, requestId } = facts
    const told = tail.error
    if (told !== undefined) return withRequestId(failures.failureInStream(told), requestId)
    const isOther = contentType !== undefined && !contentType.includes('text/event-stream')
    return !this.#receivedAny && isOther
      ? failures.notAStream(contentType, requestId)
      : failures.truncatedReply(requestId)
  }
}
