import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { createConnection } from 'node:net'
import { agentTool, createRuntime, defineAgent, memoryLedger, joinText } from '@tallystick/core'
import { manualClock, scriptedModel } from '@tallystick/testkit'
import type { Json } from '@tallystick/core/vocabulary'
import { type McpManager, serveMcp, type ServeMcpOptions } from '@tallystick/tools/mcp'
import { describe, expect, it, onTestFinished } from 'vitest'
import { connect, tick } from './connected.ts'
import { ownTools } from './servers/own-tools.ts'
import { ownServer } from './servers/real-servers.ts'

/** Our tools over HTTP, and our client of them. */
async function servedTools(
  options: ServeMcpOptions = {},
  era: 'auto' | 'legacy' = 'auto',
): Promise<ReturnType<typeof ownTools> & { readonly mcp: McpManager; readonly url: string }> {
  const tools = ownTools()
  const { add, slow, pay } = tools
  const server = await serveMcp([add, slow, pay], { http: {}, ...options })
  onTestFinished(() => server.close())
  const { token } = options.http ?? {}
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` }
  const url = server.url ?? ''
  return { ...tools, url, mcp: await connect({ own: { url, era, headers, trusted: true } }) }
}

describe.each(['auto', 'legacy'] as const)('tools served over HTTP, to a client of era %s', (era) => {
  it('are listed and called, with the key by which the client knows a call', async () => {
    const { mcp } = await servedTools({ name: 'shop', version: '3.2.1' }, era)
    expect(mcp.servers).toMatchObject([
      { state: 'ready', tools: 3, protocolVersion: era === 'auto' ? '2026-07-28' : '2025-11-25' },
    ])
    expect(mcp.tools.map(({ name, effect }) => `${name} ${effect}`)).toEqual([
      'mcp__own__add read',
      'mcp__own__slow write',
      'mcp__own__pay write',
    ])
    const answer = JSON.parse(joinText(await mcp.call('own', 'add', { a: 1, b: 2 }))) as unknown
    expect(answer).toEqual({ sum: 3, key: expect.stringMatching(/^[0-9a-f-]{36}$/) as string })
  })

  it('explain what does not fit, ask a person, and refuse without one', async () => {
    const { mcp } = await servedTools({}, era)
    await expect(mcp.call('own', 'add', { a: 'one', b: 2 })).rejects.toThrow(
      '- a: expected number, received string',
    )
    expect(joinText(await mcp.call('own', 'pay', { euros: 5 }))).toBe('paid 5')
    await expect(mcp.call('own', 'pay', { euros: 60 })).rejects.toThrow('more than 50 euros')
    const asked: unknown[] = []
    const approve = (call: unknown): boolean => asked.push(call) > 0
    const { mcp: other } = await servedTools({ approve }, era)
    expect(joinText(await other.call('own', 'pay', { euros: 60 }))).toBe('paid 60')
    expect(asked).toEqual([{ tool: 'pay', input: { euros: 60 }, reason: 'more than 50 euros' }])
  })
})

describe('a server over HTTP', () => {
  // Without sessions the older revisions have no way to cancel over HTTP.
  it('passes progress on, and stops a call that the client cancels', async () => {
    const { mcp, stopped } = await servedTools()
    const abort = new AbortController()
    const reports: Json[] = []
    const onProgress = (data: Json): void => void reports.push(data)
    const call = mcp.call('own', 'slow', {}, { signal: abort.signal, onProgress })
    call.catch(() => {})
    while (reports.length === 0) await tick()
    expect(reports).toEqual([{ progress: 1, total: 2, message: 'begun' }])
    abort.abort(new Error('enough'))
    await expect(call).rejects.toThrow('enough')
    await expect.poll(() => stopped).toEqual(['the client cancelled the call'])
  })

  it('answers no page of a browser, no other name, and no wrong token', async () => {
    const { url } = await servedTools()
    const ask = async (headers: Record<string, string>, at = url): Promise<number> =>
      (await fetch(at, { method: 'POST', headers, body: '{}' })).status
    expect(await ask({ origin: 'https://evil.example' })).toBe(403)
    expect(await ask({}, url.replace('/mcp', '/other'))).toBe(404)
    const { url: closed, mcp } = await servedTools({ http: { token: 'token-0123456789' } })
    expect(await ask({}, closed)).toBe(401)
    expect(await ask({ authorization: 'Bearer token-0123456788' }, closed)).toBe(401)
    const { headers } = await fetch(closed, { method: 'POST', body: '{}' })
    expect(headers.get('www-authenticate')).toBe('Bearer')
    expect(mcp.servers).toMatchObject([{ state: 'ready' }])
  })

  it('answers on this machine under no other name, which a page could make lead here', async () => {
    const { url } = await servedTools()
    const statusFor = async (host: string): Promise<number | undefined> => {
      const asked = request(url, { method: 'POST', headers: { host } }).end('{}')
      const [answer] = (await once(asked, 'response')) as [IncomingMessage]
      answer.resume()
      return answer.statusCode
    }
    expect(await statusFor('evil.example')).toBe(403)
    expect(await statusFor(new URL(url).host)).not.toBe(403)
  })

  it('stops what is under way when it closes, and then holds no connection', async () => {
    const tools = ownTools()
    const server = await serveMcp([tools.slow], { http: {} })
    const { port } = new URL(server.url ?? '')
    const mcp = await connect({ own: { url: server.url ?? '' } })
    const reports: Json[] = []
    const call = mcp.call('own', 'slow', {}, { onProgress: (data) => void reports.push(data) })
    call.catch(() => {})
    while (reports.length === 0) await tick()
    const idle = createConnection(Number(port), '127.0.0.1')
    await once(idle, 'connect')
    const ended = once(idle, 'close')
    idle.resume()
    await server.close()
    expect(tools.stopped).toEqual(['the client cancelled the call'])
    await ended
    await server.closed
  })

  it('gives a tool up at its time', async () => {
    const clock = manualClock()
    const { mcp, stopped, slow } = await servedTools({ timers: clock })
    const reports: Json[] = []
    const onProgress = (data: Json): void => void reports.push(data)
    const call = mcp.call('own', 'slow', {}, { onProgress })
    while (reports.length === 0) await tick()
    clock.advance(slow.timeoutMs ?? 0)
    await expect(call).rejects.toThrow('it took too long')
    expect(stopped).toHaveLength(1)
  })

  it('is refused where it could not work, or would be open to others', async () => {
    const { add } = ownTools()
    const agent = defineAgent({
      name: 'a',
      description: 'b',
      instructions: '',
      model: scriptedModel([]),
      tools: [],
    })
    await expect(serveMcp([add, add])).rejects.toThrow('two tools have the name add')
    await expect(serveMcp([agentTool(agent)])).rejects.toThrow('Give the runtime as an option')
    await expect(serveMcp([add], { http: { host: '0.0.0.0' } })).rejects.toThrow('Give a token')
    await expect(serveMcp([{} as never])).rejects.toThrow('expected a tool')
    for (const token of ['token-012345678', '', 7, Array.from({ length: 16 }, () => 't')]) {
      await expect(serveMcp([add], { http: { token: token as string } })).rejects.toThrow(
        'expected a text of at least 16 characters',
      )
    }
    for (const part of ['name', 'run', 'check']) {
      await expect(serveMcp([{ ...add, [part]: undefined }])).rejects.toThrow('expected a tool')
    }
    for (const host of ['127.0.0.1.evil.example', '1127.0.0.1', '127.0.0.1111', '::']) {
      await expect(serveMcp([add], { http: { host } })).rejects.toThrow('Give a token')
    }
  })
})

describe('an agent that is served', () => {
  it('answers in a run that is on record, and says which tools it calls', async () => {
    const model = scriptedModel([{ toolCalls: [{ name: 'add', input: { a: 1, b: 2 } }] }, { text: 'Three.' }])
    const agent = defineAgent({
      name: 'counter',
      description: 'Adds.',
      instructions: '',
      model,
      tools: [ownTools().add],
    })
    const ledger = memoryLedger()
    const runtime = createRuntime({ ledger, agents: [agent] })
    const server = await serveMcp([agentTool(agent)], { http: {}, runtime })
    onTestFinished(() => server.close())
    const mcp = await connect({ own: { url: server.url ?? '' } })
    const reports: Json[] = []
    const onProgress = (data: Json): void => void reports.push(data)
    expect(joinText(await mcp.call('own', 'counter', { task: 'One and two?' }, { onProgress }))).toBe(
      'Three.',
    )
    expect(reports).toEqual([{ progress: 1, message: 'calls add' }])
    const runs = []
    for await (const run of ledger.runs()) runs.push(run)
    expect(runs).toHaveLength(1)
    await expect(mcp.call('own', 'counter', { task: ' ' })).rejects.toThrow(
      'expected a text that is not empty',
    )
  })

  it('that waits for a person says so, with the id of its run', async () => {
    const model = scriptedModel([{ toolCalls: [{ name: 'pay', input: { euros: 99 } }] }])
    const agent = defineAgent({
      name: 'payer',
      description: 'Pays.',
      instructions: '',
      model,
      tools: [ownTools().pay],
    })
    const runtime = createRuntime({ ledger: memoryLedger(), agents: [agent] })
    const server = await serveMcp([agentTool(agent)], { http: {}, runtime })
    onTestFinished(() => server.close())
    const mcp = await connect({ own: { url: server.url ?? '' } })
    await expect(mcp.call('own', 'payer', { task: 'Pay.' })).rejects.toThrow(
      /waits for a person who decides about pay. Its run is [0-9a-f-]{36}/,
    )
  })
})

describe('tools served over standard input and output', () => {
  it('are called, cancelled, and gone with their client', async () => {
    const mcp = await connect({ own: ownServer('own-tools-server.ts') })
    expect(mcp.servers).toMatchObject([
      { state: 'ready', transport: 'stdio', tools: 4, server: { name: 'own' } },
    ])
    expect(joinText(await mcp.call('own', 'add', { a: 1, b: 2 }))).toContain('"sum":3')
    const abort = new AbortController()
    const reports: Json[] = []
    const call = mcp.call(
      'own',
      'slow',
      {},
      { signal: abort.signal, onProgress: (data) => void reports.push(data) },
    )
    call.catch(() => {})
    while (reports.length === 0) await tick()
    expect(reports).toEqual([{ progress: 1, total: 2, message: 'begun' }])
    abort.abort(new Error('enough'))
    await expect(call).rejects.toThrow('enough')
    expect(joinText(await mcp.call('own', 'counter', { task: 'One and two?' }))).toBe('It is three.')
    await expect(mcp.call('own', 'ad', {})).rejects.toThrow('Did you mean add?')
  })
})
