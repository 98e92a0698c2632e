// When a connection is made again that was lost: how often, after which waits, and what is known of it meanwhile.
import { existsSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { McpManager } from '@tallystick/tools/mcp'
import { describe, expect, it } from 'vitest'
import { connect, nextChange, tick } from '../connected.ts'
import { changingServer, listed } from '../servers/changing-server.ts'
import { hello, olderServer, scriptedServer } from '../servers/scripted-server.ts'
import { shellServer } from '../servers/shell-server.ts'
import { temporaryFolder } from '../../../../../scripts/testing/temporary-folder.ts'

/** Of timers that are no waits between attempts: the time of a start, of a call, and of the end of a process. */
const others = [30_000, 60_000, 600_000, 500, 1_000]

/** Timers whose waits between attempts go off at once where they are not held, and the waits so far. */
function waits({ isHeld = false }: { readonly isHeld?: boolean } = {}) {
  const waited: number[] = []
  let pending = 0
  const schedule = (ms: number, callback: () => void): (() => void) => {
    if (!others.includes(ms)) waited.push(ms)
    pending++
    const timer =
      others.includes(ms) || isHeld
        ? undefined
        : setImmediate(() => {
            pending--
            callback()
          })
    return () => {
      pending--
      clearImmediate(timer)
    }
  }
  return { timers: { schedule }, waited, pending: () => pending }
}

/** A server that ends at a call of `die`, and starts again as long as it may. */
function mortal(): { readonly server: ReturnType<typeof shellServer>; readonly gone: string } {
  const folder = temporaryFolder()
  const gone = join(folder, 'gone')
  const plan = { first: `[ -e '${gone}' ] && exit 4`, tools: { die: 'exit 3', live: 'answer' } }
  return { server: shellServer(plan), gone }
}

const die = (manager: McpManager): Promise<unknown> =>
  manager.call('sh', 'die', {}).catch((error: { outcome: string }) => error.outcome)

async function until(manager: McpManager, state: string): Promise<void> {
  while (manager.servers[0]?.state !== state) await tick()
}

describe('a server whose process ends', () => {
  it('given it answered a call, when it does not start again, then five attempts are made, each after a wait twice as long', async () => {
    const { server, gone } = mortal()
    const { timers, waited } = waits()
    const spread = [0, 0.4, 0.8, 0.2, 0.6]
    const manager = await connect({ sh: server }, { timers, random: () => spread[waited.length % 5] ?? 0 })
    await manager.call('sh', 'live', {})
    writeFileSync(gone, '')
    expect(await die(manager)).toBe('interrupted')
    await until(manager, 'failed')
    expect(waited).toEqual([188, 475, 1150, 1700, 4200])
    expect(manager.servers).toEqual([
      { name: 'sh', state: 'failed', tools: 2, faults: ['its process ended (exit code 4)'] },
    ])
    // A person repairs it: what was lost before does not count any more.
    rmSync(gone)
    const back = manager.reconnect('sh')
    expect(manager.servers).toMatchObject([{ state: 'reconnecting' }])
    expect(await back).toMatchObject({ state: 'ready', faults: [] })
    writeFileSync(gone, '')
    await die(manager)
    await until(manager, 'failed')
    expect(waited).toHaveLength(10)
  })

  it('given more attempts, when it does not start again, then no wait is longer than 15 seconds', async () => {
    const { server, gone } = mortal()
    const { timers, waited } = waits()
    const reconnect = { maxAttempts: 8 }
    const manager = await connect({ sh: server }, { timers, reconnect, random: () => 0.4 })
    writeFileSync(gone, '')
    await die(manager)
    await until(manager, 'failed')
    expect(waited).toEqual([238, 475, 950, 1_900, 3_800, 7_600, 14_250, 14_250])
  })

  it('given a shortest wait, when it is spread, then it is a millisecond at least', async () => {
    const { server, gone } = mortal()
    const { timers, waited } = waits()
    const reconnect = { baseMs: 1, capMs: 3, maxAttempts: 3 }
    const manager = await connect({ sh: server }, { timers, reconnect, random: () => 0 })
    writeFileSync(gone, '')
    await die(manager)
    await until(manager, 'failed')
    expect(waited).toEqual([1, 2, 2])
  })

  it('given it starts each time and ends at once, when no call is answered, then it is given up after as many attempts', async () => {
    const { timers, waited } = waits()
    const server = shellServer({ onListed: 'exit 5', tools: { work: 'answer' } })
    const manager = await connect({ sh: server }, { timers, random: () => 0 })
    await until(manager, 'failed')
    expect(waited).toEqual([188, 188, 188, 188, 188])
    expect(manager.servers[0]?.faults).toEqual(['the connection was lost: its process ended (exit code 5)'])
  })

  it('given it ends after each call that it answers, then it is started again as often', async () => {
    const { timers, waited } = waits()
    const server = shellServer({ tools: { work: 'answer; exit 5' } })
    const manager = await connect({ sh: server }, { timers, random: () => 0 })
    for (let call = 1; call <= 7; call++) {
      await manager.call('sh', 'work', {})
      while (waited.length < call && manager.servers[0]?.state !== 'failed') await tick()
      while (manager.servers[0]?.state === 'reconnecting') await tick()
    }
    expect(waited).toEqual(Array(7).fill(188))
  })

  it('given no attempts, when it ends, then it has failed, and the next call starts it', async () => {
    const { server } = mortal()
    const manager = await connect({ sh: server }, { reconnect: { maxAttempts: 0 } })
    await die(manager)
    expect(manager.servers).toMatchObject([
      { state: 'failed', faults: ['the connection was lost: its process ended (exit code 3)'] },
    ])
    expect(await manager.call('sh', 'live', {})).toEqual([{ type: 'text', text: 'done' }])
    expect(manager.servers).toMatchObject([{ state: 'ready', faults: [] }])
  })

  it('given a wait, when the connections are closed, then no other wait begins, and a call says why it is refused', async () => {
    const { server, gone } = mortal()
    const { timers, waited, pending } = waits({ isHeld: true })
    let spreads = 0
    const manager = await connect({ sh: server }, { timers, random: () => (spreads++, 0) })
    writeFileSync(gone, '')
    await die(manager)
    expect(manager.servers).toMatchObject([{ state: 'reconnecting' }])
    await manager.close()
    expect([waited, spreads, pending()]).toEqual([[188], 1, 0])
    await expect(manager.call('sh', 'live', {})).rejects.toThrow(
      'The MCP server sh cannot be reached now (the connections to MCP servers were closed). Nothing was run.',
    )
    expect(manager.servers).toEqual([
      { name: 'sh', state: 'closed', tools: 2, faults: ['the connections to MCP servers were closed'] },
    ])
    expect(existsSync(gone)).toBe(true)
  })
})

describe('a server at a URL', () => {
  it('given it forgot the session, when it does not answer the next handshake, then it is asked again after a wait', async () => {
    const { timers, waited } = waits()
    const made: McpManager[] = []
    const states: unknown[] = []
    const server = await scriptedServer({
      'tools/call': ({ times, response, say }) => {
        if (times === 1) response.writeHead(404).end()
        else say({ result: { content: [] } })
      },
      initialize: ({ times, response, say }) => {
        if (times > 1) states.push(made[0]?.servers[0]?.state)
        if (times === 2 || times === 3) response.writeHead(503).end()
        else say({ result: hello })
      },
    })
    const own = { url: server.url, era: 'legacy' } as const
    const manager = await connect({ own }, { timers, random: () => 0 })
    made.push(manager)
    expect(await manager.call('own', 'work', {})).toEqual([])
    expect(states).toEqual(['reconnecting', 'reconnecting', 'reconnecting'])
    expect(waited).toEqual([188, 375])
    expect(server.asked.filter((method) => method === 'initialize')).toHaveLength(4)
    expect(manager.servers).toMatchObject([{ state: 'ready', transport: 'http', faults: [] }])
  })

  it('given it cannot be reached at a call, then it is not ready any more, and is asked again after a wait', async () => {
    const { timers, waited } = waits()
    const server = await scriptedServer()
    const manager = await connect({ own: { url: server.url } }, { timers, random: () => 0 })
    await server.close()
    // The connection that was kept open may break under the first call, which is in doubt then.
    for (let call = 0; call < 2; call++) await manager.call('own', 'work', {}).catch(() => {})
    expect(manager.servers).toMatchObject([{ state: 'reconnecting' }])
    await until(manager, 'failed')
    expect(waited).toEqual([188, 375, 750, 1500, 3000])
    expect(manager.servers[0]?.faults[0]).toContain('fetch failed')
  })

  it('given its stream of events, when that ends and cannot be opened again, then no call is needed to see it', async () => {
    const reopens: (() => void)[] = []
    const schedule = (ms: number, callback: () => void): (() => void) => {
      if (ms === 1_000) reopens.push(callback)
      return () => {}
    }
    const server = await changingServer([[listed('one')], [listed('two')]])
    const manager = await connect({ own: { url: server.url } }, { timers: { schedule } })
    const changed = nextChange(manager)
    await server.change()
    await changed
    await server.close()
    expect(manager.servers).toMatchObject([{ state: 'ready' }])
    while (manager.servers[0]?.state === 'ready') {
      for (const reopen of reopens.splice(0)) reopen()
      await tick()
    }
    expect(manager.servers).toMatchObject([{ state: 'reconnecting' }])
  })

  it('given its stream of events over the older way, when that cannot be opened again, then no call is needed either', async () => {
    const server = await olderServer()
    const manager = await connect(
      { own: { url: server.url, type: 'sse' } },
      { timers: waits({ isHeld: true }).timers },
    )
    expect(manager.servers).toMatchObject([{ state: 'ready', transport: 'sse' }])
    await server.close()
    await until(manager, 'reconnecting')
  })

  it('given a call is under way, when its stream of events cannot be opened again, then the call gets its answer', async () => {
    const reopens: (() => void)[] = []
    const schedule = (ms: number, callback: () => void): (() => void) => {
      if (ms === 1_000 || ms === 1_500) reopens.push(callback)
      return () => {}
    }
    const called = Promise.withResolvers<() => void>()
    const server = await scriptedServer({
      GET: ({ times, response }) => {
        if (times > 1) return void response.destroy()
        response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
        void called.promise.then(() => response.end())
      },
      'tools/call': ({ say }) => called.resolve(() => say({ result: { content: [] } })),
    })
    const manager = await connect({ own: { url: server.url, era: 'legacy' } }, { timers: { schedule } })
    while (!server.asked.includes('GET')) await tick()
    const call = manager.call('own', 'work', {})
    const answer = await called.promise
    while (server.asked.filter((method) => method === 'GET').length < 3) {
      for (const reopen of reopens.splice(0)) reopen()
      await tick()
    }
    answer()
    expect(await call).toEqual([])
    expect(manager.servers).toMatchObject([{ state: 'ready' }])
  })

  it('given its stream of events ends, when it answers that it has none any more, then it is ready still', async () => {
    const reopens: (() => void)[] = []
    const schedule = (ms: number, callback: () => void): (() => void) => {
      if (ms === 1_000 || ms === 1_500) reopens.push(callback)
      return () => {}
    }
    const server = await scriptedServer({
      GET: ({ times, response }) => {
        if (times > 1) return void response.writeHead(503).end()
        response.writeHead(200, { 'content-type': 'text/event-stream' }).end(':\n\n')
      },
    })
    const manager = await connect({ own: { url: server.url, era: 'legacy' } }, { timers: { schedule } })
    while (server.asked.filter((method) => method === 'GET').length < 3) {
      for (const reopen of reopens.splice(0)) reopen()
      await tick()
    }
    await manager.call('own', 'work', {})
    expect(manager.servers).toMatchObject([{ state: 'ready', faults: [] }])
  })

  it('given a call is under way, when the server takes no other connection, then the next call fails, and this one gets its answer', async () => {
    const called = Promise.withResolvers<() => void>()
    const server = await scriptedServer({
      'tools/call': ({ say }) => called.resolve(() => say({ result: { content: [] } })),
    })
    const { timers } = waits()
    const own = { url: server.url, era: 'legacy' } as const
    const manager = await connect({ own }, { timers })
    const call = manager.call('own', 'work', {})
    const answer = await called.promise
    server.refuse()
    // The connection that was kept open may break under the first of them, which is in doubt then.
    for (let more = 0; more < 2; more++) await manager.call('own', 'work', {}).catch(() => {})
    expect(manager.servers).toMatchObject([{ state: 'reconnecting' }])
    await until(manager, 'failed')
    answer()
    expect(await call).toEqual([])
  })

  it('given a call is under way, when the server does not know the session of another, then both are answered', async () => {
    const called = Promise.withResolvers<() => void>()
    const server = await scriptedServer({
      'tools/call': ({ times, response, say }) => {
        const done = (): void => say({ result: { content: [] } })
        if (times === 1) called.resolve(done)
        else if (times === 2) response.writeHead(404).end()
        else done()
      },
    })
    const manager = await connect({ own: { url: server.url, era: 'legacy' } }, { timers: waits().timers })
    const call = manager.call('own', 'work', {})
    const answer = await called.promise
    expect(await manager.call('own', 'work', {})).toEqual([])
    expect(server.asked).not.toContain('DELETE')
    answer()
    expect(await call).toEqual([])
    // Nothing waits for its answer any more: the older session is ended.
    while (!server.asked.includes('DELETE')) await tick()
  })
})
