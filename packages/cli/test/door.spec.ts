import { existsSync, statSync } from 'node:fs'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createRuntime, memoryLedger } from '@tallystick/core'
import { createServer } from '@tallystick/server'
import { Door } from '../src/inspector/door.ts'

const origin = 'http://127.0.0.1:4000'

/** A door, and a server behind it. */
function openDoor(): {
  readonly door: Door
  readonly send: (
    path: string,
    headers?: Readonly<Record<string, string>>,
    method?: string,
  ) => Promise<Response>
  /** Enters, and returns the cookie. */
  readonly enter: () => Promise<string>
} {
  const door = Door.make()
  onTestFinished(() => door.remove())
  const server = createServer({
    runtime: createRuntime({ ledger: memoryLedger() }),
    agents: [],
    basePath: door.basePath,
    authorize: door.authorizeAs({ name: 'ann', sees: 'everything', may: ['cancel'] }),
    inspector: true,
  })
  const answer = door.guard(server, 'Ask for a link.')
  const send = (path: string, headers = {}, method = 'GET'): Promise<Response> =>
    answer(new Request(origin + path, { method, headers: { host: '127.0.0.1:4000', ...headers } }))
  return {
    door,
    send,
    async enter() {
      const entered = await send(door.issueTicket())
      return entered.headers.get('set-cookie')?.split(';')[0] ?? ''
    },
  }
}

describe('the door of the inspector', () => {
  it('makes of a ticket a cookie for one path that no script reads and no other site sends', async () => {
    const { door, send } = openDoor()
    const entered = await send(door.issueTicket())
    expect(entered.status).toBe(200)
    expect(entered.headers.get('refresh')).toBe(`0;url=${door.basePath}/inspector`)
    const cookie = entered.headers.get('set-cookie') ?? ''
    expect(cookie).toMatch(/^tallystick_inspector=[\w-]{32}; Path=\/[\w-]{16}; HttpOnly; SameSite=Strict$/)
    expect(cookie).toContain(`Path=${door.basePath};`)
    const self = await send(`${door.basePath}/inspector/self`, { cookie: `other=1; ${cookie.split(';')[0]}` })
    expect(await self.json()).toMatchObject({
      name: 'ann',
      may: expect.arrayContaining(['cancel']) as string[],
    })
  })

  it('takes a ticket once, also in a process after the one that issued it, and lets who is in stay in', async () => {
    const { door, send } = openDoor()
    const ticket = door.issueTicket()
    const entered = await send(ticket)
    const again = await send(ticket)
    expect([again.status, again.headers.get('set-cookie')]).toEqual([403, null])
    expect(await again.text()).toContain('Ask for a link.')
    const cookie = entered.headers.get('set-cookie')?.split(';')[0] ?? ''
    expect((await send(ticket, { cookie })).status).toBe(200)
    const next = Door.open(door.folder)
    const answer = next.guard({ fetch: async () => new Response('in') }, 'Ask.')
    const sendNext = (path: string): Promise<Response> => answer(new Request(origin + path))
    expect((await sendNext(ticket)).status).toBe(403)
    expect((await sendNext(door.issueTicket())).status).toBe(200)
    expect(
      next.authorizeAs({ name: 'ann', sees: 'everything' })(new Request(origin, { headers: { cookie } })),
    ).toBeDefined()
  })

  it('does not spend a ticket on what a browser fetches in advance, nor on a HEAD', async () => {
    const { door, send } = openDoor()
    const ticket = door.issueTicket()
    expect((await send(ticket, { 'sec-purpose': 'prefetch;prerender' })).status).toBe(503)
    expect((await send(ticket, {}, 'HEAD')).status).toBe(401)
    expect((await send(ticket)).status).toBe(200)
  })

  it.each([
    'short',
    '.'.repeat(32),
    '../secrets.json',
    'secrets.json',
    'a'.repeat(32),
    '%2e%2e%2fsecrets.json',
    '\u0000'.repeat(32),
  ])('refuses a ticket that it never issued: %j', async (ticket) => {
    const { door, send, enter } = openDoor()
    const refused = await send(`${door.basePath}/inspector?ticket=${encodeURIComponent(ticket)}`)
    expect([refused.status, refused.headers.get('set-cookie')]).toEqual([403, null])
    // What it keeps is still there.
    expect(await enter()).toMatch(/^tallystick_inspector=/)
    expect(Door.open(door.folder).basePath).toBe(door.basePath)
  })

  it('says nothing of its path to those who do not know it', async () => {
    const { door, send } = openDoor()
    const cookie = await openDoor().enter()
    for (const path of [
      '/',
      '/inspector',
      '/runs',
      '/openapi.json',
      `${door.basePath}x/runs`,
      '//',
      '/favicon.ico',
    ]) {
      const answer = await send(path, { cookie })
      expect([path, answer.status]).toEqual([path, 404])
      expect(await answer.text()).not.toContain(door.basePath.slice(1))
    }
    expect((await send(`${door.basePath}/runs`, { cookie })).status).toBe(401)
    expect((await send(`${door.basePath}/inspector`, { cookie })).status).toBe(401)
  })

  it.each([
    ['a name that leads here', { host: 'evil.example:4000' }, 421],
    ['a name that only begins like this machine', { host: '127.0.0.1.evil.example' }, 421],
    ['no host at all', { host: 'a b' }, 421],
    ['a tunnel of this user', { host: 'localhost:9000' }, 200],
    ['an image on another site', { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'no-cors' }, 403],
    ['a script on another port', { 'sec-fetch-site': 'same-site', 'sec-fetch-mode': 'cors' }, 403],
    [
      'a frame of another page',
      { 'sec-fetch-site': 'same-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'iframe' },
      403,
    ],
    [
      'a link on another page',
      { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' },
      200,
    ],
    ['the page itself', { 'sec-fetch-site': 'same-origin', 'sec-fetch-mode': 'cors' }, 200],
  ])('answers %s as it should', async (_, headers, status) => {
    const { door, send, enter } = openDoor()
    const cookie = await enter()
    expect((await send(`${door.basePath}/runs`, { cookie, ...headers })).status).toBe(status)
  })

  it.each([
    ['another site', { origin: 'https://evil.example' }],
    ['another port', { origin: 'http://127.0.0.1:4001' }],
    ['another scheme of its own address', { origin: 'null' }],
    [
      'a form of another site',
      { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' },
    ],
  ])('refuses a command from %s, whatever cookie comes with it', async (_, headers) => {
    const { door, send, enter } = openDoor()
    const cookie = await enter()
    const path = `${door.basePath}/runs/01a20ad2-04d4-72fd-99e7-7861fc19641d/cancel`
    expect((await send(path, { cookie, ...headers }, 'POST')).status).toBe(403)
    expect((await send(path, { cookie, origin }, 'POST')).status).toBe(404)
  })

  it('keeps its secrets where no other user looks, and forgets them', () => {
    const { door } = openDoor()
    expect(statSync(door.folder).mode & 0o077).toBe(0)
    door.remove()
    expect(existsSync(door.folder)).toBe(false)
  })
})
