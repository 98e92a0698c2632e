import { randomBytes } from 'node:crypto'
import type { client } from '../options/client-library.ts'
import { option, requireOptions } from '@tallystick/core/kit'
import { type Timers, unheldTimers } from '../../built-in/timers.ts'
import type { McpQuestion } from '../options/hooks.ts'
import { type HttpServer, isHttpUrl } from '../options/server-options.ts'
import { expectRedirect, type Redirect, redirectUrlOf } from './redirect-listener.ts'
import { type Kept, tokenFile } from './token-file.ts'

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
  const file = tokenFile(options.file, new URL(url).href)
  const memory: { verifier?: string; redirect?: Promise<Redirect> } = {}
  const authProvider: client.OAuthClientProvider = {
    redirectUrl: redirectUrlOf(redirectPort),
    clientMetadata: clientMetadataOf(options, redirectPort),
    state: () => randomBytes(32).toString('base64url'),
    clientInformation: () => givenClient(options) ?? file.read().client,
    saveClientInformation: (kept) => file.change({ client: kept }),
    tokens: () => file.read().tokens,
    saveTokens: (tokens) => file.change({ tokens }),
    saveCodeVerifier: (verifier) => void (memory.verifier = verifier),
    codeVerifier: () => memory.verifier ?? '',
    discoveryState: () => file.read().discovery,
    saveDiscoveryState: (discovery) => file.change({ discovery }),
    invalidateCredentials(scope) {
      if (scope === 'verifier' || scope === 'all') delete memory.verifier
      if (scope !== 'verifier') file.change(removed[scope])
    },
    async redirectToAuthorization(page) {
      // A server says where its page is, and programs that open URLs start other programs for other protocols.
      if (!isHttpUrl(page.href)) {
        throw new Error(`the authorization page has a URL of ${page.protocol}, which is not opened`)
      }
      const before = memory.redirect
      // Each page has a state of its own, also where two calls are refused at the same time.
      const state = page.searchParams.get('state') ?? ''
      const next = expectRedirect(state, redirectPort, waitMs, timers)
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

const removed: Readonly<Record<'all' | 'client' | 'tokens' | 'discovery', Kept>> = {
  all: { client: undefined, tokens: undefined, discovery: undefined },
  client: { client: undefined },
  tokens: { tokens: undefined },
  discovery: { discovery: undefined },
}

function givenClient({ clientId, clientSecret }: OAuthOptions): client.OAuthClientInformation | undefined {
  if (clientId === undefined) return undefined
  return { client_id: clientId, ...(clientSecret !== undefined && { client_secret: clientSecret }) }
}

function clientMetadataOf(
  { clientName = 'Tallystick', clientSecret, scope }: OAuthOptions,
  redirectPort: number,
): client.OAuthClientMetadata {
  return {
    client_name: clientName,
    redirect_uris: [redirectUrlOf(redirectPort)],
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    token_endpoint_auth_method: clientSecret === undefined ? 'none' : 'client_secret_post',
    application_type: 'native',
    ...(scope !== undefined && { scope }),
  }
}
