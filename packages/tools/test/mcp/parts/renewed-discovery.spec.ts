// When a provider of OAuth forgets which authorization server it found.
import type { FetchLike, OAuthClientProvider } from '@modelcontextprotocol/client'
import { describe, expect, it } from 'vitest'
import { renewDiscovery } from '../../../src/mcp/fetch.ts'

const url = 'https://a.example/mcp'
const token = { headers: { authorization: 'Bearer t' } }

/** Fetches with an answer of this status, and returns what is forgotten. */
async function forgotten(status: number, at: string | URL, init?: RequestInit): Promise<readonly string[]> {
  const scopes: string[] = []
  const provider = { invalidateCredentials: (scope) => void scopes.push(scope) } as OAuthClientProvider
  const answer = new Response(null, { status })
  const fetching = renewDiscovery(async () => answer, url, provider)
  expect(await fetching(at, init)).toBe(answer)
  return scopes
}

describe('an authorization server that was found', () => {
  it('given a server that refuses a token, then it is forgotten', async () => {
    expect(await forgotten(401, url, token)).toEqual(['discovery'])
    expect(await forgotten(401, new URL(url), token)).toEqual(['discovery'])
  })

  it('given another answer, another URL, or no token, then it is kept', async () => {
    expect(await forgotten(200, url, token)).toEqual([])
    expect(await forgotten(403, url, token)).toEqual([])
    expect(await forgotten(401, 'https://a.example/token', token)).toEqual([])
    expect(await forgotten(401, url, {})).toEqual([])
    expect(await forgotten(401, url)).toEqual([])
  })

  it('given a provider that cannot forget, or none, then nothing is done', async () => {
    const inner: FetchLike = async () => new Response(null, { status: 401 })
    expect(renewDiscovery(inner, url, undefined)).toBe(inner)
    expect(renewDiscovery(inner, url, { token: async () => 't' })).toBe(inner)
    const unable = { invalidateCredentials: undefined } as unknown as OAuthClientProvider
    expect((await renewDiscovery(inner, url, unable)(url, token)).status).toBe(401)
  })
})
