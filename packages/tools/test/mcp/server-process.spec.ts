// The process of a server, from its start to its end, with real processes and held timers.
import childProcess, { type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { syncBuiltinESMExports } from 'node:module'
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { type ServerCommand, startServerProcess } from '../../src/mcp/server-process.ts'
import { HeldTimers } from '../built-in/held-timers.ts'

const { spawn } = childProcess
afterEach(() => {
  vi.restoreAllMocks()
  syncBuiltinESMExports()
})

/** A process that runs a script of Node, and what is heard of it. */
function serving(script: string, more: Partial<ServerCommand> = {}) {
  const children: ChildProcess[] = []
  let options: unknown
  vi.spyOn(childProcess, 'spawn').mockImplementation((...given: Parameters<typeof spawn>) => {
    const child = spawn(...given)
    children.push(child)
    // Also where the test has failed before it closed its server.
    onTestFinished(() => void child.kill('SIGKILL'))
    options = given[2]
    return child
  })
  syncBuiltinESMExports()
  const timers = new HeldTimers()
  const heard: string[] = []
  const guarded: string[] = []
  const gone = Promise.withResolvers<void>()
  const said = Promise.withResolvers<void>()
  const server = startServerProcess(
    { command: process.execPath, args: ['-e', script], env: {}, platform: process.platform, ...more },
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
  return {
    server,
    children,
    spawned: () => options,
    timers,
    heard,
    guarded,
    gone: gone.promise,
    said: said.promise,
  }
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
    const { server, guarded, heard } = serving('', { command: '/no/such/server' })
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

  it('given a folder, when it is started, then it works there', async () => {
    const { server, heard, said } = serving('process.stdout.write(process.cwd())', { cwd: '/' })
    await server.start()
    await said
    expect(heard).toEqual(['/'])
    await server.close()
  })

  it('given a process of another group and environment that keeps its output open, when it is gone, then that is read for half a second', async () => {
    const { server, heard, timers, children, gone, said } = serving(
      `const other = require('node:child_process').spawn(process.execPath, ['-e', 'setInterval(() => {}, 1e6)'], { detached: true, env: {}, stdio: ['ignore', 'inherit', 'ignore'] }); process.stdout.write(String(other.pid)); other.unref()`,
    )
    await server.start()
    await said
    onTestFinished(() => void process.kill(Number(heard[0]), 'SIGKILL'))
    const closed = once(children[0]!, 'close')
    await timers.fire(500)
    await gone
    await closed
    expect(heard.slice(1)).toEqual(['gone'])
    expect(timers.count).toBe(0)
  })
})

describe('what is written to a server', () => {
  const long = 'x'.repeat(1_000_000)

  it('given a server that reads slowly, then it is on its way once all of it fits, and nothing is left of the waiting', async () => {
    const { server, children } = serving(`process.stdin.resume()`)
    await server.start()
    const input = children[0]?.stdin
    const listeners = () => [input?.listenerCount('drain'), input?.listenerCount('close')]
    const before = listeners()
    const written = server.write(long)
    expect(input?.writableNeedDrain).toBe(true)
    expect(listeners()).not.toEqual(before)
    await written
    expect([input?.writableNeedDrain, listeners()]).toEqual([false, before])
    await server.write('short')
    await server.close()
  })

  it('given a server that does not read, when it ends, then nothing waits any more', async () => {
    const { server, children } = serving(`setInterval(() => {}, 1e6)`)
    await server.start()
    const input = children[0]?.stdin
    const written = server.write(long)
    server.kill()
    await written
    expect(input?.destroyed).toBe(true)
    await server.close()
    expect(input?.listenerCount('drain')).toBe(0)
  })
})

describe('how a process is started and ended', () => {
  it.each([
    ['linux', { detached: true, shell: false, windowsHide: true }],
    ['win32', { detached: false, shell: true, windowsHide: true }],
  ] as const)('given the platform %s, then with these options', async (platform, options) => {
    const { server, spawned, gone } = serving('', { platform, command: 'cat', args: [] })
    await server.start()
    expect(spawned()).toMatchObject(options)
    server.kill()
    await gone
    expect(server.exit()).toBe('signal SIGKILL')
    await server.close()
  })
})
