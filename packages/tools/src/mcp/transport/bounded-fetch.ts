import type { FetchLike } from '@modelcontextprotocol/client'

const newline = 0x0a

/**
 * A fetch whose responses end in an error where one message of them is longer than `maxMessageBytes`: a whole body, or
 * one event of a stream of events, which may never end. Each event comes in a chunk of its own: the client library hears of
 * progress a moment after its event, and would lose it where the answer came in the same chunk.
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
  let longest = 0
  /** Takes a chunk apart at the ends of events, which are empty lines, and forgets what belongs to these. */
  const eventsOf = (chunk: Uint8Array): readonly Uint8Array[] => {
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
      const parts = isStream ? eventsOf(chunk) : [chunk]
      if (!isStream) seen += chunk.length
      if (Math.max(longest, seen + line) > maxBytes) {
        controller.error(new Error(`A message of the server is longer than ${maxBytes} bytes.`))
        return
      }
      for (const part of parts) controller.enqueue(part)
    },
  })
}
