import type {
  AuthProvider,
  OAuthClientProvider,
  StoredOAuthClientInformation,
  StoredOAuthTokens,
} from '@modelcontextprotocol/client'
import type { HttpServer } from '@tallystick/tools/mcp'

const redirectUrl = 'http://localhost:3000/callback'

/** OAuth with a user who agrees at once: the authorization page redirects, and what it says is taken. */
export function clicksThrough({
  client_id,
  client_secret,
}: {
  readonly client_id?: string
  readonly client_secret?: string
}): Pick<HttpServer, 'authProvider' | 'authorizationCallback'> & {
  readonly authProvider: AuthProvider | OAuthClientProvider
} {
  let client: StoredOAuthClientInformation | undefined =
    client_id === undefined ? undefined : { client_id, ...(client_secret !== undefined && { client_secret }) }
  let tokens: StoredOAuthTokens | undefined
  let verifier = ''
  let discovery: unknown
  let answer = new URLSearchParams()
  const authProvider: OAuthClientProvider = {
    redirectUrl,
    clientMetadataUrl: 'https://conformance-test.local/client-metadata.json',
    clientMetadata: {
      client_name: 'tallystick',
      redirect_uris: [redirectUrl],
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      token_endpoint_auth_method: 'client_secret_post',
      application_type: 'native',
    },
    clientInformation: () => client,
    saveClientInformation(given) {
      client = given
    },
    tokens: () => tokens,
    saveTokens(given) {
      tokens = given
    },
    async redirectToAuthorization(url) {
      const response = await fetch(url, { redirect: 'manual' })
      answer = new URL(response.headers.get('location') ?? url).searchParams
    },
    saveCodeVerifier(given) {
      verifier = given
    },
    codeVerifier: () => verifier,
    discoveryState: () => discovery as never,
    saveDiscoveryState(state: unknown) {
      discovery = state
    },
    invalidateCredentials(scope) {
      if (scope === 'all' || scope === 'client') client = undefined
      if (scope === 'all' || scope === 'tokens') tokens = undefined
      if (scope === 'all' || scope === 'verifier') verifier = ''
      if (scope === 'all' || scope === 'discovery') discovery = undefined
    },
  }
  return { authProvider, authorizationCallback: () => answer }
}
