import type { FetchLike, JSONRPCMessage, RequestId, Transport } from '@modelcontextprotocol/client'
import type { client } from './client-library.ts'

const newline = 0x0a

/**
 * A fetch whose responses end in an error where one message of them is longer than `maxMessageBytes`: a whole body, or
 * one event of a stream of events, which may never end. Each event comes in a chunk of its own: the client library hears of
 * progress a moment after its event, and would lose it where the answer came in the same chunk.
 */
export function boundFetch(inner: FetchLike, maxMessageBytes: number): FetchLike {
  return async (url, init) => {
    const response = await inner(url, init)
    const { body, status, statusText, headers } = response
    if (body === null) return response
    const isStream = headers.get('content-type')?.startsWith('text/event-stream') === true
    const bounded = body.pipeThrough(createMessageBound(maxMessageBytes, isStream))
    const copy = new Response(bounded, { status, statusText, headers })
    // Where it came from decides how a redirect is judged.
    Object.defineProperties(copy, {
      url: { value: response.url },
      redirected: { value: response.redirected },
    })
    return copy
  }
}

function createMessageBound(maxBytes: number, isStream: boolean): TransformStream<Uint8Array, Uint8Array> {
  let seen = 0
  let line = 0
  let longest = 0
  /** Takes a chunk apart at the ends of events, which are empty lines, and forgets what belongs to these. */
  const splitEvents = (chunk: Uint8Array): readonly Uint8Array[] => {
    const events: Uint8Array[] = []
    let begin = 0
    let from = 0
    for (let at = chunk.indexOf(newline); at !== -1; at = chunk.indexOf(newline, from)) {
      line += at - from
      from = at + 1
      longest = Math.max(longest, seen + line)
      if (line <= 1) {
        events.push(chunk.subarray(begin, from))
        begin = from
      }
      seen = line <= 1 ? 0 : seen + line
      line = 0
    }
    line += chunk.length - from
    return [...events, chunk.subarray(begin)]
  }
  return new TransformStream({
    transform(chunk, controller) {
      const parts = isStream ? splitEvents(chunk) : [chunk]
      if (!isStream) seen += chunk.length
      if (Math.max(longest, seen + line) > maxBytes) {
        controller.error(new Error(`A message of the server is longer than ${maxBytes} bytes.`))
        return
      }
      for (const part of parts) controller.enqueue(part)
    },
  })
}

/** The requests of one client that wait for their answers. */
class OpenRequests extends Set<RequestId> {
  #idle: PromiseWithResolvers<void> | undefined

  override delete(id: RequestId): boolean {
    const wasOpen = super.delete(id)
    this.#tell()
    return wasOpen
  }

  override clear(): void {
    super.clear()
    this.#tell()
  }

  /** Resolves when none waits. */
  async idle(): Promise<void> {
    if (this.size > 0) await (this.#idle ??= Promise.withResolvers<void>()).promise
  }

  #tell(): void {
    if (this.size > 0) return
    this.#idle?.resolve()
    this.#idle = undefined
  }
}

/**
 * A fetch that has a provider of OAuth forget which authorization server it found, where the server refuses a token: it may
 * have moved to another one, and what is kept would lead to the old one again.
 */
export function renewDiscovery(
  inner: client.FetchLike,
  serverUrl: string,
  provider: client.AuthProvider | client.OAuthClientProvider | undefined,
): client.FetchLike {
  if (provider === undefined || !('invalidateCredentials' in provider)) return inner
  const { href } = new URL(serverUrl)
  return async (url, init) => {
    const response = await inner(url, init)
    const hadToken = new Headers(init?.headers).has('authorization')
    if (response.status === 401 && hadToken && new URL(url).href === href) {
      await provider.invalidateCredentials?.('discovery')
    }
    return response
  }
}

/**
 * A fetch that calls `onGone` when a stream of events was open at a URL and cannot be opened again there, since the server
 * cannot be reached. A server that answers is there, whatever it answers.
 */
export function watchStreams(inner: FetchLike, serverUrl: string, onGone: () => void): FetchLike {
  const { href } = new URL(serverUrl)
  let wasOpen = false
  return async (url, init) => {
    const { method = 'GET', headers } = init ?? {}
    const isStream = method === 'GET' && new Headers(headers).get('accept')?.includes('text/event-stream')
    if (new URL(url).href !== href || !isStream) return await inner(url, init)
    try {
      const response = await inner(url, init)
      wasOpen ||= response.ok
      return response
    } catch (error) {
      if (wasOpen && init?.signal?.aborted !== true) onGone()
      throw error
    }
  }
}

/** Code of the error for a lost answer, in the range that the protocol leaves to implementations. */
export const lostResponseCode = -32_098

/**
 * Has each request end whose stream of events ended without the answer. The client library waits for such an answer until
 * the time of the request is over. Returns the requests that wait; what a handshake asks stays among them, since no listener of
 * the transport hears its answers.
 */
export function withLostResponses(transport: Transport): OpenRequests {
  const open = new OpenRequests()
  let why = ''
  // oxlint-disable-next-line unicorn/prefer-add-event-listener -- a transport is not an event target
  transport.onerror = (error) => {
    why = ` (${error.message})`
  }
  // oxlint-disable-next-line unicorn/prefer-add-event-listener -- a transport is not an event target
  transport.onmessage = (message: JSONRPCMessage) => {
    if (!('method' in message) && message.id !== undefined) open.delete(message.id)
  }
  const send = transport.send.bind(transport)
  transport.send = async (message, options) => {
    const id = 'method' in message && 'id' in message ? message.id : undefined
    // A subscription hears of it in its own way.
    if (id === undefined || options?.onRequestStreamEnd !== undefined) {
      // No answer is due any more to a request that is taken back.
      if ('method' in message && message.method === 'notifications/cancelled')
        open.delete(message.params?.['requestId'] as RequestId)
      return await send(message, options)
    }
    open.add(id)
    options?.requestSignal?.addEventListener('abort', () => void open.delete(id), { once: true })
    const onRequestStreamEnd = (): void => {
      if (!open.delete(id)) return
      const error = { code: lostResponseCode, message: `The connection ended before the answer${why}.` }
      transport.onmessage?.({ jsonrpc: '2.0', id, error })
    }
    try {
      await send(message, { ...options, onRequestStreamEnd })
    } catch (error) {
      // The client gets this error.
      open.delete(id)
      throw error
    }
  }
  return open
}

/** How servers say that they do not know a session: before the word, after it, or without it. */
const unknownSession: readonly RegExp[] = [
  /\b(?:no|missing|unknown|invalid|expired|unrecognized|no valid|no such|could not find) session\b/,
  /\bsession (?:[a-z0-9]+ ){0,3}(?:missing|required|unknown|invalid|expired|terminated|not (?:found|valid|known|exist))\b/,
  /\bserver not initialized\b/,
]

/**
 * True if a text of a server says that the session of a request is missing, unknown, invalid or over. A text that only
 * speaks of sessions may come from a tool that ran.
 */
export function isUnknownSession(text: string): boolean {
  const words = text
    .slice(0, 2_000)
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, ' ')
    .replaceAll(/\bsession ?id(?: header)?\b/g, 'session')
  return unknownSession.some((pattern) => pattern.test(words))
}
