import type { ProviderError } from '@tallystick/core'
import { type OptionalPackage, omitUndefined } from '@tallystick/core/internal'
import type { ModelContext, ModelSignal } from '@tallystick/core/vocabulary'
import type { OpenAI } from 'openai'
import type { Stream } from 'openai/streaming'
import type { Subscriber } from 'rxjs'
import {
  type Connect,
  type Connection,
  forwardEvents,
  longestTimerMs,
  observeAnswer,
} from '../shared/call.ts'
import { getNumber, getObject, parseJson, getText } from '../shared/json.ts'
import { declarePackage } from '../shared/options.ts'
import type { ReplyReader } from '../shared/reply.ts'
import type { OwnSecrets } from '../shared/secrets.ts'
import { failures, readRequestId } from './failure.ts'
import type { OpenAICommonOptions } from './options.ts'

interface OpenAISdk {
  readonly OpenAI: typeof OpenAI
  /** Reads the events of a response. */
  readonly Stream: typeof Stream
}

/** The official SDK. */
export const sdk: OptionalPackage<OpenAISdk> = declarePackage('openai', async () => {
  const [{ OpenAI }, { Stream }] = await Promise.all([import('openai'), import('openai/streaming')])
  return { OpenAI, Stream }
})

/** The options that the adapter passes with each call. */
export interface OpenAICallOptions {
  readonly signal: AbortSignal
  readonly maxRetries: number
  /** Milliseconds that the client may wait for an answer to begin. */
  readonly timeout: number
  readonly headers: Readonly<Record<string, string>>
}

/** Resolves to the raw events, in order; iterating ends, or throws, when the call does, and `signal` ends both at once. */
export type OpenAICreate = (body: object, options: OpenAICallOptions) => PromiseLike<AsyncIterable<unknown>>

/** Just enough of the official client for the Responses API: `new OpenAI(…)` is one, and so is `new AzureOpenAI(…)`. */
export interface OpenAIClient {
  readonly responses: {
    create(...call: Parameters<OpenAICreate>): ReturnType<OpenAICreate>
    /** Sends for the rest of a response, for the option `background`. */
    retrieve?(id: string, ...more: never[]): unknown
    /** Ends a response that nobody waits for any more. */
    cancel?(id: string, ...more: never[]): unknown
  }
}

/** Just enough of the official client for Chat Completions. */
export interface OpenAIChatClient {
  readonly chat: {
    readonly completions: { create(...call: Parameters<OpenAICreate>): ReturnType<OpenAICreate> }
  }
}

/** Options of the official client. */
export interface OpenAIClientOptions {
  /** The key, or a function that gets one. Without it: `OPENAI_API_KEY`. Servers of your own take any text. */
  readonly apiKey?: string | (() => Promise<string>) | undefined
  /** Where the service is, `/v1` included. Without it: `OPENAI_BASE_URL`, or OpenAI itself. */
  readonly baseURL?: string | undefined
  /** Replaces the `fetch` of the host: a proxy, a recorder. */
  readonly fetch?: typeof globalThis.fetch | undefined
}

/** Makes an official client that says nothing on the console, where its messages would show payloads. */
export function createOfficialClient(
  { OpenAI }: OpenAISdk,
  { apiKey, baseURL, fetch = (input, init) => globalThis.fetch(input, init) }: OpenAIClientOptions,
  secrets: OwnSecrets,
): OpenAIClient & OpenAIChatClient {
  const noting = secrets.noting(fetch)
  return new OpenAI({
    ...omitUndefined({ apiKey, baseURL }),
    maxRetries: 0,
    logLevel: 'off',
    fetch: (input, init) => noting(input, init).then(withErrorInside),
  })
}

/**
 * The official client reads a refusal's reason from the field `error` of the body, and passes over all other words.
 * Some servers put the reason at the top of the body instead, or the body into a list: it is moved to where the client looks.
 */
