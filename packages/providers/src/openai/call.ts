import type { ProviderError } from '@tallystick/core'
import type { ModelContext, ModelSignal } from '@tallystick/core/vocabulary'
import type { Subscriber } from 'rxjs'
import { type Connection, longestTimerMs } from '../shared/stream/connection.ts'
import { type Connect, forwardEvents } from '../shared/stream/forward-events.ts'
import { observedResponse } from '../shared/stream/observed-response.ts'
import type { ReplyReader } from '../shared/stream/reply-reader.ts'
import { numberAt, objectAt, textAt } from '../shared/json/json-reading.ts'
import type { OpenAICallOptions, OpenAICreate, ResponsePlace } from './client/client.ts'
import { failures, requestIdIn } from './client/failure.ts'
import { type OpenAISdk, sdk } from './client/sdk.ts'
import type { OpenAICommonOptions } from './options/options.ts'

/** One request, and the reader of its answer. */
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
  /** What goes on with a response that the service works on in the background. */
  readonly background?: BackgroundCalls | undefined
  /** Returns another request to send in place of one that failed before it showed anything; `undefined`: the call failed. */
  readonly fallbackRequest: (failure: ProviderError, body: object) => Attempt | undefined
}

/** What a client can do with a response that it began before. */
export interface BackgroundCalls {
  /** Sends for the events behind one. */
  readonly retrieve: (id: string, place: ResponsePlace, given: OpenAICallOptions) => ReturnType<OpenAICreate>
  readonly cancel: (id: string) => PromiseLike<unknown>
}

/** How often in a row a response is sent for that brings nothing. */
const maxReturns = 3
const pauseMs = 1000

/** Starts the call. Returns how to stop it: the connection is closed when that returns. */
export function startCall(call: Call): () => void {
  const { context, options, subscriber, prepare, fallbackRequest, background } = call
  let sent: Attempt | undefined
  const place: Place = { id: undefined, after: -1, returns: 0 }
  const connectWith = (made: () => Attempt): Connect<unknown> => {
    return async (connection) => {
      sent = made()
      const { body, reader } = sent
      const events = await opened(call, connection, (given) => call.create(body, given))
      return { events: background ? noted(events, place) : events, reader }
    }
  }
  const goOn = (failure: ProviderError): Connect<unknown> | undefined => {
    const { id } = place
    const isBroken = failure.class === 'network' || failure.class === 'truncated'
    if (!background || !sent || id === undefined || !isBroken || place.returns >= maxReturns) return undefined
    const { reader, body } = sent
    const include = 'include' in body ? { include: body.include as readonly string[] } : {}
    const from = { stream: true, starting_after: place.after, ...include } as const
    place.returns++
    return async (connection) => {
      await new Promise<void>((resolve) => context.clock.schedule(pauseMs * place.returns, resolve))
      if (subscriber.closed) return undefined
      const events = await opened(call, connection, (given) => background.retrieve(id, from, given)).catch(
        (error: unknown) => {
          if (failures.providerErrorOf(error, { now: context.clock.now() }).class === 'network') throw error
          // A response that is gone is no fault of the request: another one may succeed.
          place.returns = maxReturns
          throw failure
        },
      )
      return { events: noted(events, place), reader }
    }
  }
  const stop = forwardEvents({
    context,
    subscriber,
    failures,
    timeouts: options,
    connect: connectWith(prepare),
    fallbackRequest: (failure) => {
      const next = sent && fallbackRequest(failure, sent.body)
      return next && connectWith(() => next)
    },
    goOn,
  })
  return () => {
    stop()
    if (background && place.id !== undefined && sent?.reader.finished !== true) {
      // It would work on, and be billed, for nobody.
      Promise.resolve(background.cancel(place.id)).catch(() => {})
    }
  }
}

/** Where in a response its events stand. */
interface Place {
  id: string | undefined
  after: number
  returns: number
}

/** The events, whose place is noted as they pass. */
async function* noted(events: AsyncIterable<unknown>, place: Place): AsyncGenerator<unknown, void> {
  for await (const event of events) {
    place.id ??= textAt(objectAt(event, 'response'), 'id')
    const number = numberAt(event, 'sequence_number')
    if (number !== undefined && number > place.after) Object.assign(place, { after: number, returns: 0 })
    yield event
  }
}

/**
 * The raw events. Of the official client only its own stream reader is used, over a response whose bytes are seen as
 * they pass, since it swallows keep-alives.
 */
async function opened(
  call: Call,
  connection: Connection,
  ask: (given: OpenAICallOptions) => ReturnType<OpenAICreate>,
): Promise<AsyncIterable<unknown>> {
  const { signal } = connection.abort
  const asked = ask({
    signal,
    maxRetries: 0,
    // Not to go off before ours, which runs on the runtime's clock.
    timeout: longestTimerMs,
    headers: { ...call.options.headers },
  })
  if (!hasResponse(asked)) return asked
  // The client may be the user's own: then nothing was loaded before.
  const [response, { Stream }] = await Promise.all([asked.asResponse(), sdk.load(call.maker)])
  connection.facts.requestId = requestIdIn(response.headers)
  connection.facts.contentType = response.headers.get('content-type') ?? undefined
  const { tail } = connection
  const observed = observedResponse(response, {
    onBytes(bytes) {
      connection.watch.signOfLife()
      tail.saw(bytes)
    },
    onEnd: () => tail.ended(),
  })
  connection.observed = observed !== response
  return Stream.fromSSEResponse(observed, connection.abort, call.client as StreamClient)
}

type StreamClient = Parameters<OpenAISdk['Stream']['fromSSEResponse']>[2]

/** The promise that the official client answers. */
interface ResponsePromise {
  asResponse(): Promise<Response>
}

function hasResponse(asked: object): asked is ResponsePromise {
  return typeof (asked as Partial<ResponsePromise>).asResponse === 'function'
}
