import { readCode } from '@tallystick/core/internal'
import { TextDecoder } from 'node:util'
import { ConfigurationError } from '@tallystick/core'
import type { Agent, Response } from 'undici'
import { ToolError } from '../../define/outcome.ts'
import { boundText, readWithin } from '../../define/text.ts'
import { scheduleLimit, type Timers } from '../../host.ts'
import { loadInCall, undiciPackage } from '../../packages.ts'
import { toMarkdown } from './markdown.ts'
import { createGuardedAgent, type HeaderPolicy, maskForms, type ReachPolicy, readUrl } from './reach.ts'

export interface HttpRequest {
  readonly url: string
  readonly method: Method
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
  /** Shows the source of a page instead of Markdown. */
  readonly raw: boolean
}

/** The rules of every exchange of one tool. */
export interface Exchange {
  /** The tool's name. */
  readonly tool: string
  readonly reach: ReachPolicy
  readonly headers: HeaderPolicy
  readonly contentTypes: readonly string[]
  readonly maxBytes: number
  readonly timeoutMs: number
  readonly maxRedirects: number
  readonly timers: Timers
}

/** An answer as the model sees it. `url` is where it came from after redirects. */
export type HttpAnswer = {
  readonly url: string
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  /** Of a page that is shown as Markdown. */
  readonly title?: string
  readonly body: string
  readonly note?: string
}

const shownHeaders = ['content-type', 'etag', 'last-modified', 'link', 'location', 'retry-after']
const maxHeaderCharacters = 1_000
/** Bytes of a page that become Markdown: far more than is shown, since most of a page is not text. */
const maxPageBytes = 2_000_000

/**
 * Sends a request, follows redirects, and reads as much of the answer as may be shown. Throws `ToolError`, at its time limit
 * with the outcome `timed_out` unless nothing was sent; rejects with the signal's reason when that aborts. Every connection
 * is closed when it settles.
 */
export async function fetchPage(
  request: HttpRequest,
  rules: Exchange,
  signal: AbortSignal,
): Promise<HttpAnswer> {
  let agent: Agent | undefined
  const deadline = new AbortController()
  const cancelTimer = scheduleLimit(rules.timers, rules.timeoutMs, () => deadline.abort())
  const either = AbortSignal.any([signal, deadline.signal])
  const way = { wasReached: false, isConnecting: false }
  try {
    const undici = await loadInCall(undiciPackage, rules.tool)
    const dispatcher = createGuardedAgent(undici, rules.reach, rules.timeoutMs, (isConnecting) => {
      way.isConnecting = isConnecting
      way.wasReached ||= !isConnecting
    })
    agent = dispatcher
    const { response, url } = await follow(
      request,
      rules,
      async (target, init) =>
        await undici.fetch(target, { ...init, redirect: 'manual', dispatcher, signal: either }),
    )
    return await showAnswer(response, { url, raw: request.raw }, rules)
  } catch (error) {
    if (signal.aborted) throw signal.reason
    if (deadline.signal.aborted) {
      const within = `within ${rules.timeoutMs} ms`
      if (!way.wasReached) {
        throw new ToolError(
          `There was no connection to the server ${within}. Nothing was sent. Try again later.`,
          { retryable: true },
        )
      }
      throw new ToolError(
        way.isConnecting
          ? `There was no connection ${within} to where the answer redirects. Try again later.`
          : `The answer was not complete ${within}. Try again later, or ask for less.`,
        { outcome: 'timed_out' },
      )
    }
    throw describeFailure(error, (text) => maskForms(text, rules.headers))
  } finally {
    cancelTimer()
    await agent?.destroy()
  }
}

interface Hop {
  readonly url: URL
  readonly method: string
  /** Headers that describe the body, or belong to what it changes. */
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
}

/** Follows redirects by hand, so that each is judged like a first request and gets only its own origin's headers. */
async function follow(
  request: HttpRequest,
  { reach, headers, maxRedirects }: Exchange,
  send: (
    url: URL,
    init: {
      readonly method: string
      readonly headers: Readonly<Record<string, string>>
      readonly body?: string
    },
  ) => Promise<Response>,
): Promise<{ readonly response: Response; readonly url: URL }> {
  let hop: Hop = { ...request, url: readUrl(request.url, reach) }
  for (let redirects = 0; ; redirects++) {
    const { url, method, body } = hop
    const sent = new Headers({ 'user-agent': 'tallystick', ...hop.headers })
    for (const [name, value] of Object.entries(headers.byOrigin.get(url.origin) ?? {})) sent.set(name, value)
    const init = { method, headers: Object.fromEntries(sent), ...(body !== undefined && { body }) }
    const response = await send(url, init)
    const next = maxRedirects === 0 ? undefined : findNextHop(hop, response, reach)
    if (next === undefined) return { response, url }
    await response.body?.cancel()
    if (redirects === maxRedirects) {
      throw new ToolError(
        `More than ${maxRedirects} redirects followed each other. Request their final address.`,
      )
    }
    hop = next
  }
}

