import type { IncomingMessage } from 'node:http'
import { readBefore } from '../http/read-body.ts'

/**
 * The request with the body that other code before this handler has read, and left as `rawBody` or `body` of the request
 * of Node: what `express.json()` parsed becomes JSON again. What reads the body is refused where it was left nowhere.
 */
export function withBodyReadBefore(request: Request, incoming: IncomingMessage): Request {
  if (!incoming.readableDidRead || !hasBody(incoming) || isSafe(request)) return request
  const { url, method, headers, signal } = request
  return new Request(url, { method, headers, signal, body: leftBody(incoming) ?? lostBody(), duplex: 'half' })
}

/** A request without a body has nothing to lose. */
function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
}

function isSafe({ method }: Request): boolean {
  return method === 'GET' || method === 'HEAD'
}

function leftBody(incoming: IncomingMessage): string | Uint8Array<ArrayBuffer> | undefined {
  const { rawBody, body }: { readonly rawBody?: unknown; readonly body?: unknown } = Object(incoming)
  const left = rawBody ?? body
  if (typeof left === 'string') return left
  if (left instanceof Uint8Array) return Uint8Array.from(left)
  try {
    return JSON.stringify(left)
  } catch {
    return undefined
  }
}

function lostBody(): ReadableStream {
  return new ReadableStream({ start: (controller) => controller.error(readBefore()) })
}
