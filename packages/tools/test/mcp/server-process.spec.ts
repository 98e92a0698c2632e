// The process of a server, from its start to its end, with real processes and held timers.
import childProcess, { type ChildProcess } from 'node:child_process'
import { syncBuiltinESMExports } from 'node:module'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { serverProcess } from '../../src/mcp/transport/server-process.ts'
import { HeldTimers } from '../built-in/held-timers.ts'

const { spawn } = childProcess
afterEach(() => {
  vi.restoreAllMocks()
  syncBuiltinESMExports()
})

/** A process that runs a script of Node, and what is heard of it. */
function serving(script: string, command = process.execPath) {
  const children: ChildProcess[] = []
  vi.spyOn(childProcess, 'spawn').mockImplementation(((...given: Parameters<typeof spawn>) => {
    children.push(spawn(...given))
    return children.at(-1)
  }) as typeof spawn)
  syncBuiltinESMExports()
  const timers = new HeldTimers()
  const heard: string[] = []
  const guarded: string[] = []
  const gone = Promise.withResolvers<void>()
  const said = Promise.withResolvers<void>()
  const server = serverProcess(
    { command, args: ['-e', script], env: {} },
    {
      onOutput: (chunk) => {
        heard.push(String(chunk))
        said.resolve()
      },
      onError: ({ message }) => heard.push(`error: ${message}`),
      onGone: () => {
        heard.push('gone')
        gone.resolve()
      },
    },
    timers,
    {
      add: (pid) => guarded.push(`+${pid === children[0]?.pid ? 'pid' : pid}`),
      remove: (pid) => guarded.push(`-${pid === children[0]?.pid ? 'pid' : pid}`),
      close: async () => {},
    },
  )
  return { server, children, timers, heard, guarded, gone: gone.promise, said: said.promise }
}

const echo = 'process.stdin.pipe(process.stdout)'

describe('the process of a server', () => {
  it('given a pipe that breaks, when any of the three does, then that is reported, and this process continues', async () => {
    const { server, children, heard } = serving(echo)
    await server.start()
    for (const stream of children[0]?.stdio ?? []) stream?.emit('error', new Error('EIO'))
    expect(heard).toEqual(['error: EIO', 'error: EIO', 'error: EIO'])
    await server.close()
  })

  it('given a server, when it is closed, then its input ends, and all timers and the guard let go of it', async () => {
    const { server, timers, heard, guarded, said } = serving(echo)
    await server.start()
    expect(guarded).toEqual(['+pid'])
    await server.write('hello')
    await said
    expect(server.exit()).toBeUndefined()
    await server.close()
    expect(heard).toEqual(['hello', 'gone'])
    expect([guarded, timers.count, server.exit()]).toEqual([['+pid', '-pid'], 0, undefined])
    await expect(server.write('more')).rejects.toThrow('The process of the server has ended.')
    await server.close()
  })

  it('given a server that ends before it is closed, when it is asked how, then with its code or its signal', async () => {
    const coded = serving('process.exitCode = 3')
    await coded.server.start()
    await coded.gone
    expect(coded.server.exit()).toBe('exit code 3')
    await coded.server.close()
    const killed = serving(echo)
    await killed.server.start()
    killed.server.kill()
    await killed.gone
    expect(killed.server.exit()).toBe('signal SIGKILL')
    expect(killed.timers.count).toBe(0)
  })

  it('given a command that there is not, when it is started, then the start rejects, and nothing is guarded', async () => {
    const { server, guarded, heard } = serving('', '/no/such/server')
    await expect(server.start()).rejects.toThrow('ENOENT')
    await expect(server.write('hello')).rejects.toThrow('has ended')
    await server.close()
    expect([guarded, heard]).toEqual([[], []])
  })

  it('given a server that continues without input, when it is closed, then it is asked to end after a second', async () => {
    const { server, timers, heard } = serving(
      `process.once('SIGTERM', () => { process.stdout.write('asked'); clearInterval(held) }); const held = setInterval(() => {}, 1e6); process.stdout.write('up')`,
    )
    await server.start()
    const closed = server.close()
    await timers.isSet(1_000)
    while (heard.length === 0) await new Promise((resolve) => setImmediate(resolve))
    await timers.fire(1_000)
    await closed
    expect(heard).toEqual(['up', 'asked', 'gone'])
    expect(timers.count).toBe(0)
  })

  it('given a server that does not end when asked, when another second is over, then it is ended', async () => {
    const { server, timers, heard, children } = serving(
      `process.on('SIGTERM', () => process.stdout.write('never')); setInterval(() => {}, 1e6); process.stdout.write('up')`,
    )
    await server.start()
    const closed = server.close()
    while (!heard.includes('up')) await new Promise((resolve) => setImmediate(resolve))
    await timers.fire(1_000)
    while (!heard.includes('never')) await new Promise((resolve) => setImmediate(resolve))
    await timers.fire(1_000)
    await closed
    expect(children[0]?.signalCode).toBe('SIGKILL')
    expect(timers.count).toBe(0)
  })
})
