import * as sdk from '@modelcontextprotocol/client'
import type { Json } from '@tallystick/core/vocabulary'
import { manualClock } from '@tallystick/testkit'
import { type HttpServer, mcpTools } from '@tallystick/tools/mcp'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { SharedParts } from '../../../src/mcp/client.ts'
import { McpConnection } from '../../../src/mcp/connection.ts'
import type { McpServer } from '../../../src/mcp/options.ts'
import { findKnownSecrets } from '../../../src/mcp/secrets.ts'
import { connect, tick, connectFaulty, said, isAlive } from '../connected.ts'
import { changingServer, listed } from '../servers/changing-server.ts'
import { type Script, type ScriptedServer, scriptedServer } from '../servers/scripted-server.ts'
import { shellServer } from '../servers/shell-server.ts'

// How a connection to a server at a URL begins and ends: what a server is asked, how long it is waited for, and what is said
// of one that does not answer as it should.

const old = { era: 'legacy' } as const

/** A connection to a server that answers so, under a clock that a test advances. */
async function started(script: Script, more: Partial<HttpServer> = {}) {
  const server = await scriptedServer(script)
  const clock = manualClock()
  const starting = mcpTools({ servers: { own: { url: server.url, ...old, ...more } }, timers: clock })
  onTestFinished(async () => await (await starting).close())
  return { server, clock, starting }
}

/** Whether a promise has settled, once all that has arrived is read. */
async function hasSettled(promise: Promise<unknown>): Promise<boolean> {
  let isSettled = false
  void promise.then(() => (isSettled = true))
  for (let turn = 0; turn < 20; turn++) await tick()
  return isSettled
}

async function untilAsked({ asked }: ScriptedServer, method: string): Promise<void> {
  while (!asked.includes(method)) await tick()
}

const never = (): void => {}

describe('a server that is started', () => {
  it('given it does not say what its tools are, when 30 seconds are over, then it has failed, and its session is ended', async () => {
    const { server, clock, starting } = await started({ 'tools/list': never })
    await untilAsked(server, 'tools/list')
    clock.advance(29_999)
    expect(await hasSettled(starting)).toBe(false)
    clock.advance(1)
    const manager = await starting
    expect(manager.servers).toEqual([
      {
        ...{ name: 'own', state: 'failed', tools: 0 },
        faults: ['it did not answer within 30000 ms (startMs says how long it may take)'],
      },
    ])
    expect(server.asked).toContain('DELETE')
    expect(clock.pending).toBe(0)
  })

  it('given a stream of events without an endpoint, when its time is over, then it has failed', async () => {
    const stream: Script = {
      GET: ({ response }) => response.writeHead(200, { 'content-type': 'text/event-stream' }).write(':\n\n'),
    }
    const { server, clock, starting } = await started(stream, { type: 'sse', startMs: 700 })
    await untilAsked(server, 'GET')
    for (let turn = 0; turn < 20; turn++) await tick()
    clock.advance(700)
    expect((await starting).servers).toMatchObject([
      { state: 'failed', faults: ['it did not answer within 700 ms (startMs says how long it may take)'] },
    ])
  })

  // The client library asks that before it knows of the connection that it would close.
  it('given it does not say which revision it speaks, when its time is over, then its request is taken back', async () => {
    const takenBack = Promise.withResolvers<void>()
    const silent: Script = {
      'server/discover': ({ response }) => void response.once('close', takenBack.resolve),
    }
    const { server, clock, starting } = await started(silent, { era: 'auto', startMs: 700 })
    await untilAsked(server, 'server/discover')
    clock.advance(700)
    expect((await starting).servers).toMatchObject([{ state: 'failed' }])
    await takenBack.promise
    for (let turn = 0; turn < 20; turn++) await tick()
    expect(server.asked).toEqual(['server/discover'])
  })

  it('given it refuses to list its tools, then it has failed with its words, cut, and nothing is left of the session', async () => {
    const long = 'x'.repeat(5_000)
    const { server, clock, starting } = await started({
      'tools/list': ({ say }) => say({ error: { code: -32_000, message: long } }),
    })
    const [status] = (await starting).servers
    expect(status?.state).toBe('failed')
    expect(status?.faults[0]).toMatch(/^x+ … \(cut\)$/)
    expect(status?.faults[0]).toHaveLength(3_000)
    expect([server.asked.at(-1), clock.pending]).toEqual(['DELETE', 0])
  })

  it('given a message longer than 10 MB, then it has failed, and says how long messages may be', async () => {
    const headers = { 'content-type': 'application/json' }
    const answer = async (): Promise<Response> => new Response(new Uint8Array(10_000_001), { headers })
    const { starting } = await started({}, { fetch: answer })
    expect((await starting).servers[0]?.faults[0]).toContain('longer than 10000000 bytes')
  })

  it('given it lists tools and none of its own name, then its own clock is left alone', async () => {
    const { clock, starting } = await started({})
    expect((await starting).servers).toMatchObject([
      { state: 'ready', tools: 1, protocolVersion: '2025-11-25', server: { name: 'scripted', version: '1' } },
    ])
    expect(clock.pending).toBe(0)
  })
})

