import type { FailureClass } from '@tallystick/core/vocabulary'
import { textAt } from '../json/json-reading.ts'

const timeoutCodes = new Set([
  'ETIMEDOUT',
  'UND_ERR_CONNECT_TIMEOUT',
  'UND_ERR_HEADERS_TIMEOUT',
  'UND_ERR_BODY_TIMEOUT',
])

// What Node, Chromium, Firefox, Safari and Deno call a request that broke, in this order.
const brokenFetch =
  /^(terminated|fetch failed|failed to fetch|network ?error|load failed|error sending request)/i

// System codes (never `ERR_…`, which mark a caller's mistake), undici's, TLS and certificate ones, Bun's.
const brokenConnection = /^(E(?!RR_)[A-Z_]+|UND_ERR_\w+|ERR_(TLS|SSL)_\w+|CERT_\w+|Connection[A-Z]\w+)$/
const brokenTrust = /_(CERT|SIGNATURE)$|_CERT_/

/** A connection that broke, as Node and browsers report it. */
export interface NetworkFailure {
  readonly class: Extract<FailureClass, 'network' | 'timeout'>
  /** The system's code, such as `ECONNRESET`, where there is one. */
  readonly code?: string
}

/** Recognises an error that a broken connection caused, by its code or by its words; `undefined` for any other. */
export function networkFailure(error: unknown): NetworkFailure | undefined {
  const code = codeOf(error)
  if (code !== undefined) return { class: timeoutCodes.has(code) ? 'timeout' : 'network', code }
  return error instanceof TypeError && brokenFetch.test(error.message) ? { class: 'network' } : undefined
}

function codeOf(error: unknown): string | undefined {
  let cause = error
  for (let depth = 0; depth < 5 && cause instanceof Error; depth++) {
    const code = textAt(cause, 'code')
    if (code !== undefined && (brokenConnection.test(code) || brokenTrust.test(code))) return code
    cause = cause.cause
  }
  return undefined
}
