import type { RunResult } from '@tallystick/core'
import { ContextOfRecord, defaultHost } from '@tallystick/core/kit'
import { Hono } from 'hono'
import { RefusedRequestError, isServerFault, problemResponse } from '../http/problem.ts'
import { isRead, requireLoopbackHost, requireNoSecretInUrl, requireOwnOrigin } from '../http/request-guard.ts'
import { crossOriginHeaders, isPreflight } from '../http/cross-origin.ts'
import { newToken, tokenOwner } from '../access/own-token.ts'
import { sealedPlaces } from '../access/sealed-places.ts'
import { requirePrincipal } from '../access/principal.ts'
import { facadeErrorResponse } from '../facade/facade-error.ts'
import { addA2a } from '../protocol-routes/a2a.ts'
import { addOpenAi } from '../protocol-routes/openai.ts'
import { addAgUi } from '../ag-ui/routes.ts'
import { addAgents } from '../routes/agents.ts'
import { addAllEvents } from '../routes/all-events.ts'
import { addChat } from '../ai-sdk/routes.ts'
import { addCommands } from '../routes/run-commands.ts'
import { addEvents } from '../routes/run-events.ts'
import { addOpenApi } from '../routes/openapi.ts'
import { addReads } from '../routes/run-reads.ts'
import { addStarts } from '../routes/run-start.ts'
import { addSessions } from '../routes/sessions.ts'
import type { RequestScope, Served } from '../routes/served.ts'
import { SharedReads } from '../stream/shared-reads.ts'
import { noSuchPath } from './no-such-path.ts'
import { requireServerOptions, type ServerOptions } from './server-options.ts'

/** A server of runs, for any host that speaks `Request` and `Response`. */
export interface Server {
  /** Answers a request. Never rejects: a failure is a response. */
  readonly fetch: (request: Request) => Promise<Response>
  /** Without `authorize`: what a request sends as `authorization: Bearer …`. */
  readonly token?: string
  /**
   * For a stop signal: starts nothing new, gives work in flight up to `graceMs` (5 seconds) to end, ends the streams
   * after the last event, and returns the runs as they stopped. Readers reconnect to another process.
   */
  drain(graceMs?: number): Promise<readonly RunResult[]>
}

/** Serves the runs of a ledger over HTTP. Throws a `ConfigurationError` for options that cannot work. */
export function createServer(options: ServerOptions): Server {
  requireServerOptions(options)
  const { runtime, basePath = '', clock = defaultHost.clock, report = defaultHost.report } = options
  const { ledger } = runtime
  const token = options.authorize ? undefined : newToken()
  const stop = new AbortController()
  let isDraining = false
  const served: Served = {
    runtime,
    ledger,
    agents: new Map(options.agents.map((agent) => [agent.name, agent])),
    context: options.context && new ContextOfRecord(options.context),
    basePath,
    body: {
      maxBodyBytes: options.maxBodyBytes ?? 1_000_000,
      bodyTimeoutMs: options.bodyTimeoutMs ?? 10_000,
      clock,
    },
    places: sealedPlaces(options.placeSecret),
    reads: new SharedReads(ledger),
    stream: { clock, heartbeatMs: options.heartbeatMs ?? 15_000, stopping: stop.signal, report },
  }
  const app = appOf(served, options, token)
  const handle = async (request: Request): Promise<Response> => {
    try {
      if (isDraining && !isRead(request)) throw stopping()
      return await app.fetch(request)
    } catch (error) {
      if (isServerFault(error)) report(error, `${request.method} ${new URL(request.url).pathname} failed`)
      const { pathname } = new URL(request.url)
      return pathname.startsWith(`${basePath}/v1/`) ? facadeErrorResponse(error) : problemResponse(error)
    }
  }
  return {
    fetch: async (request) => withHeaders(await handle(request), request, options.origins ?? []),
    ...(token !== undefined && { token }),
    async drain(graceMs) {
      isDraining = true
      try {
        return await runtime.drain(graceMs)
      } finally {
        stop.abort()
      }
    },
  }
}

