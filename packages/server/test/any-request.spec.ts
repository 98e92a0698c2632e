import { connect } from 'node:net'
import { once } from 'node:events'
import { describe, expect, it } from 'vitest'
import { memoryLedger, type Ledger, type RunId } from '@tallystick/core'
import { answerOf, openOffice, tellingAgent, type Office } from './kit/office.ts'

/** The last status that a raw request is answered with; 0 where the connection is only closed. */
async function statusOf(office: Office, request: string): Promise<number> {
  const socket = connect(office.listening.port, '127.0.0.1')
  let text = ''
  socket.on('data', (data) => (text += data.toString('latin1')))
  socket.on('error', () => {})
  const closed = once(socket, 'close')
  socket.end(`${request}\r\nconnection: close\r\nauthorization: Bearer boss\r\n\r\n`)
  await closed
  return Number([...text.matchAll(/^HTTP\/1\.1 (\d+)/gm)].at(-1)?.[1] ?? 0)
}

describe('given any first line of a request, when the server gets it', () => {
  it('then it is answered as a mistake of its sender, and the server serves on', async () => {
    const office = await openOffice({ agents: [tellingAgent('teller', 'Hi.')] })
    const targets = [
      '//',
      '/\\',
      '//[',
      'http://',
      'http://[',
      '*',
      ':0',
      '/%',
      '/%ff',
      '?',
      'x:y',
      '/runs/%c0%80',
    ]
    const methods = [
      'GET',
      'HEAD',
      'POST',
      'PUT',
      'DELETE',
      'OPTIONS',
      'TRACE',
      'PROPFIND',
      'QUERY',
      'M-SEARCH',
    ]
    const hosts = ['127.0.0.1', '//', '127.0.0.1:99999', 'null.0.1', `${'-'.repeat(300)}.example`]
    const lines = targets.flatMap((target) =>
      methods.flatMap((method) => hosts.map((host) => `${method} ${target} HTTP/1.1\r\nhost: ${host}`)),
    )
    const others = ['CONNECT 127.0.0.1:1', 'CONNECT //', 'TRACE /runs', 'TRACK /runs', 'PRI *', 'GET', '']
    for (const line of [...lines, ...others.map((other) => `${other} HTTP/1.1\r\nhost: 127.0.0.1`)]) {
      const status = await statusOf(office, line)
      expect({ line, isMistake: status === 0 || (status >= 400 && status < 500) }).toEqual({
        line,
        isMistake: true,
      })
    }
    expect(office.reported).toEqual([])
    expect((await office.send('/agents')).status).toBe(200)
  })

  it('then a method that echoes or tunnels is named as one that is not answered', async () => {
    const { server, reported } = await openOffice()
    const traced = new Request('http://127.0.0.1/runs', { headers: { authorization: 'Bearer boss' } })
    Object.defineProperty(traced, 'method', { value: 'TRACE' })
    const response = await server.fetch(traced)
    expect(response.headers.get('allow')).toContain('GET')
    expect(await answerOf(response)).toMatchObject({ status: 405, code: 'method_not_allowed' })
    expect(reported).toEqual([])
  })
})

describe('given a body whose values are nested by the thousand, when a route takes it', () => {
  const deep = JSON.parse(`${'['.repeat(3_000)}${']'.repeat(3_000)}`) as unknown

  it('then it is refused as malformed, on every route that takes values', async () => {
    const office = await openOffice({ agents: [tellingAgent('office', 'Hi.')] })
    const runId = await office.start('boss')
    const bodies: Readonly<Record<string, object>> = {
      '/runs': { agent: 'office', input: 'Hi.', metadata: { deep } },
      '/v1/chat/completions': {
        model: 'office',
        metadata: { deep },
        messages: [{ role: 'user', content: 'Hi.', deep }],
      },
      '/v1/responses': {
        model: 'office',
        metadata: { deep },
        input: [{ role: 'user', content: 'Hi.', deep }],
      },
      [`/runs/${runId}/approve`]: { toolCallId: 'call', input: { deep } },
      [`/runs/${runId}/settle`]: { toolCallId: 'call', result: [{ type: 'text', text: 'x', opaque: deep }] },
      [`/runs/${runId}/steer`]: { input: [{ type: 'text', text: 'x', deep }] },
    }
    for (const [path, body] of Object.entries(bodies)) {
      const answer = await answerOf(await office.send(path, 'boss', body))
      const { status } = answer
      expect({ path, status }).toEqual({ path, status: 400 })
    }
    expect(office.reported).toEqual([])
  })
})

