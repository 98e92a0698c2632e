import type { JSONRPCMessage, RequestId, Transport } from '@modelcontextprotocol/client'
import { OpenRequests } from '../transport/open-requests.ts'

/** Code of the error that stands for an answer that was lost. Of the range that the protocol leaves to implementations. */
export const lostResponseCode = -32_098

/**
 * Has each request end whose stream of events ended without the answer. The client library waits for such an answer until
 * the time of the request is over. Returns the requests that wait; what a handshake asks stays among them, since no listener of
 * the transport hears its answers.
 */
export function withLostResponses(transport: Transport): OpenRequests {
  const open = new OpenRequests()
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
  transport.send = async (message, options) => {
    const id = 'method' in message && 'id' in message ? message.id : undefined
    // A subscription hears of it in its own way.
    if (id === undefined || options?.onRequestStreamEnd !== undefined) {
      const given = cancelledBy(message)
      if (given !== undefined) open.delete(given)
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

/** The request that a message takes back: no answer is due any more. */
function cancelledBy(message: JSONRPCMessage): RequestId | undefined {
  if (!('method' in message) || message.method !== 'notifications/cancelled') return undefined
  return message.params?.['requestId'] as RequestId | undefined
}
