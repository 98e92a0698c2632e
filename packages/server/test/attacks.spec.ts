import { connect, type Socket } from 'node:net'
import { once } from 'node:events'
import { describe, expect, it } from 'vitest'
import { manualClock } from '@tallystick/testkit'
import { answerOf, openOffice, tellingAgent, type Office } from './kit/office.ts'

/** Writes to a connection, and answers what came back until it was closed. */
async function exchange(office: Office, ...texts: readonly string[]): Promise<string> {
  const socket = connect(office.listening.port, '127.0.0.1')
  await once(socket, 'connect')
  for (const text of texts) if (!socket.destroyed) socket.write(text)
  return await readAll(socket)
}

async function readAll(socket: Socket): Promise<string> {
  let text = ''
  socket.on('data', (data) => (text += data.toString()))
  // A server that has refused a request may close the connection before it is written whole.
  socket.on('error', () => {})
  await new Promise((resolve) => socket.once('close', resolve))
  return text
}

const start = { agent: 'office', input: 'Pay.' }
const authorization = 'authorization: Bearer boss\r\n'

describe('a request from a page of another origin', () => {
  it('starts and decides nothing', async () => {
    const office = await openOffice()
    const origins: readonly Readonly<Record<string, string>>[] = [
      { origin: 'https://evil.example' },
      { origin: 'null' },
      { origin: `http://127.0.0.1:1` },
      { 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'same-site' },
    ]
    for (const headers of origins) {
      const answer = await answerOf(await office.send('/runs', 'boss', start, headers))
      expect({ headers, ...answer }).toMatchObject({ headers, status: 403, code: 'cross_origin' })
    }
    expect((await answerOf(await office.send('/runs')))['runs']).toEqual([])
    const own = { origin: office.listening.url, 'sec-fetch-site': 'same-origin' }
    expect((await office.send('/runs', 'boss', start, own)).status).toBe(201)
  })

  it('is one by the host that the client asked for, whatever the server is called behind its proxy', async () => {
    const office = await openOffice()
    const statusOf = async (origin: string, host?: string): Promise<number> => {
      const asked = { ...(host !== undefined && { host }), 'content-type': 'application/json' }
      const headers = { ...asked, origin, authorization: 'Bearer boss' }
      const request = { method: 'POST', body: JSON.stringify(start), headers }
      const { status } = await office.server.fetch(new Request('http://inner.example/runs', request))
      return status
    }
    expect(await statusOf('https://shop.example', 'shop.example')).toBe(201)
    expect(await statusOf('http://inner.example', 'shop.example')).toBe(403)
    expect(await statusOf('http://inner.example')).toBe(201)
    expect(await statusOf('https://shop.example')).toBe(403)
  })

  it('is not served as the form that a page may post without asking', async () => {
    const office = await openOffice()
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data', '']) {
      const response = await office.send('/runs', 'boss', start, { 'content-type': type })
      expect(await answerOf(response)).toMatchObject({ status: 415, code: 'unsupported_media_type' })
    }
  })

  it('reads nothing, unless its origin is named', async () => {
    const app = 'https://app.example'
    const closed = await openOffice()
    const open = await openOffice({ origins: [app] })
    const allowed = (response: Response): string | null => response.headers.get('access-control-allow-origin')
    expect(allowed(await closed.send('/agents', 'boss', undefined, { origin: app }))).toBe(null)
    expect(allowed(await open.send('/agents', 'boss', undefined, { origin: app }))).toBe(app)
    expect(allowed(await open.send('/agents', 'boss', undefined, { origin: 'https://evil.example' }))).toBe(
      null,
    )
    expect((await open.send('/runs', 'boss', start, { origin: app })).status).toBe(201)
    const preflight = { method: 'OPTIONS', headers: { origin: app, 'access-control-request-method': 'POST' } }
    const asked = await fetch(`${open.listening.url}/runs`, preflight)
    expect([asked.status, allowed(asked)]).toEqual([204, app])
    expect((await fetch(`${closed.listening.url}/runs`, preflight)).status).toBe(401)
  })
})

