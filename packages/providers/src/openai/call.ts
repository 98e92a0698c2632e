import type { Cancel, ModelContext, ModelSignal, ProviderError } from '@tallystick/core'
import type { Subscriber } from 'rxjs'
import { observedResponse, type ResponseFacts } from '../shared/stream/observed-response.ts'
import {
  drainMs,
  idleTimeoutDefaultMs,
  longestTimerMs,
  responseTimeoutDefaultMs,
} from '../shared/stream/open-connection.ts'
import { type SilenceWatch, watchSilence } from '../shared/stream/silence-watch.ts'
import { type StreamEnding, type StreamTail, streamTail } from '../shared/stream/stream-tail.ts'
import type { OpenAICreate } from './client/client.ts'
import { notAStream, providerErrorOf, requestIdIn, silentReply, truncatedReply } from './client/failure.ts'
import { type OpenAISdk, sdk } from './client/sdk.ts'
import type { OpenAICommonOptions } from './options/options.ts'

/** Reads the events of one reply. */
export interface ReplyReader {
  /** The signals that follow from one event. Throws a `ProviderError` where the stream cannot be believed. */
  read(event: unknown): readonly ModelSignal[]
  /**
   * The stream is over, in this way: the last signals when the reply was whole by then, else `undefined`. Nothing but a
   * finish reason proves that before a break; a clean end proves it for servers that are known to give no reason.
   */
  end(ending: StreamEnding): readonly ModelSignal[] | undefined
  /** The reply is whole, and what follows does not matter. */
  readonly finished: boolean
  /** The reply says that it failed. */
  readonly failure: ProviderError | undefined
}

/** One request, and who reads its answer. */
export interface Attempt {
  readonly body: object
  readonly reader: ReplyReader
}

/** One call of a model. */
export interface Call {
  /** The function that made the model. */
  readonly maker: string
  readonly create: OpenAICreate
  /** The client itself, whose log settings the stream keeps to. */
  readonly client: object
  readonly options: OpenAICommonOptions
  readonly context: ModelContext
  readonly subscriber: Subscriber<ModelSignal>
  readonly prepare: () => Attempt
  /** Another request to make in place of one that was refused before anything was shown; `undefined`: it failed. */
  readonly instead: (failure: ProviderError, refused: Attempt) => Attempt | undefined
}

/** What is under way: the connection of the present attempt, and what is known of it. */
interface Line {
  abort: AbortController
  facts: ResponseFacts
  tail: StreamTail
  attempt: Attempt | undefined
  heard: boolean
  shown: boolean
  finished: boolean
  /** Whether the bytes are watched, which says more than the events. */
  observed: boolean
  readonly watch: SilenceWatch
}

/** Starts the call and answers how to stop it: the connection is closed when that returns. */
export function startCall(call: Call): () => void {
  const { context, options, subscriber } = call
  const watch = watchSilence(context.clock, responseTimeoutOf(options), (limitMs) => {
    if (!completed(call, line, 'broken')) subscriber.error(silentReply(limitMs, line.facts.requestId))
  })
  const line: Line = { ...fresh(), attempt: undefined, watch }
  void pump(call, line)
  return () => {
    watch.stop()
    if (!line.finished) line.abort.abort()
  }
}

function fresh(): Omit<Line, 'attempt' | 'watch'> {
  return {
    ...{ abort: new AbortController(), facts: {}, tail: streamTail() },
    ...{ heard: false, shown: false, finished: false, observed: false },
  }
}

/** Carries the wire's events to the subscriber, until one of the two has had enough. Never rejects. */
async function pump(call: Call, line: Line): Promise<void> {
  const { context, subscriber } = call
  try {
    line.attempt = call.prepare()
    while (line.attempt !== undefined) line.attempt = await carry(call, line, line.attempt)
  } catch (error) {
    if (subscriber.closed) return
    const failure = failureOf(error, context, line)
    // What breaks behind a reply that was whole takes nothing from it.
    const broke = failure.class === 'network' || failure.class === 'timeout'
    if (broke && completed(call, line, 'broken')) return
    subscriber.error(failure)
  }
}

