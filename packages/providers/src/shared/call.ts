import type { ProviderError } from '@tallystick/core'
import type { Cancel, ModelContext, ModelSignal } from '@tallystick/core/vocabulary'
import type { Subscriber } from 'rxjs'
import { observeResponse, type ResponseFacts, SilenceWatch, StreamTail, type Timeouts } from './body.ts'
import { type WireFailures, withRequestId } from './failure.ts'
import { textAt } from './json.ts'
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

function newConnection(watch: SilenceWatch): Connection {
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

interface Progress<Event> {
  connection: Connection
  reader: ReplyReader<Event> | undefined
  /** An event came. */
  receivedAny: boolean
  /** A signal was passed on. */
  shown: boolean
  finished: boolean
}

/**
 * Forwards the events of a call's answer as signals to the subscriber, until the answer is complete, fails or falls silent.
 * Returns how to stop: that closes the connection, unless the answer is complete, so that it may be used again.
 */
export function forwardEvents<Event>(call: ForwardedCall<Event>): () => void {
  const { context, subscriber, failures, timeouts = {} } = call
  const watch = new SilenceWatch(context.clock, timeouts, (what, limitMs) => {
    if (completed(call, progress, 'broken')) return
    subscriber.error(failures.overlongReply(what, limitMs, progress.connection.facts.requestId))
  })
  const progress: Progress<Event> = { connection: newConnection(watch), ...nothingYet }
  void forward(call, progress)
  return () => {
    watch.stop()
    if (!progress.finished) progress.connection.abort.abort()
  }
}

const nothingYet = { reader: undefined, receivedAny: false, shown: false, finished: false }

/** Makes attempts until one ends the call. Never rejects. */
async function forward<Event>(call: ForwardedCall<Event>, progress: Progress<Event>): Promise<void> {
  const { subscriber } = call
  for (let connect = call.connect; ;) {
    try {
      await follow(call, progress, connect)
      if (!subscriber.closed && !completed(call, progress, 'clean')) throw endedEarly(call, progress)
      return
    } catch (error) {
      if (subscriber.closed) return
      const failure = failureOf(error, call, progress)
      const { connection, shown } = progress
      const other = shown ? undefined : call.fallbackRequest?.(failure)
      const next = other ?? call.goOn?.(failure)
      if (next === undefined) {
        // A break after a complete reply takes nothing from it.
        const broke = failure.class === 'network' || failure.class === 'timeout'
        if (!broke || !completed(call, progress, 'broken')) subscriber.error(failure)
        return
      }
      connect = next
      connection.abort.abort()
      const again = newConnection(connection.watch)
      Object.assign(progress, { connection: again, ...nothingYet, shown: other ? false : shown })
      connection.watch.sent()
    }
  }
}

/** Sends the request and reads its answer to the end, or until the subscriber has left. */
async function follow<Event>(
  { context, subscriber }: ForwardedCall<Event>,
  progress: Progress<Event>,
  connect: Connect<Event>,
): Promise<void> {
  const { connection } = progress
  let stopDraining: Cancel | undefined
  try {
    const opened = await connect(connection)
    if (opened === undefined) return
    const { events, reader } = opened
    progress.reader = reader
    connection.watch.begun()
    for await (const event of events) {
      if (!progress.receivedAny) connection.tail.begun()
      progress.receivedAny = true
      if (!connection.observed) connection.watch.signOfLife()
      // The rest is only read because a connection that is read to its end can be used again.
      if (progress.finished) continue
      if (subscriber.closed) return
      // Some servers send several events as one list. Those before a faulty one count.
      for (const one of (Array.isArray(event) ? event : [event]) as readonly Event[]) {
        if (reader.finished) break
        // Also without a signal it may be a step of the reply: a block that begins or ends, a search of the vendor's.
        const type = textAt(one, 'type')
        if (show(progress, reader.read(one), subscriber) || (type !== undefined && !signsOfLife.test(type)))
          connection.watch.content()
        if (reader.failure !== undefined) throw reader.failure
      }
      if (!reader.finished || subscriber.closed) continue
      progress.finished = true
      stopDraining = context.clock.schedule(drainMs, () => connection.abort.abort())
      subscriber.complete()
    }
  } finally {
    stopDraining?.()
  }
}

function show<Event>(
  progress: Progress<Event>,
  signals: Iterable<ModelSignal>,
  subscriber: Subscriber<ModelSignal>,
): boolean {
  let any = false
  for (const signal of signals) {
    any = true
    progress.shown = true
    subscriber.next(signal)
  }
  return any
}

/** Events that only keep the connection alive, and deltas, which count by what they show. */
const signsOfLife = /^(ping|keepalive|response\.(queued|in_progress))$|[._-]delta$/

function failureOf<Event>(
  error: unknown,
  { context, failures }: ForwardedCall<Event>,
  { connection: { facts, tail } }: Progress<Event>,
): ProviderError {
  // A client that parses what came of an event, when the stream was cut inside it, finds broken JSON.
  if (error instanceof SyntaxError && tail.endedInLine) return failures.truncatedReply(facts.requestId)
  return failures.toProviderError(error, { now: context.clock.now(), requestId: facts.requestId })
}

/** Ends the reply if it is complete already: some wires prove it before their last word. */
function completed<Event>(
  call: ForwardedCall<Event>,
  progress: Progress<Event>,
  ending: 'clean' | 'broken',
): boolean {
  const { subscriber } = call
  try {
    const last = progress.reader?.end?.(progress.connection.tail.terminated ? 'terminated' : ending)
    if (last === undefined) return false
    show(progress, last, subscriber)
    subscriber.complete()
  } catch (error) {
    subscriber.error(failureOf(error, call, progress))
  }
  return true
}

function endedEarly<Event>(
  { failures }: ForwardedCall<Event>,
  { receivedAny, connection: { facts, tail } }: Progress<Event>,
): ProviderError {
  const { contentType, requestId } = facts
  const told = tail.error
  if (told !== undefined) return withRequestId(failures.failureInStream(told), requestId)
  const isOther = contentType !== undefined && !contentType.includes('text/event-stream')
  return !receivedAny && isOther
    ? failures.notAStream(contentType, requestId)
    : failures.truncatedReply(requestId)
}