const redirectStatuses = new Set([301, 302, 303, 307, 308])

/**
 * Returns where a redirect leads; `undefined` if the answer is not a redirect, or is to be shown. As browsers do: 303
 * turns all but HEAD into GET, 301 and 302 turn POST into GET, and such a GET loses the body.
 */
function findNextHop(hop: Hop, { status, headers }: Response, reach: ReachPolicy): Hop | undefined {
  const location = headers.get('location')
  if (location === null || !redirectStatuses.has(status)) return undefined
  const url = readUrl(location, reach, hop.url)
  const becomesGet = status === 303 ? hop.method !== 'HEAD' : status < 303 && hop.method === 'POST'
  if (becomesGet) return { url, method: 'GET', headers: {} }
  // A change allowed at one origin is not allowed at another: the result shows where the redirect leads instead.
  const reads = hop.method === 'GET' || hop.method === 'HEAD'
  return reads || url.origin === hop.url.origin ? { ...hop, url } : undefined
}

async function showAnswer(
  response: Response,
  { url, raw }: { readonly url: URL; readonly raw: boolean },
  rules: Exchange,
): Promise<HttpAnswer> {
  const { headers, contentTypes, maxBytes } = rules
  const show = (text: string): string => maskForms(text, headers)
  const shown = shownHeaders.flatMap((name) => {
    const value = response.headers.get(name)
    return value === null ? [] : [[name, boundText(show(value), maxHeaderCharacters)] as const]
  })
  const answer = { url: show(url.href), status: response.status, headers: Object.fromEntries(shown) }
  const contentType = response.headers.get('content-type')
  if (!isShown(contentType, contentTypes)) {
    await response.body?.cancel()
    const note = `The body is not shown: it is ${boundText(show(contentType ?? ''), 100)}.`
    return { ...answer, body: '', note }
  }
  const isMarkdown = !raw && isPage(contentType)
  // A secret that the limit cuts in two has to be read whole to be known, and masked before it is cut.
  const maxShown = maxBytes + headers.secrets.maxFormLength
  const { bytes, more } = await readBytes(response, isMarkdown ? Math.max(maxBytes, maxPageBytes) : maxShown)
  if (!isMarkdown) return { ...answer, ...cut(show(decodePage(bytes, contentType)), more, maxBytes) }
  // The texts of a page are masked, and the Markdown that is made of them as well.
  const source = decodePage(bytes, readPageType(bytes, contentType))
  const page = toMarkdown(source, url.href, maxShown, show)
  return {
    ...answer,
    ...(page.title !== undefined && { title: show(page.title) }),
    ...cut(show(page.markdown), more || page.more, maxBytes),
  }
}

function cut(text: string, more: boolean, maxBytes: number): Pick<HttpAnswer, 'body' | 'note'> {
  const body = readWithin(text, maxBytes)
  const note = `The body is cut after ${maxBytes} bytes. Ask for a smaller part if it can be had.`
  return more || body !== text ? { body, note } : { body }
}

/** Media types that are shown when nothing else is said. */
export const defaultContentTypes: readonly string[] = [
  'text/*',
  'application/json',
  'application/*+json',
  'application/x-ndjson',
  'application/xml',
  'application/*+xml',
  'application/yaml',
]

/** True if a media type is to be shown. An answer that names none counts as text. */
export function isShown(contentType: string | null, shown: readonly string[]): boolean {
  const type = contentType?.split(';')[0]?.trim().toLowerCase() ?? 'text/plain'
  return shown.some((pattern) => {
    const [start = '', end] = pattern.toLowerCase().split('*')
    return end === undefined ? type === start : type.startsWith(start) && type.endsWith(end)
  })
}

export function isPage(contentType: string | null): boolean {
  return isShown(contentType, ['text/html', 'application/xhtml+xml'])
}

