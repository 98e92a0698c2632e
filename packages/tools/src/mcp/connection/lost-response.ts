import type { JSONRPCMessage, RequestId, Transport } from '@modelcontextprotocol/client'

/** Code of the error that stands for an answer that was lost. Of the range that the protocol leaves to implementations. */
export const lostResponseCode = -32_098

/** The requests of a transport that wait for their answers. */
export interface OpenRequests {
  readonly size: number
  /** The handshake is over: what it asked is not waited for, though no listener of this transport has heard the answer. */
  clear(): void
}

/**
 * Has each request end whose stream of events ended without the answer. The client library waits for such an answer until
 * the time of the request is over.
 */
export function withLostResponses(transport: Transport): OpenRequests {
  const open = new Set<RequestId>()
  let why = ''
  // oxlint-disable-next-line unicorn/prefer-add-event-listener -- a transport is no event target
  transport.onerror = (error) => {
    why = ` (${error.message})`
  }
  // oxlint-disable-next-line unicorn/prefer-add-event-listener -- a transport is no event target
  transport.onmessage = (message: JSONRPCMessage) => {
    if (!('method' in message) && message.id !== undefined) open.delete(message.id)
  }
  const send = transport.send.bind(transport)
  transport.send = (message, options) => {
    const id = 'method' in message && 'id' in message ? message.id : undefined
    // A subscription hears of it in its own way.
    if (id === undefined || options?.onRequestStreamEnd !== undefined) return send(message, options)
    open.add(id)
    const onRequestStreamEnd = (): void => {
      if (!open.delete(id)) return
      const error = { code: lostResponseCode, message: `The connection ended before the answer${why}.` }
      transport.onmessage?.({ jsonrpc: '2.0', id, error })
    }
    return send(message, { ...options, onRequestStreamEnd })
  }
  return open
}
