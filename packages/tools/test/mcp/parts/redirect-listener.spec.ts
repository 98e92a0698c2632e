// The page that a browser comes back to after a sign-in, over loopback.
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { manualClock } from '@tallystick/testkit'
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { listenForRedirect, toRedirectUrl } from '../../../src/mcp/oauth.ts'

let port = 0
beforeEach(async () => {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  port = (server.address() as AddressInfo).port
  server.close()
  await once(server, 'close')
})

const never = new AbortController().signal
async function waiting(state: string, clock = manualClock()) {
  const redirect = await listenForRedirect(state, port, 1_000, clock)
  onTestFinished(() => redirect.stop())
  return redirect
}

/** What a browser reads there. */
async function page(query: string, { method = 'GET', path = '/callback' } = {}) {
  const response = await fetch(new URL(`${path}${query}`, toRedirectUrl(port)), { method })
  const { status, headers } = response
  return { status, text: await response.text(), type: headers.get('content-type') }
}
const type = 'text/plain; charset=utf-8'
const refused = { status: 400, text: 'No sign-in waits for this. Begin it again in the program.', type }

describe('the way back of a browser', () => {
  it('is taken once, by the one that knows the state', async () => {
    const redirect = await waiting('s')
    const answer = redirect.answer(never)
    expect(await page('?code=c&state=other')).toEqual(refused)
    expect(await page('?code=c&state=s', { path: '/' })).toEqual(refused)
    expect(await page('?code=c&state=s', { method: 'POST' })).toEqual(refused)
    expect(await page('')).toEqual(refused)
    expect(await page('?code=c&state=s')).toEqual({ status: 200, text: 'You can close this page now.', type })
    expect(Object.fromEntries((await answer) ?? [])).toEqual({ code: 'c', state: 's' })
    await expect(page('?code=c&state=s')).rejects.toThrow('fetch failed')
  })

  it('says to a user who refused that this was understood', async () => {
    const redirect = await waiting('s')
    const answer = redirect.answer(never)
    expect((await page('?error=no&state=s')).text).toBe('The sign-in was refused. You can close this page.')
    expect((await answer)?.get('error')).toBe('no')
  })

  it('is shared by all that wait at one port, until the last of them', async () => {
    const [one, other] = [await waiting('one'), await waiting('other')]
    const stopped = one.answer(never)
    one.stop()
    expect(await stopped).toBeUndefined()
    expect(await page('?state=one')).toEqual(refused)
    const answer = other.answer(never)
    expect((await page('?state=other')).status).toBe(200)
    await answer
    await expect(page('?state=other')).rejects.toThrow('fetch failed')
    const again = await waiting('again')
    one.stop()
    other.stop()
    const last = again.answer(never)
    expect((await page('?state=again')).status).toBe(200)
    expect((await last)?.get('state')).toBe('again')
  })

  it('is given up after its time, or when it is not wanted any more, and leaves no timer', async () => {
    const clock = manualClock()
    const redirect = await waiting('s', clock)
    const late = redirect.answer(never)
    clock.advance(999)
    expect((await page('?state=x')).status).toBe(400)
    clock.advance(1)
    await expect(late).rejects.toThrow('no browser came back from the authorization page within 1000 ms')
    await expect(page('?state=s')).rejects.toThrow('fetch failed')
    const abort = new AbortController()
    const other = (await waiting('s', clock)).answer(abort.signal)
    abort.abort(new Error('enough'))
    await expect(other).rejects.toThrow('enough')
    expect(clock.pending).toBe(0)
    await expect(page('?state=s')).rejects.toThrow('fetch failed')
  })

  it('cannot be had where another program listens, which is said, and nothing is left of it', async () => {
    const taken = createServer().listen(port, '127.0.0.1')
    await once(taken, 'listening')
    const clock = manualClock()
    await expect(listenForRedirect('s', port, 1_000, clock)).rejects.toThrow(
      /^oauthServer: it cannot listen for the browser at http:\/\/127\.0\.0\.1:\d+\/callback \(listen EADDRINUSE.*\)\. Give another redirectPort\.$/,
    )
    expect(clock.pending).toBe(0)
    taken.close()
    await once(taken, 'close')
    const redirect = await waiting('s', clock)
    expect((await page('?state=x')).status).toBe(400)
    redirect.stop()
  })
})
