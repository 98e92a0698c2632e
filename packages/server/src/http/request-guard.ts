import { RefusedRequestError } from './problem.ts'

/** Parameters that carry a secret in other APIs. A URL is logged and shared, so none of them is read. */
const secretParameters = ['token', 'access_token', 'api_key', 'apikey', 'authorization', 'bearer']

/** Refuses a URL that carries a secret. */
export function requireNoSecretInUrl(url: URL): void {
  const name = [...url.searchParams.keys()].find((key) => secretParameters.includes(key.toLowerCase()))
  if (name === undefined) return
  throw new RefusedRequestError(
    400,
    'secret_in_url',
    `The URL carries a secret (${name}), and URLs are logged. Send it as the header authorization: Bearer …, and replace it by a new one.`,
  )
}

const safeMethods = new Set(['GET', 'HEAD', 'OPTIONS'])

/** Whether a request reads only. */
export function isRead(request: Request): boolean {
  return safeMethods.has(request.method)
}

/**
 * Refuses a command from a page of another origin: a browser sends the cookies of its user along. A client that is no
 * browser sends neither `Origin` nor `Sec-Fetch-Site`.
 */
export function requireOwnOrigin(request: Request, url: URL, origins: readonly string[]): void {
  if (isRead(request)) return
  const origin = request.headers.get('origin')
  if (origin !== null && (isOwn(origin, request, url) || origins.includes(origin))) return
  const site = request.headers.get('sec-fetch-site')
  if (origin === null && (site === null || site === 'same-origin' || site === 'none')) return
  throw new RefusedRequestError(
    403,
    'cross_origin',
    'This page is of another origin. Name its origin in the option `origins` of the server, if it may send commands.',
  )
}

/** A proxy may speak TLS for the server, so the host decides and the scheme does not. */
function isOwn(origin: string, request: Request, url: URL): boolean {
  const host = request.headers.get('host') ?? url.host
  return URL.canParse(origin) && new URL(origin).host === host
}

/** The names of this machine for itself. */
const loopbackHosts = new Set(['localhost', '127.0.0.1', '[::1]'])

/** Whether a host name leads to this machine only. */
export function isLoopback(host: string): boolean {
  return loopbackHosts.has(host) || loopbackHosts.has(`[${host}]`) || /^127\.\d+\.\d+\.\d+$/.test(host)
}

/** Refuses a request under a name that only looks local: a page can have its own name resolve to this machine. */
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