async function withErrorInside(response: Response): Promise<Response> {
  const { status, statusText } = response
  if (status < 400 || !response.headers.get('content-type')?.includes('json')) return response
  const text = await response.text()
  const given = parseJson(text)
  const body: unknown = Array.isArray(given) && given.length === 1 ? given[0] : given
  const isInside = typeof body === 'object' && body !== null && 'error' in body
  const mended = given === undefined ? text : JSON.stringify(isInside ? body : { error: body })
  const headers = new Headers(response.headers)
  headers.delete('content-length')
  headers.delete('content-encoding')
  return new Response(mended, { status, statusText, headers })
}

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
  /** Continues or cancels a response that the service works on in the background. */
  readonly background?: BackgroundCalls | undefined
  /** True if `prepare` now makes another request, in place of one that failed before it showed anything. */
  readonly adapt: (failure: ProviderError, body: object) => boolean
}

export interface BackgroundCalls {
  /** Sends for the events behind one. */
  readonly retrieve: (id: string, from: object, given: OpenAICallOptions) => ReturnType<OpenAICreate>
  readonly cancel: (id: string) => PromiseLike<unknown>
}

/** How often in a row a response is sent for that brings nothing. */
const maxReturns = 3
const pauseMs = 1000

/** Starts the call. Returns how to stop it: the connection is closed when that returns. */
export function startCall(call: Call): () => void {
  const { context, options, subscriber, background } = call
  let sent: Attempt | undefined
  const place: Place = { id: undefined, after: -1, returns: 0 }
  const connect: Connect<unknown> = async (connection) => {
    const { body, reader } = (sent = call.prepare())
    const events = await openEvents(call, connection, (given) => call.create(body, given))
    return { events: background ? notePlaces(events, place) : events, reader }
  }
  const goOn = (failure: ProviderError): Connect<unknown> | undefined => {
    const { id } = place
    const isBroken = failure.class === 'network' || failure.class === 'truncated'
    if (!background || !sent || id === undefined || !isBroken || place.returns >= maxReturns) return undefined
    const { reader, body } = sent
    const include = 'include' in body ? { include: body.include } : {}
    const from = { stream: true, starting_after: place.after, ...include }
    place.returns++
    return async (connection) => {
      await new Promise<void>((resolve) => context.clock.schedule(pauseMs * place.returns, resolve))
      if (subscriber.closed) return undefined
      const events = await openEvents(call, connection, (given) =>
        background.retrieve(id, from, given),
      ).catch((error: unknown) => {
        if (failures.toProviderError(error, { now: context.clock.now() }).class === 'network') throw error
        // A response that is gone is not a fault of the request: another one may succeed.
        place.returns = maxReturns
        throw failure
      })
      return { events: notePlaces(events, place), reader }
    }
  }
  const stop = forwardEvents({
    context,
    subscriber,
    failures,
    timeouts: options,
    connect,
    fallbackRequest: (failure) => (sent && call.adapt(failure, sent.body) ? connect : undefined),
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
async function* notePlaces(events: AsyncIterable<unknown>, place: Place): AsyncGenerator<unknown, void> {
  for await (const event of events) {
    place.id ??= getText(getObject(event, 'response'), 'id')
    const number = getNumber(event, 'sequence_number')
    if (number !== undefined && number > place.after) Object.assign(place, { after: number, returns: 0 })
    yield event
  }
}

/**
 * The raw events. Of the official client only its own stream reader is used, over a response whose bytes are seen as
 * they pass, since it swallows keep-alives.
 */
async function openEvents(
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
  const official = asked as { asResponse?(): Promise<Response> }
  if (official.asResponse === undefined) return asked
  // The client may be the user's own: then nothing was loaded before.
  const [response, { Stream }] = await Promise.all([official.asResponse(), sdk.load(call.maker)])
  const observed = observeAnswer(connection, response, readRequestId(response.headers))
  type StreamClient = Parameters<OpenAISdk['Stream']['fromSSEResponse']>[2]
  return Stream.fromSSEResponse(observed, connection.abort, call.client as StreamClient)
}
