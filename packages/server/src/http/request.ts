import type { Clock } from '@tallystick/core'
import { readJson } from '@tallystick/core/internal'
import type * as z from 'zod'
import { createMalformedError, explainSchemaError, RefusedRequestError } from './problem.ts'

export interface BodyLimits {
  readonly maxBodyBytes: number
  readonly bodyTimeoutMs: number
  readonly clock: Clock
}

/**
 * Reads the JSON body of a request and checks it. An empty body counts as an empty object. `requireSigned` gets the text as it was
 * sent, before anything is made of it.
 */
export async function readBody<Body>(
  request: Request,
  schema: z.ZodType<Body>,
  limits: BodyLimits,
  requireSigned?: (text: string) => Promise<void>,
): Promise<Body> {
  const text = await readText(request, limits)
  await requireSigned?.(text)
  if (text !== '') requireJson(request)
  const body = text === '' ? {} : parseJson(text)
  if (!isWithin(maxBodyDepth, body)) throw createTooDeepError()
  const parsed = schema.safeParse(body)
  if (parsed.success) return parsed.data
  throw createMalformedError(explainSchemaError(schema, body, parsed.error))
}

/** A page of another origin can post a form or plain text without asking, and JSON only after a preflight. */
function requireJson(request: Request): void {
  const type = request.headers.get('content-type')?.split(';')[0]?.trim().toLowerCase()
  if (type === 'application/json') return
  throw new RefusedRequestError(
    415,
    'unsupported_media_type',
    'The body has to be JSON. Send it with content-type: application/json.',
  )
}

function parseJson(text: string): unknown {
  try {
    return readJson(text)
  } catch (error) {
    if (error instanceof RangeError && error.message.includes('nested')) throw createTooDeepError()
    if (error instanceof RangeError) {
      throw createMalformedError(error.message.replace('The input', 'The body'))
    }
    throw createMalformedError('The body is not valid JSON. Correct it, and send it again.')
  }
}

/**
 * The most levels of nesting in a body. Code that checks, stores or shows a value recurses into it, so thousands of levels
 * in a few kilobytes would overflow the stack. No tool or client nests a hundred levels.
 */
const maxBodyDepth = 100

function isWithin(levels: number, value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return true
  return levels > 0 && Object.values(value).every((field) => isWithin(levels - 1, field))
}

function createTooDeepError(): RefusedRequestError {
  return createMalformedError(
    `The body is nested deeper than ${maxBodyDepth} levels, the most that this server reads. Send it flatter, or as text.`,
  )
}

/** Reads the body of a request as text, within limits. */
export async function readText(request: Request, limits: BodyLimits): Promise<string> {
  const { maxBodyBytes, bodyTimeoutMs, clock } = limits
  if (Number(request.headers.get('content-length') ?? 0) > maxBodyBytes)
    throw createTooLargeError(maxBodyBytes)
  if (request.body === null) return ''
  if (request.bodyUsed || request.body.locked) throw readBefore()
  const reader = request.body.getReader()
  const late = Promise.withResolvers<never>()
  late.promise.catch(() => {})
  const stopTimer = clock.schedule(bodyTimeoutMs, () => {
    const message = `The body was not there after ${bodyTimeoutMs} ms. Send it at once.`
    const headers = { connection: 'close' }
    late.reject(new RefusedRequestError(408, 'body_too_slow', message, { headers }))
  })
  const decoder = new TextDecoder('utf-8', { fatal: true })
  let text = ''
  let bytes = 0
  try {
    for (;;) {
      const { done, value } = await Promise.race([reader.read(), late.promise])
      if (done) return text + decoder.decode()
      bytes += value.byteLength
      if (bytes > maxBodyBytes) throw createTooLargeError(maxBodyBytes)
      text += decoder.decode(value, { stream: true })
    }
  } catch (error) {
    // The rest is not read.
    void reader.cancel().catch(() => {})
    if (error instanceof RefusedRequestError) throw error
    throw createMalformedError('The body is not UTF-8, or it was cut off. Send all of it, as UTF-8.')
  } finally {
    stopTimer()
  }
}

