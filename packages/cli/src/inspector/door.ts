import { randomBytes } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isSameSecret } from '@tallystick/core/internal'
import type { Authorize, Principal, Server } from '@tallystick/server'

/** What a browser has to know: where the server is, and a cookie. */
interface Secrets {
  readonly basePath: string
  readonly session: string
}

/** The name of the cookie. */
const cookieName = 'tallystick_inspector'

/**
 * Lets the browser of this user in to a server on this machine, and nobody else. A URL with a ticket, which counts once, becomes
 * a cookie that no script reads and no page of another site sends.
 *
 * Other users of the machine may listen on its other ports, and a browser that visits them there sends them each cookie of
 * 127.0.0.1 whose path fits. So the path of the server, and of its cookie, is a secret, too.
 */
export class Door {
  readonly #folder: string
  readonly #secrets: Secrets

  private constructor(folder: string, secrets: Secrets) {
    this.#folder = folder
    this.#secrets = secrets
  }

  /** Makes a door with secrets of its own, in a folder that only this user can open. */
  static make(): Door {
    const folder = mkdtempSync(join(tmpdir(), 'tallystick-inspector-'))
    const secrets: Secrets = { basePath: `/${drawSecret(12)}`, session: drawSecret(24) }
    writeFileSync(join(folder, secretsFile), JSON.stringify(secrets), { mode: 0o600 })
    return new Door(folder, secrets)
  }

  /** Opens the door that another process has made: pages that it let in stay in. */
  static open(folder: string): Door {
    return new Door(folder, JSON.parse(readFileSync(join(folder, secretsFile), 'utf8')) as Secrets)
  }

  /** Where the secrets are. */
  get folder(): string {
    return this.#folder
  }

  /** The path before those of the server. */
  get basePath(): string {
    return this.#secrets.basePath
  }

  /** Forgets the secrets, and with them every ticket. */
  remove(): void {
    rmSync(this.#folder, { recursive: true, force: true })
  }

  /** Returns the path of the page, with a new ticket. */
  issueTicket(): string {
    const ticket = drawSecret(24)
    // A file, so that whichever process answers, it counts once.
    writeFileSync(join(this.#folder, ticket), '', { mode: 0o600 })
    return `${this.pagePath}?ticket=${ticket}`
  }

  /** Returns true once, to whichever process asks first. */
  claimFirst(): boolean {
    try {
      writeFileSync(join(this.#folder, 'claimed'), '', { flag: 'wx' })
      return true
    } catch {
      return false
    }
  }

  get pagePath(): string {
    return `${this.basePath}/inspector`
  }

  #takeTicket(ticket: string): boolean {
    if (!/^[\w-]{32}$/.test(ticket)) return false
    try {
      rmSync(join(this.#folder, ticket))
      return true
    } catch {
      return false
    }
  }

  #isKnown({ headers }: Request): boolean {
    const cookies = (headers.get('cookie') ?? '').split(';').map((each) => each.trim())
    // A page of another path may have set a cookie of the same name, so each of them is looked at.
    return cookies.some((each) => isSameSecret(each, `${cookieName}=${this.#secrets.session}`))
  }

  /** Identifies a browser that was let in. */
  authorizeAs(principal: Principal): Authorize {
    return (request) => (this.#isKnown(request) ? principal : undefined)
  }

  /** Answers requests before a server does: refuses those of other pages, and lets those with a ticket in. */
  guard(server: Pick<Server, 'fetch'>, howToEnter: string): Server['fetch'] {
    return async (request) => {
      const url = new URL(request.url)
      const { pathname, searchParams } = url
      if (!isLoopbackHost(request.headers.get('host') ?? url.host)) {
        return respondPage(421, 'This is another host', `Open it as http://127.0.0.1:${url.port}.`)
      }
      const [first = ''] = pathname.slice(1).split('/')
      // The server's own answer would name its path.
      if (!isSameSecret(`/${first}`, this.basePath)) return respondPage(404, 'Nothing is here', howToEnter)
      if (isOfAnotherPage(request)) {
        return respondPage(403, 'Another page sent this', 'Only the inspector itself reads and sends here.')
      }
      const isPage = pathname === this.pagePath && request.method === 'GET'
      const ticket = isPage ? searchParams.get('ticket') : null
      if (ticket !== null) return this.#enter(request, ticket, howToEnter)
      if (isPage && !this.#isKnown(request)) {
        return respondPage(401, 'This browser was not let in', howToEnter)
      }
      return await server.fetch(request)
    }
  }

  #enter(request: Request, ticket: string, howToEnter: string): Response {
    // What a browser fetches before anyone asks may be thrown away, and the ticket with it.
    if (/prefetch|prerender/.test(request.headers.get('sec-purpose') ?? ''))
      return respondPage(503, 'Not yet', '')
    if (!this.#isKnown(request) && !this.#takeTicket(ticket)) {
      return respondPage(403, 'This link was used already, or its command has ended', howToEnter)
    }
    const { session, basePath } = this.#secrets
    // A page that leads on, since a browser sends a strict cookie along with no redirect that began on another site.
    return respondPage(200, 'Tallystick', '', {
      'set-cookie': `${cookieName}=${session}; Path=${basePath}; HttpOnly; SameSite=Strict`,
      refresh: `0;url=${this.pagePath}`,
    })
  }
}

const secretsFile = 'secrets.json'

function drawSecret(bytes: number): string {
  return randomBytes(bytes).toString('base64url')
}

/** A page of another site can let its own name lead to this machine; it cannot make a browser send one of these. */
function isLoopbackHost(host: string): boolean {
  const url = URL.parse(`http://${host}`)
  return url !== null && ['127.0.0.1', 'localhost', '[::1]'].includes(url.hostname)
}

/**
 * True for what another page loads, embeds or sends; following a link is allowed. A page on another port is of the same site,
 * and its requests have the cookies.
 */
function isOfAnotherPage({ method, headers }: Request): boolean {
  const site = headers.get('sec-fetch-site')
  if (site !== 'cross-site' && site !== 'same-site') return false
  const isLink = headers.get('sec-fetch-mode') === 'navigate' && headers.get('sec-fetch-dest') === 'document'
  return method !== 'GET' || !isLink
}

/** A page of a few words, which are ours. */
function respondPage(
  status: number,
  title: string,
  text: string,
  headers: Readonly<Record<string, string>> = {},
): Response {
  const html = `<!doctype html><html lang="en"><meta charset="utf-8"><title>${title}</title><h1>${title}</h1><p>${text}</p></html>`
  return new Response(html, {
    status,
    headers: {
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
      'cache-control': 'no-store',
      'referrer-policy': 'no-referrer',
      'x-content-type-options': 'nosniff',
      ...headers,
    },
  })
}
