import { ConfigurationError } from '@tallystick/core'
import type { Json, JsonObject } from '@tallystick/core/vocabulary'
import {
  toBytes,
  type Exchange,
  type ExchangeEnding,
  computeExchangeKey,
  readExchanges,
  readRecording,
  type RecordedRequest,
  ReplayOrder,
  describeRequest,
  withoutRunIds,
} from './file.ts'
import { type PlayedFetchOptions, playedOptions, requireRecordingOptions } from './recording-fetch.ts'

/**
 * Finds where two values first differ, as a path such as `messages.2.content`. Values are prompts, so it does not say how.
 */
function findFirstDifference(one: Json | undefined, other: Json | undefined, path = ''): string | undefined {
  if (one === other) return undefined
  if (!isComposed(one) || !isComposed(other) || Array.isArray(one) !== Array.isArray(other)) {
    return path || 'all of it'
  }
  for (const key of new Set([...Object.keys(one), ...Object.keys(other)])) {
    const inner = findFirstDifference(one[key], other[key], path === '' ? key : `${path}.${key}`)
    if (inner !== undefined) return inner
  }
  return undefined
}

function isComposed(value: Json | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null
}

/** A `fetch` that never touches the network. */
export interface PlayedFetch {
  (input: string | URL | Request, init?: RequestInit): Promise<Response>
  /** Throws `ConfigurationError` when recorded exchanges are left over. */
  assertComplete(): void
}

/**
 * Returns a `fetch` that answers from a recording of `recordingFetch`, to the byte and in the recorded pieces, each exchange
 * once. A request without a recorded answer gets status 400 with a text that says where it differs. A connection that broke
 * breaks again; an answer that was given up continues to where it was, and then waits.
 *
 * Throws `ConfigurationError` if the file is missing, or is not such a recording.
 */
export function playedFetch(file: string, options: PlayedFetchOptions = {}): PlayedFetch {
  requireRecordingOptions('playedFetch', playedOptions, { file, options })
  const exchanges = readExchanges(readRecording(file, 'exchanges'))
  if (exchanges === undefined) {
    throw new ConfigurationError(
      `The recording ${file} holds a line that belongs to no exchange, so it is damaged. Record it again.`,
    )
  }
  const order = new ReplayOrder(
    exchanges.map((entry) => ({ key: computeExchangeKey(entry.request), entry })),
    options.match ?? 'request',
  )
  const play = async (input: string | URL | Request, init?: RequestInit): Promise<Response> => {
    const signal = init?.signal ?? (input instanceof Request ? input.signal : undefined)
    signal?.throwIfAborted()
    const { request } = await describeRequest(input, init)
    const exchange = order.take(computeExchangeKey(request))
    if (exchange !== undefined) return playExchange(exchange, signal ?? undefined)
    const [waiting] = order.left
    const why =
      waiting === undefined
        ? 'all of its exchanges have been played'
        : `the next one differs at ${findDifference(request, waiting.request) ?? 'nothing that is kept'}`
    const message = `No answer to this request is recorded in ${file.split(/[/\\]/).at(-1)}: ${why}. Record it again.`
    // Returned as an answer, since clients hide errors of `fetch`, and retry.
    const body = { type: 'error', error: { type: 'invalid_request_error', message } }
    return Response.json(body, { status: 400, headers: { 'x-should-retry': 'false' } })
  }
  return Object.assign(play, {
    assertComplete() {
      const { length } = order.left
      if (length === 0) return
      throw new ConfigurationError(
        `${length} of ${exchanges.length} exchanges in ${file} were not played: fewer requests were made than when it was recorded. Record it again if that is meant.`,
      )
    },
  })
}

function findDifference(request: RecordedRequest, recorded: RecordedRequest): string | undefined {
  if (request.method !== recorded.method) return 'its method'
  if (new URL(request.url).pathname !== new URL(recorded.url).pathname) return 'its path'
  const bare = ({ body }: RecordedRequest) =>
    JSON.parse(withoutRunIds(JSON.stringify(body))) as RecordedRequest['body']
  return findFirstDifference(bare(recorded), bare(request))
}

async function playExchange(
  { status, headers, pieces, ending }: Exchange,
  signal: AbortSignal | undefined,
): Promise<Response> {
  if (status === undefined) return await breakOff(ending, signal)
  const left = [...pieces]
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        // An answer comes over time: who asked may give up between any two pieces.
        await Promise.resolve()
        signal?.throwIfAborted()
        const piece = left.shift()
        if (piece !== undefined) return controller.enqueue(toBytes(piece))
        if (ending.type === 'end') return controller.close()
        await breakOff(ending, signal)
      },
    },
    { highWaterMark: 0 },
  )
  return new Response([101, 204, 205, 304].includes(status) ? null : body, { status, headers })
}

/** Breaks as the connection did; or, if it was given up, waits until it is given up again. */
function breakOff(ending: ExchangeEnding, signal: AbortSignal | undefined): Promise<never> {
  return new Promise((_, reject) => {
    if (ending.type === 'broken') {
      const { message, code } = ending
      const cause = code === undefined ? undefined : Object.assign(new Error(code), { code })
      return reject(new TypeError(message, { cause }))
    }
    signal?.addEventListener('abort', () => reject(signal.reason), { once: true })
  })
}
