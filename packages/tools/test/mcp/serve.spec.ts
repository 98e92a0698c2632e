import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { createConnection } from 'node:net'
import { PassThrough } from 'node:stream'
import {
  agentTool,
  createRuntime,
  defineAgent,
  memoryLedger,
  joinText,
  ConfigurationError,
  handoff,
  type Tool,
} from '@tallystick/core'
import type { Json } from '@tallystick/core/vocabulary'
import { manualClock, scriptedModel } from '@tallystick/testkit'
import { type McpManager, serveMcp, type ServeMcpOptions, type ServedMcp } from '@tallystick/tools/mcp'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
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

// How serving ends: over HTTP, and over the standard input of this process.

/** A call of the tool `slow` that runs. */
async function runningCall(server: ServedMcp, era: 'auto' | 'legacy'): Promise<void> {
  const mcp = await connect({ own: { url: server.url ?? '', era } })
  const reports: Json[] = []
  const call = mcp.call('own', 'slow', {}, { onProgress: (data) => void reports.push(data) })
  call.catch(() => {})
  while (reports.length === 0) await tick()
}

describe('tools served over HTTP', () => {
  it('given a call of a client of an older revision, when they are closed, then the tool is stopped, and both ways to close are one', async () => {
    const { slow, stopped } = ownTools()
    const server = await serveMcp([slow], { http: {} })
    await runningCall(server, 'legacy')
    const closed = server.close()
    expect(stopped).toEqual(['the client cancelled the call'])
    expect(server.close()).toBe(closed)
    expect(server[Symbol.asyncDispose]()).toBe(closed)
    await closed
    await server.closed
    await expect(fetch(server.url ?? '')).rejects.toThrow('fetch failed')
  })
})

describe('serving tools over standard input and output', () => {
  it('given a client that asks, when its side ends, then a tool that runs is stopped, and serving is over', async () => {
    const [input, output] = [new PassThrough(), new PassThrough()]
    const spies = [
      vi.spyOn(process, 'stdin', 'get').mockReturnValue(input as never),
      vi.spyOn(process, 'stdout', 'get').mockReturnValue(output as never),
    ]
    onTestFinished(() => spies.forEach((spy) => spy.mockRestore()))
    const { slow, stopped } = ownTools()
    const server = await serveMcp([slow])
    expect(server.url).toBeUndefined()
    const ask = (message: object): void =>
      void input.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
    const clientInfo = { name: 'test', version: '1' }
    const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo }
    ask({ id: 1, method: 'initialize', params })
    ask({ method: 'notifications/initialized' })
    ask({ id: 2, method: 'tools/call', params: { name: 'slow', _meta: { progressToken: 7 } } })
    let said = ''
    output.on('data', (chunk: Buffer) => (said += String(chunk)))
    while (!said.includes('"progressToken":7')) await tick()
    input.end()
    await server.closed
    expect(stopped).toEqual(['the client cancelled the call'])
  })
})

// Which options and tools can be served, and at which hosts.

const { add } = ownTools()
const token = 'token-0123456789'
const agent = defineAgent({
  ...{ name: 'a', description: 'b', instructions: '', model: scriptedModel([]), tools: [] },
})
const runtime = createRuntime({ ledger: memoryLedger(), agents: [agent] })

/** The URL at which tools are served, until the test ends. */
async function urlOf(options: ServeMcpOptions, tools: readonly Tool[] = [add]): Promise<string> {
  const server = await serveMcp(tools, options)
  onTestFinished(() => server.close())
  return server.url ?? ''
}

const refusal = async (options: object, tools?: readonly Tool[]): Promise<unknown> =>
  await urlOf(options, tools).catch((error: unknown) => error)

describe('the options of serveMcp', () => {
  it.each([
    [{ port: 1 }, 'port is not an option. Did you mean http?'],
    [{ transport: 'http' }, 'transport is not an option. Did you mean http?'],
    [{ onApproval: () => true }, 'onApproval is not an option. Did you mean approve?'],
    ...[-1, 0.5, 65_536, '80'].map((port) => [{ http: { port } }, 'expected a port from 1 to 65535']),
  ] as [object, string][])('given %o, then they are refused: %s', async (options, why) => {
    const error = await refusal(options)
    expect(error).toBeInstanceOf(ConfigurationError)
    expect(error).toMatchObject({ message: expect.stringContaining(why) as string })
  })

  it('given the port of another server, then it says that it cannot listen there; given a free one or 0, it does', async () => {
    const url = new URL(await urlOf({ http: { port: 0 }, context: { user: 'ada' } }))
    expect(url.pathname).toBe('/mcp')
    const taken = await refusal({ http: { port: Number(url.port) } })
    expect(taken).toBeInstanceOf(ConfigurationError)
    expect(taken).toMatchObject({
      message: expect.stringContaining(`it cannot listen at 127.0.0.1:${url.port} (`) as string,
    })
    // The largest port: another program may listen there.
    expect(await refusal({ http: { port: 65_535 } })).toSatisfy(
      (answer) => answer === 'http://127.0.0.1:65535/mcp' || String(answer).includes('cannot listen'),
    )
  })

  it.each([
    ['localhost', undefined, /^http:\/\/localhost:\d+\/mcp$/],
    ['127.1.2.3', undefined, /^http:\/\/127\.1\.2\.3:\d+\/mcp$/],
    ['0.0.0.0', token, /^http:\/\/0\.0\.0\.0:\d+\/mcp$/],
    // A machine may have no such address.
    ['::1', undefined, /^http:\/\/\[::1\]:\d+\/mcp$|cannot listen at ::1:0/],
  ])('given the host %s and the token %s, then it is served there', async (host, given, url) => {
    expect(String(await refusal({ http: { host, token: given } }))).toMatch(url)
  })
})

describe('the tools of serveMcp', () => {
  it('given an agent and a runtime, then it is served; given another tool that is a run, it is not', async () => {
    expect(await urlOf({ http: {}, runtime }, [agentTool(agent)])).toContain('/mcp')
    const other = { ...add, child: { agent: 'a' } } as unknown as Tool
    expect(await refusal({ http: {}, runtime }, [other])).toMatchObject({
      message:
        'serveMcp: the tool add is an agent, which only a runtime runs. Give the runtime as an option.',
    })
  })

  it('given a handoff, then it is refused', async () => {
    const { tool } = handoff(agent)
    expect(await refusal({ http: {}, runtime }, [tool])).toMatchObject({
      message: `serveMcp: the tool ${tool.name} hands a conversation over, and a client's call has no conversation.`,
    })
  })
})