describe('connections that are closed', () => {
  /** A server whose sessions end when a test says so. */
  async function withHeldEnds(more: Script = {}): Promise<{ ends: (() => void)[]; script: Script }> {
    const ends: (() => void)[] = []
    return {
      ends,
      script: { DELETE: ({ response }) => ends.push(() => response.writeHead(200).end()), ...more },
    }
  }

  it('given a server that takes its time to end a session, then it is waited for a second', async () => {
    const { ends, script } = await withHeldEnds()
    const { clock, starting } = await started(script)
    const closed = (await starting).close()
    while (ends.length === 0) await tick()
    clock.advance(999)
    expect(await hasSettled(closed)).toBe(false)
    clock.advance(1)
    await closed
  })

  it('given a server that ends its session, then nothing is waited for, and nothing is known of the server any more', async () => {
    const { server, clock, starting } = await started({})
    const manager = await starting
    await manager.close()
    expect([server.asked.at(-1), clock.pending]).toEqual(['DELETE', 0])
    expect(manager.servers).toEqual([
      { name: 'own', state: 'closed', tools: 1, faults: ['the connections to MCP servers were closed'] },
    ])
  })

  it('given a session that was lost, when its end is under way, then that is waited for, too', async () => {
    const { ends, script } = await withHeldEnds({
      'tools/call': ({ times, response, say }) => {
        if (times === 1) response.writeHead(404).end()
        else say({ result: { content: [] } })
      },
    })
    const { starting } = await started(script)
    const manager = await starting
    await manager.call('own', 'work', {})
    const closed = manager.close()
    while (ends.length < 2) await tick()
    ends[1]?.()
    expect(await hasSettled(closed)).toBe(false)
    ends[0]?.()
    await closed
  })

  it('given a stream that the client reads, then it ends', async () => {
    const streams: Promise<unknown>[] = []
    const { starting, server } = await started({
      GET: ({ response }) => {
        streams.push(new Promise((resolve) => response.once('close', resolve)))
        response.writeHead(200, { 'content-type': 'text/event-stream' }).write(':\n\n')
      },
    })
    const manager = await starting
    await untilAsked(server, 'GET')
    await manager.close()
    await Promise.all(streams)
    expect(streams).toHaveLength(1)
  })

  it('given a required server that has failed, then the sessions of the others are ended before mcpTools rejects', async () => {
    const { url, asked } = await scriptedServer()
    const broken = await scriptedServer({ initialize: ({ response }) => response.writeHead(500).end('full') })
    const servers = {
      own: { url, ...old },
      more: { url: broken.url, ...old, required: true },
      less: { url: broken.url, ...old, required: true },
    }
    const rejected: unknown = await mcpTools({ servers }).catch((error: unknown) => error)
    expect(rejected).toMatchObject({
      code: 'configuration',
      message:
        'mcpTools: not every required MCP server could be started. more: Error POSTing to endpoint: full\nless: Error POSTing to endpoint: full',
    })
    expect(asked.at(-1)).toBe('DELETE')
  })
})