/** The content type of a page with the character set that it names itself, where its server names none. */
export function readPageType(bytes: Buffer, contentType: string | null): string {
  const type = contentType ?? ''
  if (/charset=/i.test(type)) return type
  const head = bytes.toString('latin1', 0, 1_024).toLowerCase()
  const named = readAfter(readAfter(head, '<meta'), 'charset')
  const charset = /^\s*=\s*["']?([\w-]{1,40})/.exec(named)?.[1]
  return charset === undefined ? type : `${type}; charset=${charset}`
}

/** The first bytes of a body, unpacked, and whether there are more. Reads no further than it has to. */
export async function readBytes(
  response: Response,
  maxBytes: number,
): Promise<{ readonly bytes: Buffer; readonly more: boolean }> {
  const chunks: Uint8Array[] = []
  let length = 0
  // Leaving the loop cancels the rest of the body.
  for await (const chunk of response.body ?? []) {
    chunks.push(chunk as Uint8Array)
    length += (chunk as Uint8Array).length
    if (length > maxBytes) break
  }
  const bytes = Buffer.concat(chunks)
  return { bytes: bytes.subarray(0, maxBytes), more: bytes.length > maxBytes }
}

/** Bytes as text, in the character set that the content type names, else UTF-8. */
export function decodePage(bytes: Uint8Array, contentType: string | null): string {
  const charset = /charset="?([\w-]+)/i.exec(contentType ?? '')?.[1] ?? 'utf-8'
  try {
    return new TextDecoder(charset).decode(bytes)
  } catch {
    return new TextDecoder().decode(bytes)
  }
}

function readAfter(text: string, word: string): string {
  const place = text.indexOf(word)
  return place === -1 ? '' : text.slice(place + word.length)
}

const reasons: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'the server refused the connection',
  ECONNRESET: 'the server closed the connection',
  EAI_AGAIN: 'the name of the host cannot be looked up now',
  EHOSTUNREACH: 'there is no way to the host',
  ENETUNREACH: 'there is no way to the host',
  ENOTFOUND: 'there is no host of that name',
  ETIMEDOUT: 'the server did not answer the connection',
  UND_ERR_CONNECT_TIMEOUT: 'the server did not answer the connection',
  UND_ERR_HEADERS_OVERFLOW: 'the headers of the answer are too large',
  UND_ERR_SOCKET: 'the server closed the connection',
}

const maxDepth = 8

/**
 * A failed exchange as an error for the model: our own words where a rule refused it, else the reason by its code.
 * Messages of the network's libraries are not passed on, since they may name addresses and hold what was sent.
 */
export function describeFailure(thrown: unknown, show: (text: string) => string): ToolError {
  const chain: Error[] = []
  for (let error = thrown; error instanceof Error && chain.length < maxDepth;) {
    chain.push(error)
    error = error instanceof AggregateError ? (error.errors[0] ?? error.cause) : error.cause
  }
  const refused = chain.find((error) => error instanceof ToolError)
  if (refused) return new ToolError(show(refused.message), { outcome: refused.outcome })
  if (chain.some(({ message }) => message === 'bad port')) {
    return new ToolError(
      'The port of that URL belongs to another protocol, and this tool never connects to it.',
    )
  }
  const code = chain
    .map((error) => readCode(error))
    .find((found) => found !== undefined && /^[A-Z0-9_]+$/.test(found))
  const certificate = code !== undefined && /CERT|SIGNATURE|ERR_TLS|ERR_SSL/.test(code)
  const reason = certificate
    ? 'the connection cannot be trusted'
    : (reasons[code ?? ''] ?? 'the request failed')
  return new ToolError(`There is no answer: ${reason}${code === undefined ? '' : ` (${code})`}.`)
}

const known = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'] as const

/** A request method. */
export type Method = (typeof known)[number]

export function isWriting(methods: readonly Method[]): boolean {
  return methods.some((method) => method !== 'GET' && method !== 'HEAD')
}

/** The methods that a tool was given. Throws `ConfigurationError` for none, or an unknown one. */
export function listMethods(toolName: string, methods: readonly Method[]): readonly [Method, ...Method[]] {
  const [first, ...others] = methods
  const unknown = methods.find((method) => !known.includes(method))
  if (first !== undefined && unknown === undefined) return [first, ...others]
  throw new ConfigurationError(
    `The tool ${toolName} has ${unknown === undefined ? 'no method' : `the unknown method ${unknown}`}. Use some of ${known.join(', ')}.`,
  )
}
