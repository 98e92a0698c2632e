// When a server counts as gone by its streams of events.
import { describe, expect, it } from 'vitest'
import { watchStreams } from '../../../src/mcp/fetch.ts'

const url = 'http://127.0.0.1:9/mcp'
const stream = { method: 'GET', headers: { accept: 'application/json, text/event-stream' } }

/** A fetch that answers with these statuses, one after the other, and cannot connect for 0; and how often the server was gone. */
function watched(...statuses: readonly number[]) {
  const left = [...statuses]
  let gone = 0
  const refused = new TypeError('fetch failed')
  const inner = async (): Promise<Response> => {
    const status = left.shift() ?? 0
    if (status === 0) throw refused
    return new Response(null, { status })
  }
  const ask = watchStreams(inner, url, () => gone++)
  const asked = async (init: RequestInit = stream, at: string | URL = url): Promise<unknown> =>
    await ask(at, init).then(
      ({ status }) => status,
      (error: unknown) => error === refused,
    )
  return { asked, gone: () => gone }
}

describe('a server with a stream of events', () => {
  it('is gone each time that the stream was open once and cannot be opened, and the failure is passed on', async () => {
    const { asked, gone } = watched(200, 0, 0)
    expect(await asked()).toBe(200)
    expect(gone()).toBe(0)
    expect([await asked(), await asked(stream, new URL(url))]).toEqual([true, true])
    expect(gone()).toBe(2)
  })

  it('is there as long as it answers, whatever it answers', async () => {
    const { asked, gone } = watched(200, 503, 404, 0)
    expect([await asked(), await asked(), await asked()]).toEqual([200, 503, 404])
    expect(gone()).toBe(0)
    await asked()
    expect(gone()).toBe(1)
  })

  it('is not gone where a stream was never open', async () => {
    const { asked, gone } = watched(405, 0)
    expect([await asked(), await asked()]).toEqual([405, true])
    expect(gone()).toBe(0)
  })

  it.each<[string, RequestInit, string?]>([
    ['a call', { ...stream, method: 'POST' }],
    ['what is not a stream', { method: 'GET', headers: { accept: 'application/json' } }],
    ['a request without headers', {}],
    ['another address', stream, 'http://127.0.0.1:9/.well-known/oauth-authorization-server'],
    ['a request that was aborted', { ...stream, signal: AbortSignal.abort() }],
  ])('is not gone where %s fails', async (_what, init, at) => {
    const { asked, gone } = watched(200, 0)
    await asked()
    expect(await asked(init, at)).toBe(true)
    expect(gone()).toBe(0)
  })

  it('is asked for the stream with GET where no method is named, as the older transport does', async () => {
    const { asked, gone } = watched(200, 0)
    await asked({ headers: stream.headers })
    await asked({ headers: stream.headers })
    expect(gone()).toBe(1)
  })
})
