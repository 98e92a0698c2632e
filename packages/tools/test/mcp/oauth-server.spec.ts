import { readFileSync, statSync, writeFileSync } from 'node:fs'
import type { OAuthClientProvider } from '@modelcontextprotocol/client'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { once } from 'node:events'
import { join } from 'node:path'
import { ConfigurationError, joinText } from '@tallystick/core'
import { manualClock } from '@tallystick/testkit'
import { type McpManager, mcpTools, type OAuthOptions, oauthServer } from '@tallystick/tools/mcp'
import { describe, expect, it, onTestFinished } from 'vitest'
import { connect, tick } from './connected.ts'
import { findFreePort } from '../../../../scripts/testing/free-port.ts'
import { type OAuthSite, oauthSite } from './servers/oauth-site.ts'
import { temporaryFolder } from '../../../../scripts/testing/temporary-folder.ts'

/** A user who agrees on each page at once. */
const agrees = (url: string): void => void fetch(url)

async function options(more: Partial<OAuthOptions> = {}): Promise<OAuthOptions> {
  const folder = temporaryFolder()
  return { file: join(folder, 'tokens.json'), redirectPort: await findFreePort(), open: agrees, ...more }
}

const echo = async (manager: McpManager, text: string): Promise<string> =>
  joinText(await manager.call('docs', 'echo', { text }))

const isReady = (manager: McpManager): unknown =>
  manager.servers.map(({ state, faults }) => [state, ...faults])

describe('a server to which a user signs in', () => {
  it('asks for that once; the tokens are kept for its owner alone, and serve the next process', async () => {
    const site = await oauthSite()
    const given = await options()
    const first = await connect({ docs: oauthServer(site.url, given) })
    expect(isReady(first)).toEqual([['ready']])
    expect(await echo(first, 'hello')).toBe('hello')
    expect(statSync(given.file).mode & 0o777).toBe(0o600)
    const asked: string[] = []
    const next = await connect({
      docs: oauthServer(site.url, { ...given, open: (url) => void asked.push(url) }),
    })
    expect(isReady(next)).toEqual([['ready']])
    expect(asked).toEqual([])
    expect(site.clients).toHaveLength(1)
  })

  it('has a token renewed that has ended, without the user', async () => {
    const site = await oauthSite()
    const pages: string[] = []
    const given = await options({
      open: (url) => {
        pages.push(url)
        agrees(url)
      },
    })
    const manager = await connect({ docs: oauthServer(site.url, given) })
    site.tokens.clear()
    expect(await echo(manager, 'again')).toBe('again')
    expect(pages).toHaveLength(1)
    expect(site.given).toHaveLength(4)
  })

  it('says no token again: neither the first nor one that was renewed', async () => {
    const site = await oauthSite()
    const manager = await connect({ docs: oauthServer(site.url, await options()) })
    site.tokens.clear()
    await echo(manager, 'renew')
    const [first = '', , second = ''] = site.given
    expect(await echo(manager, `it is ${first} or ${second}.`)).toBe('it is [secret] or [secret].')
  })

  it('may be two, which wait for the user at the same time at one port', async () => {
    const [one, other] = [await oauthSite(), await oauthSite()]
    const pages: string[] = []
    const given = await options({ open: (url) => void pages.push(url) })
    const starting = mcpTools({
      servers: { docs: oauthServer(one.url, given), more: oauthServer(other.url, given) },
    })
    while (pages.length < 2) await tick()
    for (const page of pages.toReversed()) agrees(page)
    const manager = await starting
    onTestFinished(() => manager.close())
    expect(isReady(manager)).toEqual([['ready'], ['ready']])
    const kept = JSON.parse(readFileSync(given.file, 'utf8')) as object
    expect(Object.keys(kept).sort()).toEqual([one.url, other.url].sort())
  })
})

