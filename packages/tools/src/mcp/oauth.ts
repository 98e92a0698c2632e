import { randomBytes, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { ConfigurationError } from '@tallystick/core'
import { omitUndefined, option, requireOptions, readCode } from '@tallystick/core/internal'
import { createHttpServer, type Timers, unheldTimers } from '../host.ts'
import type { client } from './client-library.ts'
import { waitUnlessAborted } from './deadline.ts'
import { type HttpServer, isHttpUrl, type McpQuestion } from './options.ts'

/** How a user signs in to a server. */
export interface OAuthOptions {
  /** Where tokens are kept, in a file that only its owner can read. Servers may share one. */
  readonly file: string
  /** Shows the user the authorization page, at this URL: opens a browser, or prints it. */
  readonly open: (url: string) => void | Promise<void>
  /** The port on this machine that the browser comes back to. Default 8976. */
  readonly redirectPort?: number | undefined
  /** Milliseconds that the user has. Default 300 000. */
  readonly waitMs?: number | undefined
  /** The scope to request. Default: what the server says. */
  readonly scope?: string | undefined
  /** The client, if one is registered at the authorization server already. Default: a new one is registered. */
  readonly clientId?: string | undefined
  readonly clientSecret?: string | undefined
  /** The name that the authorization page shows for this program. Default `Tallystick`. */
  readonly clientName?: string | undefined
  /** The clock that `waitMs` is measured by. Default: the host's. */
  readonly timers?: Timers | undefined
}

const { anyFunction, anyObject, fields, filledText, maybe, milliseconds, valueThat } = option

const oauthOptions = fields<OAuthOptions>(
  {
    file: filledText,
    open: anyFunction,
    redirectPort: maybe(
      valueThat(
        'a port from 1 to 65 535',
        (value) => Number.isInteger(value) && Number(value) >= 1 && Number(value) <= 65_535,
      ),
    ),
    waitMs: maybe(milliseconds),
    scope: maybe(filledText),
    clientId: maybe(filledText),
    clientSecret: maybe(filledText),
    clientName: maybe(filledText),
    timers: maybe(anyObject),
  },
  { path: 'file', store: 'file', port: 'redirectPort', timeoutMs: 'waitMs', scopes: 'scope' },
)

const serverUrl = valueThat('an http: or https: URL', isHttpUrl)

/**
 * A server at a URL, to which a user signs in with OAuth: the first time in a browser, later with the tokens that are kept. Give it
 * as one of the `servers` of `mcpTools`, with more options of a server where they are needed.
 *
 * Throws a `ConfigurationError` for options that cannot work.
 */
export function oauthServer(url: string, options: OAuthOptions): HttpServer {
  requireOptions('oauthServer: the URL', serverUrl, url)
  requireOptions('oauthServer', oauthOptions, options)
  const { redirectPort = 8_976, waitMs = 300_000, timers = unheldTimers } = options
  const { clientId, clientSecret, clientName = 'Tallystick', scope } = options
  const file = openTokenFile(options.file, new URL(url).href)
  const memory: { verifier?: string; redirect?: Promise<Redirect> } = {}
  const authProvider: client.OAuthClientProvider = {
    redirectUrl: toRedirectUrl(redirectPort),
    clientMetadata: {
      client_name: clientName,
      redirect_uris: [toRedirectUrl(redirectPort)],
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      token_endpoint_auth_method: clientSecret === undefined ? 'none' : 'client_secret_post',
      application_type: 'native',
      ...omitUndefined({ scope }),
    },
    state: () => randomBytes(32).toString('base64url'),
    clientInformation: () =>
      clientId === undefined
        ? file.read().client
        : { client_id: clientId, ...omitUndefined({ client_secret: clientSecret }) },
    saveClientInformation: (kept) => file.change({ client: kept }),
    tokens: () => file.read().tokens,
    saveTokens: (tokens) => file.change({ tokens }),
    saveCodeVerifier: (verifier) => void (memory.verifier = verifier),
    codeVerifier: () => memory.verifier ?? '',
    discoveryState: () => file.read().discovery,
    saveDiscoveryState: (discovery) => file.change({ discovery }),
    invalidateCredentials(scope) {
      if (scope === 'verifier' || scope === 'all') delete memory.verifier
      if (scope === 'all') file.change({ client: undefined, tokens: undefined, discovery: undefined })
      else if (scope !== 'verifier') file.change({ [scope]: undefined })
    },
    async redirectToAuthorization(page) {
      // A server says where its page is, and programs that open URLs start other programs for other protocols.
      if (!isHttpUrl(page.href)) {
        throw new Error(`the authorization page has a URL of ${page.protocol}, which is not opened`)
      }
      const before = memory.redirect
      // Each page has a state of its own, also where two calls are refused at the same time.
      const state = page.searchParams.get('state') ?? ''
      const next = listenForRedirect(state, redirectPort, waitMs, timers)
      memory.redirect = next
      // Only the last page leads to tokens: what waits for the one before waits for this one.
      await Promise.allSettled([next, before?.then((redirect) => redirect.stop())])
      await next
      await options.open(page.href)
    },
  }
  const authorizationCallback = async ({ signal }: McpQuestion): Promise<URLSearchParams> => {
    for (let last: Redirect | undefined; ;) {
      const redirect = await memory.redirect
      if (redirect === undefined || redirect === last) throw new Error('no authorization page was shown')
      last = redirect
      const answer = await redirect.answer(signal)
      if (answer !== undefined) return answer
    }
  }
  return { url, authProvider, authorizationCallback }
}

/** Where a browser comes back to after the authorization page. Only this machine reaches it. */
export function toRedirectUrl(port: number): string {
  return `http://127.0.0.1:${port}/callback`
}

interface Redirect {
  /**
   * Resolves with what the browser comes back with, or with nothing when it is stopped. Rejects when it takes too long, or with
   * the reason of the signal. Nothing is listened for afterwards.
   */
  answer(signal: AbortSignal): Promise<URLSearchParams | undefined>
  /** Listens no longer. */
  stop(): void
}

/** By their ports, which all that wait for a browser share. */
const listeners = new Map<number, ReturnType<typeof listen>>()

/**
 * Listens for a browser that comes back with a state, which other programs cannot guess. A request without it changes nothing.
 * Rejects if the port cannot be had.
 */
export async function listenForRedirect(
  state: string,
  port: number,
  waitMs: number,
  timers: Timers,
): Promise<Redirect> {
  const listener = listeners.get(port) ?? listen(port)
  const { waiting, server } = listener
  const late = new AbortController()
  const cancelTimer = timers.schedule(waitMs, () => {
    late.abort(new Error(`no browser came back from the authorization page within ${waitMs} ms`))
    stop()
  })
  const came = new Promise<URLSearchParams | undefined>((resolve) => void waiting.set(state, resolve))
  const stop = (): void => {
    cancelTimer()
    waiting.get(state)?.()
    waiting.delete(state)
    if (waiting.size > 0 || listeners.get(port) !== listener) return
    listeners.delete(port)
    server.close()
    server.closeIdleConnections()
  }
  try {
    await listener.listening
  } catch (error) {
    stop()
    const why = error instanceof Error ? error.message : String(error)
    throw new ConfigurationError(
      `oauthServer: it cannot listen for the browser at ${toRedirectUrl(port)} (${why}). Give another redirectPort.`,
      { cause: error },
    )
  }
  return {
    stop,
    async answer(signal) {
      server.ref()
      return await waitUnlessAborted(came, AbortSignal.any([signal, late.signal])).finally(stop)
    },
  }
}

function listen(port: number) {
  /** By their states, which say to which of them a browser comes back. */
  const waiting = new Map<string, (parameters?: URLSearchParams) => void>()
  const server = createHttpServer((request, response, { pathname, searchParams }) => {
    const state = searchParams.get('state') ?? ''
    const resolve = pathname === '/callback' && request.method === 'GET' ? waiting.get(state) : undefined
    response.setHeader('content-type', 'text/plain; charset=utf-8')
    response.setHeader('connection', 'close')
    if (resolve === undefined) {
      response.writeHead(400).end('No sign-in waits for this. Begin it again in the program.')
      return
    }
    waiting.delete(state)
    const refused = searchParams.has('error')
    response.end(
      refused ? 'The sign-in was refused. You can close this page.' : 'You can close this page now.',
    )
    resolve(searchParams)
  })
  // A browser that is not waited for yet keeps no process alive.
  server.unref()
  const listening: Promise<unknown> = once(server, 'listening')
  server.listen(port, '127.0.0.1')
  const listener = { server, listening, waiting }
  listeners.set(port, listener)
  return listener
}

interface Kept {
  readonly client?: client.StoredOAuthClientInformation | undefined
  readonly tokens?: client.StoredOAuthTokens | undefined
  readonly discovery?: client.OAuthDiscoveryState | undefined
}

/**
 * The tokens of the server at a URL, in a file that may hold those of others. It is read each time, since other processes
 * change it; only its owner can read it, and it is replaced at once.
 */
export function openTokenFile(
  path: string,
  url: string,
): {
  read(): Kept
  /** Changes what is given, and keeps the rest; `undefined` removes. */
  change(kept: Kept): void
} {
  const all = (): Readonly<Record<string, Kept>> => {
    let text: string
    try {
      text = readFileSync(path, 'utf8')
    } catch (error) {
      if (readCode(error) === 'ENOENT') return {}
      throw createUnusable(path, 'cannot be read', error)
    }
    try {
      const read: unknown = JSON.parse(text)
      if (typeof read === 'object' && read !== null && !Array.isArray(read))
        return read as Record<string, Kept>
    } catch {
      // Reported below, without the content of the file.
    }
    throw createUnusable(path, 'holds something else')
  }
  const read = (): Kept => {
    const every = all()
    return Object.hasOwn(every, url) ? Object(every[url]) : {}
  }
  return {
    read,
    change(kept) {
      const next = Object.fromEntries([
        ...Object.entries(all()).filter(([each]) => each !== url),
        [url, { ...read(), ...kept }],
      ])
      const beside = `${path}.${randomUUID()}.tmp`
      try {
        writeFileSync(beside, `${JSON.stringify(next, null, 2)}\n`, { flag: 'wx', mode: 0o600 })
        renameSync(beside, path)
      } catch (error) {
        rmSync(beside, { force: true })
        throw createUnusable(path, 'cannot be written', error)
      }
    },
  }
}

function createUnusable(path: string, what: string, cause?: unknown): ConfigurationError {
  const code = readCode(cause)
  return new ConfigurationError(
    `oauthServer: the file of tokens ${path} ${what}${code === undefined ? '' : ` (${code})`}. Give another path, or delete it and sign in again.`,
    { cause },
  )
}
