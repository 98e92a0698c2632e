import { readJson } from '@tallystick/core/kit'
import type { Clock } from '@tallystick/core'
import type * as z from 'zod'
import { misfit } from './misfit.ts'
import { RefusedRequestError } from './problem.ts'

/** How much of a body is read, and for how long. */
export interface BodyLimits {
  readonly maxBodyBytes: number
  readonly bodyTimeoutMs: number
  readonly clock: Clock
}

/** Reads the JSON body of a request and checks it. An empty body counts as an empty object. */
export async function readBody<Body>(
  request: Request,
  schema: z.ZodType<Body>,
  limits: BodyLimits,
): Promise<Body> {
  const text = await readText(request, limits)
  if (text !== '') requireJson(request)
  const body = text === '' ? {} : parseJson(text)
  if (!isWithin(maxBodyDepth, body)) throw tooDeep()
  const parsed = schema.safeParse(body)
  if (parsed.success) return parsed.data
  throw new RefusedRequestError(400, 'malformed', misfit(schema, body, parsed.error))
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
    if (error instanceof RangeError && error.message.includes('nested')) throw tooDeep()
    if (error instanceof RangeError) {
      throw new RefusedRequestError(400, 'malformed', error.message.replace('The input', 'The body'))
    }
    throw new RefusedRequestError(
      400,
      'malformed',
      'The body is not valid JSON. Correct it, and send it again.',
    )
  }
}

/**
 * How deep values in a body may be nested. What checks, stores or shows a value goes into it by recursion, so that some
 * thousands of levels in a few kilobytes would end it. No tool or client nests by a hundred.
 */
const maxBodyDepth = 100

function isWithin(levels: number, value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return true
  return levels > 0 && Object.values(value).every((field) => isWithin(levels - 1, field))
}

function tooDeep(): RefusedRequestError {
  return new RefusedRequestError(
    400,
    'malformed',
    `The body is nested deeper than ${maxBodyDepth} levels, the most that this server reads. Send it flatter, or as text.`,
  )
}

async function readText(request: Request, limits: BodyLimits): Promise<string> {
  const { maxBodyBytes, bodyTimeoutMs, clock } = limits
  if (Number(request.headers.get('content-length') ?? 0) > maxBodyBytes) throw tooLarge(maxBodyBytes)
  if (request.body === null) return ''
  if (request.bodyUsed || request.body.locked) throw readBefore()
  const reader = request.body.getReader()
  const late = Promise.withResolvers<never>()
  late.promise.catch(() => {})
  const stopTimer = clock.schedule(bodyTimeoutMs, () => late.reject(tooSlow(bodyTimeoutMs)))
  const decoder = new TextDecoder('utf-8', { fatal: true })
  let text = ''
  let bytes = 0
  try {
    for (;;) {
      const { done, value } = await Promise.race([reader.read(), late.promise])
      if (done) return text + decoder.decode()
      bytes += value.byteLength
      if (bytes > maxBodyBytes) throw tooLarge(maxBodyBytes)
      text += decoder.decode(value, { stream: true })
    }
  } catch (error) {
    // The rest is not read. A sender that has left gets no answer.
    void reader.cancel().catch(() => {})
    if (error instanceof RefusedRequestError) throw error
    throw new RefusedRequestError(
      400,
      'malformed',
      'The body is not UTF-8, or it was cut off. Send all of it, as UTF-8.',
    )
  } finally {
    stopTimer()
  }
}

/** The refusal of a request whose body other code has read, and left nowhere. */
export function readBefore(): RefusedRequestError {
  return new RefusedRequestError(
    500,
    'body_read_before',
    'Other code read the body of this request before the server of Tallystick got it, so what was asked for is lost. Mount the server before what reads bodies, or have that leave the body as `body` or `rawBody` of the request of Node, as express.json() does.',
  )
}

function tooLarge(maxBytes: number): RefusedRequestError {
  const message = `The body is larger than ${maxBytes} bytes, the most that this server reads.`
  return new RefusedRequestError(413, 'body_too_large', message, { headers: { connection: 'close' } })
}

function tooSlow(timeoutMs: number): RefusedRequestError {
  const message = `The body was not there after ${timeoutMs} ms. Send it at once.`
  return new RefusedRequestError(408, 'body_too_slow', message, { headers: { connection: 'close' } })
}