describe('a body', () => {
  it('of 100 MB is refused by its length, before it is sent', async () => {
    const office = await openOffice()
    const head = `POST /runs HTTP/1.1\r\nhost: 127.0.0.1\r\n${authorization}content-type: application/json\r\n`
    const answer = await exchange(office, `${head}content-length: 104857600\r\n\r\n{"agent":`)
    expect(answer).toMatch(/^HTTP\/1\.1 413 /)
    expect(answer).toContain('"code":"body_too_large"')
  })

  it('that says no length is read up to the limit, and no further', async () => {
    const office = await openOffice({ maxBodyBytes: 10_000 })
    let sent = 0
    const endless = new ReadableStream<Uint8Array>({
      pull(controller) {
        sent += 4_096
        controller.enqueue(new Uint8Array(4_096).fill(32))
      },
    })
    const response = await fetch(`${office.listening.url}/runs`, {
      method: 'POST',
      body: endless,
      duplex: 'half',
      headers: { authorization: 'Bearer boss', 'content-type': 'application/json' },
    })
    expect(await answerOf(response)).toMatchObject({ status: 413, code: 'body_too_large' })
    expect(sent).toBeLessThan(10_000_000)
  })

  it('that does not arrive is given up after its time', async () => {
    const clock = manualClock()
    const office = await openOffice({ clock, bodyTimeoutMs: 5_000 })
    const socket = connect(office.listening.port, '127.0.0.1')
    const answer = readAll(socket)
    socket.write(
      `POST /runs HTTP/1.1\r\nhost: 127.0.0.1\r\n${authorization}content-type: application/json\r\n`,
    )
    socket.write('content-length: 100\r\n\r\n{')
    while (clock.pending === 0) await new Promise(setImmediate)
    clock.advance(5_000)
    expect(await answer).toContain('"code":"body_too_slow"')
  })

  it('that is not JSON, no UTF-8 or nested without end is refused', async () => {
    const office = await openOffice()
    const post = (body: string | Uint8Array<ArrayBuffer>): Promise<Response> =>
      fetch(`${office.listening.url}/runs`, {
        method: 'POST',
        body,
        headers: { authorization: 'Bearer boss', 'content-type': 'application/json; charset=utf-8' },
      })
    const bodies = ['{', '[]', 'null', '"x"', new Uint8Array([0x22, 0xff, 0x22]), '['.repeat(400_000)]
    for (const body of bodies) {
      expect(await answerOf(await post(body))).toMatchObject({ status: 400, code: 'malformed' })
    }
    const polluted = '{"agent":"office","input":"Hi.","__proto__":{"by":"boss"}}'
    expect(await answerOf(await post(polluted))).toMatchObject({ status: 400, code: 'malformed' })
    expect(office.reported).toEqual([])
  })
})

describe('headers', () => {
  it('without end are refused', async () => {
    const office = await openOffice()
    const bomb = `GET /agents HTTP/1.1\r\nhost: 127.0.0.1\r\nx-bomb: ${'a'.repeat(200_000)}\r\n\r\n`
    expect(await exchange(office, bomb)).toMatch(/^HTTP\/1\.1 431 /)
    const many = Array.from({ length: 3_000 }, (_, index) => `x-${index}: aaaaaaaa\r\n`).join('')
    expect(await exchange(office, `GET /agents HTTP/1.1\r\nhost: 127.0.0.1\r\n${many}\r\n`)).toMatch(
      /^HTTP\/1\.1 431 /,
    )
    const headers = { authorization: 'Bearer boss', 'x-long': 'a'.repeat(20_000) }
    const elsewhere = await office.server.fetch(new Request('http://a.example/agents', { headers }))
    expect(await answerOf(elsewhere)).toMatchObject({ status: 413, code: 'headers_too_large' })
  })

  it('that are ambiguous are refused', async () => {
    const office = await openOffice()
    const head = `POST /runs HTTP/1.1\r\nhost: 127.0.0.1\r\n${authorization}content-type: application/json\r\n`
    const smuggled = `${head}content-length: 4\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\nGET /agents HTTP/1.1\r\n\r\n`
    expect(await exchange(office, smuggled)).toMatch(/^HTTP\/1\.1 400 /)
    expect(await exchange(office, 'GET /agents HTTP/1.1\r\n\r\n')).toMatch(/^HTTP\/1\.1 400 /)
  })
})

describe('a path', () => {
  it('that plays tricks leads nowhere', async () => {
    const office = await openOffice()
    const runId = await office.start('boss')
    const paths = [
      '/runs/..%2f..%2fetc%2fpasswd',
      '/runs/%00',
      '/runs/%ff',
      `/runs/${runId.toUpperCase()}`,
      `/runs/${runId}%20`,
      `/runs/${runId}%2fevents`,
      `//runs/${runId}`,
      `/runs/${runId}/`,
      `/runs/${runId}/events/..`,
      `/runs/${'a'.repeat(5_000)}`,
      '/runs/__proto__',
      '/agents/__proto__',
      '/agents/constructor',
    ]
    for (const path of paths) {
      const text = await exchange(
        office,
        `GET ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n${authorization}\r\n`,
      )
      expect(`${path} ${text.slice(0, 12)}`).toBe(`${path} HTTP/1.1 404`)
      expect(text.length).toBeLessThan(1_500)
    }
    expect(office.reported).toEqual([])
  })
})

describe('a fault of the server', () => {
  it('is reported to its operator, and says nothing to the caller', async () => {
    const office = await openOffice({ agents: [tellingAgent('teller', 'Hi.')] })
    const broken = {
      ...office.ledger,
      read: () => {
        throw new Error('the password is hunter2')
      },
    }
    const server = await openOffice({ ledger: broken })
    const response = await server.send('/runs/01a20ad2-04d4-72fd-99e7-7861fc19641d')
    const text = await response.text()
    expect(JSON.parse(text)).toMatchObject({ status: 500, code: 'internal' })
    expect(text).not.toMatch(/hunter2|\.ts|at /)
    expect(server.reported).toMatchObject([{ message: 'the password is hunter2' }])
  })
})
