// An MCP server that wants a token, and the authorization server that gives it, at one URL.
import { createHash, randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { toNodeHandler } from '@modelcontextprotocol/node'
import { createMcpHandler } from '@modelcontextprotocol/server'
import { faultyServer } from './faulty-tools.ts'
import { served, type ServedUrl } from './http-servers.ts'

/** The site, and what it gave out. */
export interface OAuthSite extends ServedUrl {
  readonly clients: string[]
  /** The tokens that it takes. */
  readonly tokens: Set<string>
  /** Access and refresh tokens that were given out, in order. */
  readonly given: string[]
}

/** What a test changes of the site. */
export interface SiteOptions {
  /** The page where users agree. Default: its own, on which they do so at once. */
  readonly authorizationEndpoint?: string
  /** The one method that wants a token. Default: each does. */
  readonly wantsTokenFor?: string
  /** Whether it takes the tokens that it gave. Default: it does. */
  readonly takesTokens?: boolean
  /** Whether it gives tokens by which others are renewed. Default: it does. */
  readonly renewsTokens?: boolean
}

interface Asked {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly origin: string
  readonly query: URLSearchParams
}

function say(response: ServerResponse, body: object, status = 200): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}

/** Serves the tools of the faulty server to those who have a token. */
export async function oauthSite({
  authorizationEndpoint,
  wantsTokenFor,
  takesTokens = true,
  renewsTokens = true,
}: SiteOptions = {}): Promise<OAuthSite> {
  const clients: string[] = []
  const given: string[] = []
  const tokens = new Set<string>()
  const refreshes = new Set<string>()
  const challenges = new Map<string, string>()
  const answerMcp = toNodeHandler(
    createMcpHandler(() => faultyServer(), { legacy: 'stateless', keepAliveMs: 0 }),
  )
  const issued = (): object => {
    const [access, refresh] = [`access-${randomUUID()}`, `refresh-${randomUUID()}`]
    given.push(access, refresh)
    const token = { access_token: access, token_type: 'Bearer', expires_in: 3_600 }
    if (takesTokens) tokens.add(access)
    if (!renewsTokens) return token
    refreshes.add(refresh)
    return { ...token, refresh_token: refresh }
  }
  const tokenFor = (form: URLSearchParams): object | undefined => {
    if (form.get('grant_type') === 'refresh_token') {
      return refreshes.delete(form.get('refresh_token') ?? '') ? issued() : undefined
    }
    const challenge = challenges.get(form.get('code') ?? '')
    challenges.delete(form.get('code') ?? '')
    const verifier = createHash('sha256')
      .update(form.get('code_verifier') ?? '')
      .digest('base64url')
    return challenge === verifier ? issued() : undefined
  }
  const metadata = (origin: string): object => ({
    issuer: origin,
    authorization_endpoint: authorizationEndpoint ?? `${origin}/authorize`,
    token_endpoint: `${origin}/token`,
    registration_endpoint: `${origin}/register`,
    response_types_supported: ['code'],
    code_challenge_methods_supported: ['S256'],
    token_endpoint_auth_methods_supported: ['none'],
  })
  const answers: Readonly<Record<string, (asked: Asked) => void | Promise<void>>> = {
    '/.well-known/oauth-protected-resource/mcp': ({ response, origin }) =>
      say(response, { resource: `${origin}/mcp`, authorization_servers: [origin] }),
    '/.well-known/oauth-authorization-server': ({ response, origin }) => say(response, metadata(origin)),
    async '/register'({ request, response }) {
      const asked = JSON.parse(await text(request)) as object
      const id = `client-${clients.length}`
      clients.push(id)
      say(response, { ...asked, client_id: id }, 201)
    },
    '/authorize'({ response, query }) {
      const code = randomUUID()
      challenges.set(code, query.get('code_challenge') ?? '')
      const back = new URL(query.get('redirect_uri') ?? '')
      back.search = String(new URLSearchParams({ code, state: query.get('state') ?? '' }))
      response.writeHead(302, { location: back.href }).end()
    },
    async '/token'({ request, response }) {
      const token = tokenFor(new URLSearchParams(await text(request)))
      if (token === undefined) say(response, { error: 'invalid_grant' }, 400)
      else say(response, token)
    },
    '/mcp'({ request, response, origin }) {
      const [, token = ''] = request.headers.authorization?.split(' ') ?? []
      const method = request.headers['mcp-method'] ?? ''
      const isOpen = wantsTokenFor !== undefined && wantsTokenFor !== method
      if (isOpen || tokens.has(token)) return answerMcp(request as Parameters<typeof answerMcp>[0], response)
      const challenge = `Bearer resource_metadata="${origin}/.well-known/oauth-protected-resource/mcp"`
      response.writeHead(401, { 'www-authenticate': challenge }).end()
    },
  }
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const origin = `http://${request.headers.host}`
    const { pathname, searchParams: query } = new URL(request.url ?? '/', origin)
    const known = answers[pathname]
    if (known === undefined) response.writeHead(404).end()
    else await known({ request, response, origin, query })
  }
  const server = await served((request, response) => void answer(request, response))
  return Object.assign(server, { clients, tokens, given })
}