describe('the way back of the browser', () => {
  async function waiting(more: Partial<OAuthOptions> = {}, site?: OAuthSite) {
    const { url } = site ?? (await oauthSite())
    const pages: URL[] = []
    const given = await options({ open: (page) => void pages.push(new URL(page)), ...more })
    const clock = manualClock()
    const starting = mcpTools({
      servers: { docs: { ...oauthServer(url, given), startMs: 1_000 } },
      timers: clock,
    })
    while (pages.length === 0) await tick()
    const back = pages[0]?.searchParams.get('redirect_uri') ?? ''
    return { starting, clock, back, page: pages[0]?.href ?? '' }
  }

  it('is listened for as long as the user takes, longer than a server may take to start', async () => {
    const { starting, clock, page } = await waiting()
    clock.advance(60_000)
    agrees(page)
    const manager = await starting
    onTestFinished(() => manager.close())
    expect(isReady(manager)).toEqual([['ready']])
  })

  it('is not taken by a page that does not know the state', async () => {
    const { starting, back, page } = await waiting()
    for (const query of ['', '?code=evil', '?code=evil&state=guess', '?error=access_denied&state=']) {
      expect((await fetch(`${back}${query}`)).status).toBe(400)
    }
    agrees(page)
    const manager = await starting
    onTestFinished(() => manager.close())
    expect(isReady(manager)).toEqual([['ready']])
  })

  it('says that the user refused, and nothing is listened for then', async () => {
    const { starting, back, page } = await waiting()
    const state = new URL(page).searchParams.get('state') ?? ''
    await fetch(`${back}?error=access_denied&state=${state}`)
    const manager = await starting
    onTestFinished(() => manager.close())
    expect(isReady(manager)).toEqual([['failed', expect.stringContaining('access_denied')]])
    await expect(fetch(back)).rejects.toThrow('fetch failed')
  })

  it('is given up after its time', async () => {
    const clock = manualClock()
    const { starting, back } = await waiting({ waitMs: 2_000, timers: clock })
    clock.advance(2_000)
    const manager = await starting
    onTestFinished(() => manager.close())
    expect(isReady(manager)).toEqual([['failed', expect.stringContaining('no browser came back')]])
    await expect(fetch(back)).rejects.toThrow('fetch failed')
  })
})

describe('a user who is asked during a call', () => {
  async function refused(): Promise<{ manager: McpManager; pages: string[]; site: OAuthSite }> {
    const site = await oauthSite()
    const pages: string[] = []
    const given = await options({
      open: (url) => {
        pages.push(url)
        if (pages.length === 1) agrees(url)
      },
    })
    const manager = await connect({ docs: oauthServer(site.url, given) })
    site.tokens.clear()
    const kept = JSON.parse(readFileSync(given.file, 'utf8')) as Record<string, { tokens: object }>
    const [one] = Object.values(kept)
    writeFileSync(
      given.file,
      JSON.stringify({ [site.url]: { ...one, tokens: { ...one?.tokens, refresh_token: 'ended' } } }),
    )
    return { manager, pages, site }
  }

  it('lets the call succeed by signing in', async () => {
    const { manager, pages } = await refused()
    const call = echo(manager, 'after all')
    while (pages.length < 2) await tick()
    agrees(pages[1] ?? '')
    expect(await call).toBe('after all')
  })

  it('does not hold a call that is cancelled, nor the manager that closes', async () => {
    const { manager, pages } = await refused()
    const abort = new AbortController()
    const call = manager.call('docs', 'echo', { text: 'x' }, { signal: abort.signal })
    while (pages.length < 2) await tick()
    abort.abort(new Error('enough'))
    await expect(call).rejects.toThrow('enough')
    await manager.close()
  })
})

