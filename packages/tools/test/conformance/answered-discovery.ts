import type { FetchLike } from '@modelcontextprotocol/client'

/**
 * Answers `server/discover` in the place of those servers of the suite that do not know it, though the revision that they
 * speak has it.
 */
export function answeredDiscovery(inner: FetchLike): FetchLike {
  return async (url, init) => {
    const response = await inner(url, init)
    const body = typeof init?.body === 'string' ? init.body : ''
    if (!body.includes('"server/discover"')) return response
    const { id } = JSON.parse(body) as { readonly id: number }
    const answer = await response.clone().text()
    if (answer.includes('"supportedVersions"') || response.status === 401) return response
    const result = {
      resultType: 'complete',
      supportedVersions: ['2026-07-28'],
      capabilities: { tools: {} },
      serverInfo: { name: 'suite', version: '1' },
      ttlMs: 0,
      cacheScope: 'private',
    }
    return Response.json({ jsonrpc: '2.0', id, result })
  }
}