/** The refusal of a request whose body other code has consumed. */
export function readBefore(): RefusedRequestError {
  return new RefusedRequestError(
    500,
    'body_read_before',
    'Other code read the body of this request before the Tallystick server, so the order is lost. Mount the server before code that reads bodies, or let that code leave the body as `body` or `rawBody` of the Node request, as express.json() does.',
  )
}

function createTooLargeError(maxBytes: number): RefusedRequestError {
  const message = `The body is larger than ${maxBytes} bytes, the most that this server reads.`
  return new RefusedRequestError(413, 'body_too_large', message, { headers: { connection: 'close' } })
}

/** Parameters that carry a secret in other APIs. A URL is logged and shared, so none of them is read. */
const secretParameters = ['token', 'access_token', 'api_key', 'apikey', 'authorization', 'bearer']

/** Refuses a URL that carries a secret. */
export function requireNoSecretInUrl(url: URL): void {
  const name = [...url.searchParams.keys()].find((key) => secretParameters.includes(key.toLowerCase()))
  if (name === undefined) return
  throw new RefusedRequestError(
    400,
    'secret_in_url',
    `The URL carries a secret (${name}), and URLs are logged. Replace the secret, and send it as the header authorization: Bearer ….`,
  )
}

const safeMethods = new Set(['GET', 'HEAD', 'OPTIONS'])

export function isRead(request: Request): boolean {
  return safeMethods.has(request.method)
}

/**
 * Refuses a command from a page of another origin, since a browser sends its user's cookies along. Clients that are not
 * browsers send neither `Origin` nor `Sec-Fetch-Site`.
 */
export function requireOwnOrigin(request: Request, url: URL, origins: readonly string[]): void {
  if (isRead(request)) return
  const origin = request.headers.get('origin')
  const host = request.headers.get('host') ?? url.host
  // Only the host decides: a proxy may speak TLS for the server.
  const isOwn = origin !== null && URL.canParse(origin) && new URL(origin).host === host
  if (isOwn || (origin !== null && origins.includes(origin))) return
  const site = request.headers.get('sec-fetch-site')
  if (origin === null && (site === null || site === 'same-origin' || site === 'none')) return
  throw new RefusedRequestError(
    403,
    'cross_origin',
    'This page is of another origin. Name its origin in the option `origins` of the server, if it may send commands.',
  )
}

/** The names of this machine for itself. */
const loopbackHosts = new Set(['localhost', '127.0.0.1', '[::1]'])

export function isLoopback(host: string): boolean {
  return loopbackHosts.has(host) || loopbackHosts.has(`[${host}]`) || /^127\.\d+\.\d+\.\d+$/.test(host)
}

/** Refuses a request under another name: a page can let its own host name resolve to this machine. */
export function requireLoopbackHost(request: Request, url: URL): void {
  const host = request.headers.get('host') ?? url.host
  const parsed = URL.canParse(`http://${host}`) ? new URL(`http://${host}`).hostname : ''
  if (isLoopback(parsed)) return
  throw new RefusedRequestError(
    421,
    'not_loopback',
    'Without `authorize` the server answers on this machine only. Open it as http://127.0.0.1, or give `authorize`.',
  )
}

export function isPreflight(request: Request, origins: readonly string[]): boolean {
  const origin = request.headers.get('origin')
  return request.method === 'OPTIONS' && origin !== null && origins.includes(origin)
}

/** The headers that let a page of a named origin read the response; none for any other page. */
export function toCorsHeaders(
  request: Request,
  origins: readonly string[],
): readonly (readonly [name: string, value: string])[] {
  if (origins.length === 0) return []
  const origin = request.headers.get('origin')
  const vary = ['vary', 'origin'] as const
  if (origin === null || !origins.includes(origin)) return [vary]
  return [
    vary,
    ['access-control-allow-origin', origin],
    ['access-control-allow-credentials', 'true'],
    ['access-control-allow-methods', 'GET, POST'],
    [
      'access-control-allow-headers',
      'authorization, content-type, idempotency-key, last-event-id, traceparent',
    ],
    ['access-control-expose-headers', 'location, retry-after, tallystick-run'],
    ['access-control-max-age', '600'],
  ]
}
