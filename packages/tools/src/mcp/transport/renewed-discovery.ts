import type { client } from '../options/client-library.ts'

/**
 * A fetch that has a provider of OAuth forget which authorization server it found, where the server refuses a token: it may
 * have moved to another one, and what is kept would lead to the old one again.
 */
export function renewedDiscovery(
  inner: client.FetchLike,
  serverUrl: string,
  provider: client.AuthProvider | client.OAuthClientProvider | undefined,
): client.FetchLike {
  if (provider === undefined || !('invalidateCredentials' in provider)) return inner
  const { href } = new URL(serverUrl)
  return async (url, init) => {
    const response = await inner(url, init)
    const hadToken = new Headers(init?.headers).has('authorization')
    if (response.status === 401 && hadToken && new URL(url).href === href) {
      await provider.invalidateCredentials?.('discovery')
    }
    return response
  }
}
