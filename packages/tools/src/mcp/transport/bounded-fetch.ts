import type { FetchLike } from '@modelcontextprotocol/client'

const newline = 0x0a

/**
 * A fetch whose responses end in an error where one message of them is longer than `maxMessageBytes`: a whole body, or
 * one event of a stream of events, which may never end.
 */
export function boundedFetch(inner: FetchLike, maxMessageBytes: number): FetchLike {
  return async (url, init) => {
    const response = await inner(url, init)
    const { body, status, statusText, headers } = response
    if (body === null) return response
    const isStream = headers.get('content-type')?.startsWith('text/event-stream') === true
    const bounded = body.pipeThrough(messageBound(maxMessageBytes, isStream))
    const copy = new Response(bounded, { status, statusText, headers })
    // Where it came from decides how a redirect is judged.
    Object.defineProperties(copy, {
      url: { value: response.url },
      redirected: { value: response.redirected },
    })
    return copy
  }
}

function messageBound(maxBytes: number, isStream: boolean): TransformStream<Uint8Array, Uint8Array> {
  let seen = 0
  let line = 0
  /** Forgets what belongs to events that have ended: an empty line ends an event. */
  const count = (chunk: Uint8Array): void => {
    let from = 0
    for (let at = chunk.indexOf(newline); at !== -1; at = chunk.indexOf(newline, from)) {
      line += at - from
      seen = line <= 1 ? 0 : seen + line
      line = 0
      from = at + 1
    }
    line += chunk.length - from
  }
  return new TransformStream({
    transform(chunk, controller) {
      if (isStream) count(chunk)
      else seen += chunk.length
      if (seen + line > maxBytes) {
        controller.error(new Error(`A message of the server is longer than ${maxBytes} bytes.`))
        return
      }
      controller.enqueue(chunk)
    },
  })
}
