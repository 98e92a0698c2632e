// When a user is asked for an authorization, and how often.
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type HttpServer, type McpManager, oauthServer } from '@tallystick/tools/mcp'
import type { OAuthClientProvider } from '@modelcontextprotocol/client'
import { describe, expect, it } from 'vitest'
import { connect, said } from '../connected.ts'
import { findFreePort } from '../../../../../scripts/testing/free-port.ts'
import { type OAuthSite, oauthSite } from '../servers/oauth-site.ts'
import { scriptedServer } from '../servers/scripted-server.ts'
import { temporaryFolder } from '../../../../../scripts/testing/temporary-folder.ts'

/** A site, a user who agrees at once on the pages that a test says, and how often the answer of that user was waited for. */
async function signedIn(
  options: Parameters<typeof oauthSite>[0],
  agrees = (_page: string): boolean => true,
  more: Partial<HttpServer> = {},
): Promise<{ readonly manager: McpManager; readonly site: OAuthSite; readonly asked: () => number }> {
  const site = await oauthSite(options)
  const folder = temporaryFolder()
  // The page that comes after the last answer leads nowhere.
  const open = (url: string): void => {
    if (agrees(url)) void fetch(url).catch(() => {})
  }
  const server = oauthServer(site.url, {
    ...{ file: join(folder, 'tokens.json'), redirectPort: await findFreePort(), open },
  })
  let asked = 0
  const authorizationCallback: typeof server.authorizationCallback = (question) => {
    asked++
    return server.authorizationCallback?.(question) ?? new URLSearchParams()
  }
  const manager = await connect({ bad: { ...server, ...more, authorizationCallback } })
  return { manager, site, asked: () => asked }
}

const moments = [
  ['for its handshake', {}],
  ['for the list of its tools alone', { wantsTokenFor: 'tools/list' }],
] as const

describe('a server that wants an authorization', () => {
  it.each(moments)(
    'given it wants one %s, when it is started, then the user is asked once',
    async (_when, site) => {
      const { manager, asked } = await signedIn(site)
      expect(manager.servers).toMatchObject([{ state: 'ready', faults: [] }])
      expect(await said(manager, 'echo', { text: 'hi' })).toBe('hi')
      expect(asked()).toBe(1)
    },
  )

  it.each(moments)(
    'given it takes none %s, when it is started, then the user is asked twice, and it has failed',
    async (_when, site) => {
      const { manager, asked } = await signedIn({ ...site, takesTokens: false, renewsTokens: false })
      expect(manager.servers).toMatchObject([
        { state: 'failed', faults: [expect.stringContaining('nauthorized')] },
      ])
      expect(asked()).toBe(2)
    },
  )

  it('given it refuses two calls at the same time, when the user agrees on the last page, then both are answered, and so the next time', async () => {
    const pages: string[] = []
    const { manager, site, asked } = await signedIn({ renewsTokens: false }, (page) => {
      pages.push(page)
      return pages.length !== 2
    })
    for (const shown of [3, 4]) {
      site.tokens.clear()
      const calls = ['one', 'other'].slice(0, 5 - shown).map((text) => said(manager, 'echo', { text }))
      expect(await Promise.all(calls)).toEqual(['one', 'other'].slice(0, 5 - shown))
      expect([pages.length, asked()]).toEqual([shown, shown - 1])
    }
  })

  it('given a call is under way, when another is refused and the user agrees, then both are answered', async () => {
    const held = Promise.withResolvers<void>()
    const begun = Promise.withResolvers<void>()
    const holding: typeof fetch = async (url, init) => {
      const response = await fetch(url, init)
      if (typeof init?.body !== 'string' || !init.body.includes('slowly')) return response
      const closed = new Promise<never>((_, reject) => {
        init?.signal?.addEventListener('abort', () => reject(new Error('closed')))
      })
      begun.resolve()
      await Promise.race([held.promise, closed])
      return response
    }
    const { manager, site } = await signedIn({ renewsTokens: false }, undefined, { fetch: holding })
    const slow = said(manager, 'echo', { text: 'slowly' })
    await begun.promise
    site.tokens.clear()
    expect(await said(manager, 'echo', { text: 'another' })).toBe('another')
    held.resolve()
    expect(await slow).toBe('slowly')
  })

  it('given another failure of the list of its tools, when it is started, then the user is not asked', async () => {
    const { url } = await scriptedServer({
      'tools/list': ({ response }) => response.writeHead(500).end('full'),
    })
    let asked = 0
    const server = oauthServer(url, { file: join(tmpdir(), 'tallystick-no-tokens.json'), open: () => {} })
    const authorizationCallback = async (): Promise<URLSearchParams> => {
      asked++
      return new URLSearchParams()
    }
    const manager = await connect({ own: { ...server, era: 'legacy', authorizationCallback } })
    expect(manager.servers).toMatchObject([{ state: 'failed', faults: ['Error POSTing to endpoint: full'] }])
    expect(asked).toBe(0)
  })
})

describe('the answer of a user', () => {
  it('given no page, or one that is not waited for any more, then there is no answer', async () => {
    const server = oauthServer('https://a.example/mcp', {
      ...{
        file: join(tmpdir(), 'tallystick-no-tokens.json'),
        redirectPort: await findFreePort(),
        open: () => {},
      },
    })
    const provider = server.authProvider as OAuthClientProvider
    const answer = (signal: AbortSignal): Promise<unknown> =>
      Promise.resolve(server.authorizationCallback?.({ server: 'own', signal }))
    const { signal } = new AbortController()
    await expect(answer(signal)).rejects.toThrow('no authorization page was shown')
    await provider.redirectToAuthorization(new URL('https://a.example/authorize'))
    await expect(answer(AbortSignal.abort(new Error('enough')))).rejects.toThrow('enough')
    await expect(answer(signal)).rejects.toThrow('no authorization page was shown')
  })

  it('given two pages at the same time, when the browser comes back from the last, then that is the answer', async () => {
    const redirectPort = await findFreePort()
    const server = oauthServer('https://a.example/mcp', {
      ...{ file: join(tmpdir(), 'tallystick-no-tokens.json'), redirectPort, open: () => {} },
    })
    const provider = server.authProvider as OAuthClientProvider
    const { signal } = new AbortController()
    const states = [await provider.state?.(), await provider.state?.()]
    const shown = states.map((state) =>
      provider.redirectToAuthorization(new URL(`https://a.example/?state=${state}`)),
    )
    await shown[0]
    const answer = server.authorizationCallback?.({ server: 'own', signal })
    await shown[1]
    const back = await fetch(`http://127.0.0.1:${redirectPort}/callback?code=c&state=${states[1]}`)
    expect(back.status).toBe(200)
    expect((await answer)?.get('code')).toBe('c')
  })
})