describe('what an authorization server learns of a program', () => {
  const provider = async (more: Partial<OAuthOptions> = {}) =>
    oauthServer('https://a.example/mcp', await options(more)).authProvider as OAuthClientProvider

  it('is its name, where it is reached, and what it asks for', async () => {
    const { redirectPort } = await options()
    const plain = await provider({ redirectPort })
    const redirect = `http://127.0.0.1:${redirectPort}/callback`
    const always = {
      ...{ redirect_uris: [redirect], grant_types: ['authorization_code', 'refresh_token'] },
      ...{ response_types: ['code'], application_type: 'native' },
    }
    expect(plain.redirectUrl).toBe(redirect)
    expect(plain.clientMetadata).toStrictEqual({
      ...{ ...always, client_name: 'Tallystick', token_endpoint_auth_method: 'none' },
    })
    const own = await provider({ redirectPort, clientName: 'Shop', clientSecret: 's', scope: 'read' })
    expect(own.clientMetadata).toStrictEqual({
      ...{ ...always, client_name: 'Shop', token_endpoint_auth_method: 'client_secret_post', scope: 'read' },
    })
    const { redirectPort: _port, ...others } = await options()
    expect(oauthServer('https://a.example/mcp', others).authProvider).toMatchObject({
      redirectUrl: 'http://127.0.0.1:8976/callback',
    })
  })

  it('is the client that it was given, or the one that was registered', async () => {
    const given = await provider({ clientId: 'c' })
    expect(given.clientInformation()).toStrictEqual({ client_id: 'c' })
    expect((await provider({ clientId: 'c', clientSecret: 's' })).clientInformation()).toStrictEqual({
      ...{ client_id: 'c', client_secret: 's' },
    })
    const own = await provider()
    expect(own.clientInformation()).toBeUndefined()
    await own.saveClientInformation?.({ client_id: 'registered' })
    expect(own.clientInformation()).toMatchObject({ client_id: 'registered' })
  })

  it('is forgotten as far as that is asked for', async () => {
    const own = await provider()
    const tokens = { access_token: 'a', token_type: 'Bearer' }
    const discovery = { authorizationServerUrl: 'https://a.example' }
    const fill = async (): Promise<void> => {
      await own.saveClientInformation?.({ client_id: 'c' })
      await own.saveTokens(tokens)
      await own.saveDiscoveryState?.(discovery)
      await own.saveCodeVerifier('v')
    }
    const left = async (scope: 'all' | 'client' | 'tokens' | 'verifier' | 'discovery') => {
      await fill()
      await own.invalidateCredentials?.(scope)
      return [
        (await own.clientInformation()) !== undefined && 'client',
        (await own.tokens()) !== undefined && 'tokens',
        (await own.discoveryState?.()) !== undefined && 'discovery',
        (await own.codeVerifier()) !== '' && 'verifier',
      ].filter((each) => each !== false)
    }
    expect(await left('client')).toEqual(['tokens', 'discovery', 'verifier'])
    expect(await left('tokens')).toEqual(['client', 'discovery', 'verifier'])
    expect(await left('discovery')).toEqual(['client', 'tokens', 'verifier'])
    expect(await left('verifier')).toEqual(['client', 'tokens', 'discovery'])
    expect(await left('all')).toEqual([])
  })

  it('is a state that others cannot guess', async () => {
    const own = await provider()
    const [one, other] = [await own.state?.(), await own.state?.()]
    expect(one).toMatch(/^[\w-]{43}$/)
    expect(other).not.toBe(one)
  })
})

describe('what cannot work', () => {
  it('is refused with the reason', async () => {
    const given = await options()
    expect(() => oauthServer('file:///mcp', given)).toThrow(ConfigurationError)
    expect(() => oauthServer('https://a.example/mcp', { ...given, redirectPort: 0 })).toThrow('redirectPort')
    expect(() => oauthServer('https://a.example/mcp', { ...given, port: 1 } as never)).toThrow('redirectPort')
  })

  it('is refused by the option, and named as it is called here', async () => {
    const given = await options()
    const made = (more: object) => () => oauthServer('https://a.example/mcp', { ...given, ...more })
    for (const redirectPort of [1, 65_535]) expect(made({ redirectPort })).not.toThrow()
    for (const wrong of [
      ...[{ redirectPort: 65_536 }, { redirectPort: 1.5 }, { waitMs: 0 }, { file: '' }, { open: 'x' }],
      ...[{ scope: '' }, { clientId: '' }, { clientSecret: '' }, { clientName: '' }, { timers: 1 }],
    ])
      expect(made(wrong)).toThrow(`oauthServer: ${Object.keys(wrong)[0]}`)
    const names = { path: 'file', store: 'file', port: 'redirectPort', timeoutMs: 'waitMs', scopes: 'scope' }
    for (const [other, meant] of Object.entries(names))
      expect(made({ [other]: 'x' })).toThrow(`Did you mean ${meant}?`)
  })

  it('is named: a file that holds something else, without what it holds', async () => {
    const site = await oauthSite()
    const given = await options()
    writeFileSync(given.file, 'sekret-0123456789')
    const manager = await connect({ docs: oauthServer(site.url, given) })
    const [server] = manager.servers
    expect(server?.faults.join()).toContain(`the file of tokens ${given.file} holds something else`)
    expect(server?.faults.join()).not.toContain('sekret')
  })

  it('is named: a port that is taken', async () => {
    const site = await oauthSite()
    const taken = createServer().listen(0, '127.0.0.1')
    await once(taken, 'listening')
    onTestFinished(() => void taken.close())
    const given = await options({ redirectPort: (taken.address() as AddressInfo).port })
    const manager = await connect({ docs: oauthServer(site.url, given) })
    expect(manager.servers[0]?.faults.join()).toContain('Give another redirectPort.')
  })

  it('is never opened: a page that is not a page', async () => {
    for (const authorizationEndpoint of ['file:///etc/passwd', 'x-own-app://run?it=1']) {
      const pages: string[] = []
      const site = await oauthSite({ authorizationEndpoint })
      const given = await options({ open: (url) => void pages.push(url) })
      const manager = await connect({ docs: oauthServer(site.url, given) })
      expect(manager.servers[0]?.state).toBe('failed')
      expect(pages).toEqual([])
    }
  })
})
