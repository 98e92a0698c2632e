import type { FetchLike } from '@modelcontextprotocol/client'

/**
 * A fetch that calls `onGone` when a stream of events was open at a URL and cannot be opened again there, since the server
 * cannot be reached. A server that answers is there, whatever it answers.
 */
export function watchingStreams(inner: FetchLike, serverUrl: string, onGone: () => void): FetchLike {
  const { href } = new URL(serverUrl)
  let wasOpen = false
  return async (url, init) => {
    if (new URL(url).href !== href || !asksForStream(init)) return await inner(url, init)
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

function asksForStream({ method = 'GET', headers }: Pick<RequestInit, 'method' | 'headers'> = {}): boolean {
  return method === 'GET' && new Headers(headers).get('accept')?.includes('text/event-stream') === true
}