function appOf(served: Served, options: ServerOptions, token: string | undefined): Hono<RequestScope> {
  const app = new Hono<RequestScope>().basePath(served.basePath === '' ? '/' : served.basePath)
  const { origins = [], maxHeaderBytes = 16_384, admit } = options
  const authorize = options.authorize ?? tokenOwner(token ?? '')
  app.onError((error) => {
    throw error
  })
  app.notFound(({ req: { method, path } }) => {
    const roots = app.routes.map((route) => route.path.slice(served.basePath.length).split('/')[1] ?? '')
    throw new RefusedRequestError(404, 'not_found', noSuchPath({ method, path }, served.basePath, roots))
  })
  app.use(async (context, next) => {
    const request = context.req.raw
    const url = new URL(request.url)
    requireMethod(request)
    requireShortHeaders(request, maxHeaderBytes)
    if (token !== undefined) requireLoopbackHost(request, url)
    requireNoSecretInUrl(url)
    requireOwnOrigin(request, url, origins)
    if (isPreflight(request, origins)) return new Response(null, { status: 204 })
    const bare = new Request(url, { method: request.method, headers: request.headers })
    const principal = await authorize(bare)
    if (principal === undefined) throw unknownCaller()
    requirePrincipal(principal)
    await requireAdmitted(await admit?.(bare, principal))
    context.set('principal', principal)
    return await next()
  })
  addAgents(app, served)
  addStarts(app, served)
  addReads(app, served)
  addEvents(app, served)
  addCommands(app, served)
  addAllEvents(app, served)
  addSessions(app, served)
  addChat(app, served)
  addAgUi(app, served)
  addOpenAi(app, served)
  addA2a(app, served)
  addOpenApi(app, served)
  return app
}

/** Adds the headers of every response: no page of another origin reads it, and no browser guesses its type. */
function withHeaders(response: Response, request: Request, origins: readonly string[]): Response {
  const headers = new Headers(response.headers)
  headers.set('x-content-type-options', 'nosniff')
  for (const [name, value] of crossOriginHeaders(request, origins)) headers.set(name, value)
  return new Response(response.body, { status: response.status, headers })
}

/** A `Request` cannot be made of these methods, which echo or tunnel: no code of an application would meet them. */
const unservedMethods = new Set(['TRACE', 'TRACK', 'CONNECT'])

function requireMethod({ method }: Request): void {
  if (!unservedMethods.has(method.toUpperCase())) return
  throw new RefusedRequestError(
    405,
    'method_not_allowed',
    `${method} is not answered here. Send GET or POST; GET /openapi.json describes every path.`,
    { headers: { allow: 'GET, HEAD, POST, OPTIONS' } },
  )
}

function requireShortHeaders(request: Request, maxBytes: number): void {
  let length = request.url.length
  for (const [name, value] of request.headers) length += name.length + value.length + 4
  if (length <= maxBytes) return
  throw new RefusedRequestError(
    413,
    'headers_too_large',
    `The headers are longer than ${maxBytes} characters. Send fewer, or shorter ones.`,
  )
}

async function requireAdmitted(admission: boolean | number | undefined): Promise<void> {
  if (admission === undefined || admission === true) return
  throw new RefusedRequestError(
    429,
    'too_many_requests',
    'You send more requests than you may. Wait before the next one.',
    {
      headers: { 'retry-after': String(admission === false ? 1 : Math.max(1, Math.ceil(admission))) },
    },
  )
}

function unknownCaller(): RefusedRequestError {
  return new RefusedRequestError(
    401,
    'unauthorized',
    'The request names no caller that this server knows. Send authorization: Bearer TOKEN.',
    { headers: { 'www-authenticate': 'Bearer' } },
  )
}

function stopping(): RefusedRequestError {
  return new RefusedRequestError(
    503,
    'stopping',
    'This process stops. Send the request again, to another one.',
  )
}