describe('a list of tools that changes', () => {
  it('given the new list cannot be read, then the old one is kept', async () => {
    const failed = Promise.withResolvers<void>()
    const server = await changingServer([], {
      'tools/list': ({ times, say }) => {
        if (times === 1) return say({ result: { tools: [listed('one')] } })
        say({ error: { code: -32_000, message: 'no' } })
        failed.resolve()
      },
    })
    const manager = await connect({ own: { url: server.url, ...old } })
    await server.change()
    await failed.promise
    for (let turn = 0; turn < 20; turn++) await tick()
    expect(manager.tools.map(({ name }) => name)).toEqual(['mcp__own__one'])
    expect(manager.servers).toMatchObject([{ state: 'ready', tools: 1, faults: [] }])
  })
})

// What a question of a server to the user does to the calls that run meanwhile.

it('given a question while another call runs, when the user has answered, then the time of that call runs again', async () => {
  const clock = manualClock()
  const elicit = () => ({ action: 'decline' }) as const
  const manager = await connectFaulty({ timeoutMs: 1_000 }, { timers: clock, elicit })
  const received: Json[] = []
  const call = manager.call('bad', 'hang', {}, { onProgress: (data) => void received.push(data) })
  call.catch(() => {})
  while (received.length === 0) await tick()
  expect(JSON.parse(await said(manager, 'ask'))).toEqual({ action: 'decline' })
  clock.advance(1_000)
  await expect(call).rejects.toMatchObject({ outcome: 'timed_out' })
})

describe('a connection', () => {
  // Connections that end at the very moment at which something else happens.

  /** A connection that has made its first attempt, and the processes that were started for it. */
  async function started(
    options: McpServer,
    more: Partial<SharedParts> = {},
  ): Promise<{ readonly connection: McpConnection; readonly processes: readonly number[] }> {
    const { connection, processes } = prepared(options, more)
    await connection.start()
    return { connection, processes }
  }

  /** A connection that has not begun. */
  function prepared(
    options: McpServer,
    more: Partial<SharedParts> = {},
  ): { readonly connection: McpConnection; readonly processes: readonly number[] } {
    const processes: number[] = []
    const shared: SharedParts = {
      ...{
        sdk,
        hooks: {},
        sampling: { maxPerCall: 1, maxTokens: 1 },
        traceparent: undefined,
        timers: manualClock(),
        random: () => 0,
      },
      guard: { add: (pid) => void processes.push(pid), remove: () => {}, close: async () => {} },
      ...{ environment: process.env, backoff: { baseMs: 1, capMs: 1, maxAttempts: 0 }, onChange: () => {} },
      ...more,
    }
    const server = { name: 'own', options, secrets: findKnownSecrets(options) }
    const connection = new McpConnection(server, shared)
    onTestFinished(() => connection.close())
    return { connection, processes }
  }

  it('given its tools were listed, when it ends before they are read, then it has failed, and says how it ended', async () => {
    class Ending extends sdk.Client {
      override async listTools(
        ...given: Parameters<sdk.Client['listTools']>
      ): ReturnType<sdk.Client['listTools']> {
        const listed = await super.listTools(...given)
        this.onclose?.()
        return listed
      }
    }
    const { url, asked } = await scriptedServer()
    const { connection } = await started({ url, era: 'legacy' }, { sdk: { ...sdk, Client: Ending } })
    expect([connection.state(), connection.faults(), connection.current()]).toEqual([
      ...['failed', ['its connection ended'], undefined],
    ])
    expect(asked.at(-1)).toBe('DELETE')
  })

  it('given it is closed, when it is lost in the same moment, then no process is started', async () => {
    const { connection, processes } = await started(shellServer({ tools: { work: 'answer' } }))
    const closed = connection.close()
    connection.replace(connection.current()!)
    await closed
    expect([connection.state(), processes.length]).toEqual(['closed', 1])
  })

  it('given it begins, when it is closed, then the process has ended first', async () => {
    const { connection, processes } = prepared(shellServer({ first: 'read -r line', tools: {} }))
    const begun = connection.start()
    while (processes.length === 0) await tick()
    await connection.close()
    expect(processes.map(isAlive)).toEqual([false])
    await begun
    expect(connection.state()).toBe('closed')
  })

  it('given it is ready, then no time of its start runs any more', async () => {
    const { url } = await scriptedServer()
    const { connection } = await started({ url, era: 'legacy' })
    expect([connection.state(), connection.deadlines.size]).toEqual(['ready', 0])
  })
})