/** Makes one attempt. Answers the attempt to make in its place, if there is to be one. */
async function carry(call: Call, line: Line, attempt: Attempt): Promise<Attempt | undefined> {
  const { context, subscriber } = call
  try {
    await follow(call, line, attempt)
    if (!subscriber.closed && !completed(call, line, 'clean')) throw endedEarly(line)
    return undefined
  } catch (error) {
    const failure = failureOf(error, context, line)
    const next = subscriber.closed || line.shown ? undefined : call.instead(failure, attempt)
    if (next === undefined) throw failure
    line.abort.abort()
    Object.assign(line, fresh())
    line.watch.allow(responseTimeoutOf(call.options))
    return next
  }
}

/** Sends the request and reads its answer to the end, or until nobody listens any more. */
async function follow(call: Call, line: Line, { body, reader }: Attempt): Promise<void> {
  const { context, subscriber, options } = call
  const { abort } = line
  let stopDraining: Cancel | undefined
  try {
    const events = await opened(call, line, body)
    line.watch.allow(options.idleTimeoutMs ?? idleTimeoutDefaultMs)
    for await (const event of events) {
      line.heard = true
      if (!line.observed) line.watch.heard()
      // What follows the end is only waited for: a connection that is read to its end can be used again.
      if (line.finished) continue
      if (subscriber.closed) return
      show(line, reader.read(event), subscriber)
      if (reader.failure !== undefined) throw reader.failure
      if (!reader.finished || subscriber.closed) continue
      line.finished = true
      stopDraining = context.clock.schedule(drainMs, () => abort.abort())
      subscriber.complete()
    }
  } finally {
    stopDraining?.()
  }
}

function show(line: Line, signals: readonly ModelSignal[], subscriber: Subscriber<ModelSignal>): void {
  for (const signal of signals) {
    line.shown = true
    subscriber.next(signal)
  }
}

function failureOf(error: unknown, { clock }: ModelContext, { facts, tail }: Line): ProviderError {
  // The official client takes what came of an event, when the stream was cut inside it, for the whole of it.
  if (error instanceof SyntaxError && tail.endedInLine) return truncatedReply(facts.requestId)
  return providerErrorOf(error, { now: clock.now(), requestId: facts.requestId })
}

/** Ends the reply if it was whole already: some wires prove it before their last word. */
function completed({ subscriber }: Call, line: Line, ending: 'clean' | 'broken'): boolean {
  if (subscriber.closed) return true
  const last = line.attempt?.reader.end(line.tail.terminated ? 'terminated' : ending)
  if (last === undefined) return false
  show(line, last, subscriber)
  subscriber.complete()
  return true
}

/**
 * The raw events. Of the official client only its own stream reader is used, over a response whose bytes are seen as
 * they pass, since it swallows keep-alives.
 */
async function opened(call: Call, line: Line, body: object): Promise<AsyncIterable<unknown>> {
  const { signal } = line.abort
  const asked = call.create(body, {
    signal,
    maxRetries: 0,
    // Not to go off before ours, which runs on the runtime's clock.
    timeout: longestTimerMs,
    headers: { ...call.options.headers },
  })
  if (!hasResponse(asked)) return asked
  // The client may be the user's own: then nothing was loaded before.
  const [response, { Stream }] = await Promise.all([asked.asResponse(), sdk.load(call.maker)])
  line.facts.requestId = requestIdIn(response.headers)
  line.facts.contentType = response.headers.get('content-type') ?? undefined
  line.observed = true
  const { tail } = line
  const observed = observedResponse(
    response,
    (bytes) => {
      line.watch.heard()
      tail.saw(bytes)
    },
    () => tail.ended(),
  )
  return Stream.fromSSEResponse(observed, line.abort, call.client as StreamClient)
}

type StreamClient = Parameters<OpenAISdk['Stream']['fromSSEResponse']>[2]

/** The promise that the official client answers. */
interface ResponsePromise {
  asResponse(): Promise<Response>
}

function hasResponse(asked: object): asked is ResponsePromise {
  return 'asResponse' in asked && typeof asked.asResponse === 'function'
}

function endedEarly({ heard, facts: { contentType, requestId } }: Line): ProviderError {
  const otherType = contentType !== undefined && !contentType.includes('text/event-stream')
  return !heard && otherType ? notAStream(contentType, requestId) : truncatedReply(requestId)
}

function responseTimeoutOf(options: OpenAICommonOptions): number {
  return options.responseTimeoutMs ?? responseTimeoutDefaultMs
}