describe('given an image or a file at a URL of another kind than the web, when a request sends it', () => {
  it('then it is refused, and no run begins', async () => {
    const office = await openOffice({ agents: [tellingAgent('office', 'Hi.', 'Hi again.')] })
    const send = async (url: string): Promise<unknown> => {
      const input = [{ type: 'image', mediaType: 'image/png', url }]
      return (await answerOf(await office.send('/runs', 'boss', { agent: 'office', input }))).status
    }
    for (const url of [
      'file:///etc/passwd',
      'javascript:alert(1)',
      'data:image/png;base64,AA',
      ' http://x',
      'x',
    ]) {
      expect([url, await send(url)]).toEqual([url, 400])
    }
    expect((await answerOf(await office.send('/runs')))['runs']).toEqual([])
    expect(await send('https://shop.example/lamp.png')).toBe(201)
  })
})

describe('given a client that sends requests and reads no answer, when their answers are large', () => {
  const large = 'x'.repeat(900_000)

  it('then one of them is made at a time, and too many end the connection', async () => {
    const kept = memoryLedger()
    let reads = 0
    const ledger: Ledger = {
      ...kept,
      read(runId, part) {
        if (part?.fromSeq === 1 && part.toSeq === 200) reads++
        return kept.read(runId, part)
      },
    }
    const office = await openOffice({ ledger, agents: [tellingAgent('office', 'Hi.')] })
    const runId = await office.start('boss', { input: large })
    await office.send(`/runs/${runId}/result?waitMs=20000`)
    const get = `GET /runs/${runId}/events HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer boss\r\n\r\n`
    const silent = connect(office.listening.port, '127.0.0.1')
    silent.pause()
    silent.on('error', () => {})
    await once(silent, 'connect')
    await new Promise<void>((resolve) => void silent.write(get.repeat(90), () => resolve()))
    // Another connection is answered meanwhile, several times.
    for (let count = 0; count < 10; count++) expect((await office.send('/agents')).status).toBe(200)
    // What the sockets of this machine hold is taken off the server's hands.
    expect(reads).toBeLessThan(20)
    const greedy = connect(office.listening.port, '127.0.0.1')
    greedy.pause()
    greedy.on('error', () => {})
    const closed = once(greedy, 'close')
    await once(greedy, 'connect')
    greedy.write(get.repeat(400))
    greedy.resume()
    await closed
    silent.destroy()
  })

  it('then a page of events ends before it is too long, and the next one continues there', async () => {
    const texts = Array.from({ length: 4 }, () => large)
    const office = await openOffice({ agents: [tellingAgent('office', ...texts)] })
    const ids: string[] = []
    for (let run = 0; run < 2; run++) ids.push(await office.start('boss', { input: large }))
    for (const id of ids) await office.send(`/runs/${id}/result?waitMs=20000`)
    const pagesFrom = async (path: string, after: unknown): Promise<readonly string[]> => {
      const pages: string[] = []
      for (let place = after; ;) {
        const text = await (await office.send(`${path}?after=${encodeURIComponent(String(place))}`)).text()
        const page = JSON.parse(text) as { events: readonly unknown[]; after: unknown }
        if (page.events.length === 0) return pages
        pages.push(text)
        place = page.after
      }
    }
    for (const [path, first, events] of [
      [`/runs/${ids[0]}/events`, 0, Number((await office.ledger.head(ids[0] as RunId))?.seq)],
      ['/events', '', 2 * Number((await office.ledger.head(ids[0] as RunId))?.seq)],
    ] as const) {
      const pages = await pagesFrom(path, first)
      expect(pages.length).toBeGreaterThan(1)
      for (const page of pages) expect(page.length).toBeLessThan(2_000_000)
      expect(pages.flatMap((page) => (JSON.parse(page) as { events: unknown[] }).events)).toHaveLength(events)
    }
  })
})
