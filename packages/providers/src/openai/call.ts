import type { ProviderError } from '@tallystick/core'
import type { ModelContext, ModelSignal } from '@tallystick/core/vocabulary'
import type { Subscriber } from 'rxjs'
import { type Connection, longestTimerMs } from '../shared/stream/connection.ts'
import { type Connect, forwardEvents } from '../shared/stream/forward-events.ts'
import { observedResponse } from '../shared/stream/observed-response.ts'
import type { ReplyReader } from '../shared/stream/reply-reader.ts'
import type { OpenAICreate } from './client/client.ts'
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
  /** Returns another request to send in place of one that failed before it showed anything; `undefined`: the call failed. */
  readonly fallbackRequest: (failure: ProviderError, body: object) => Attempt | undefined
}

/** Starts the call. Returns how to stop it: the connection is closed when that returns. */
export function startCall(call: Call): () => void {
  const { context, options, subscriber, prepare, fallbackRequest } = call
  let sent: Attempt | undefined
  const connectWith = (made: () => Attempt): Connect<unknown> => {
    return async (connection) => {
      sent = made()
      return { events: await opened(call, connection, sent.body), reader: sent.reader }
    }
  }
  return forwardEvents({
    context,
    subscriber,
    failures,
    timeouts: options,
    connect: connectWith(prepare),
    fallbackRequest: (failure) => {
      const next = sent && fallbackRequest(failure, sent.body)
      return next && connectWith(() => next)
    },
  })
}

/**
 * The raw events. Of the official client only its own stream reader is used, over a response whose bytes are seen as
 * they pass, since it swallows keep-alives.
 */
async function opened(call: Call, connection: Connection, body: object): Promise<AsyncIterable<unknown>> {
  const { signal } = connection.abort
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
