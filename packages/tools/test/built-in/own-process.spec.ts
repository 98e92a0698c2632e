// The order in which the system reports of a process, which no real process lets a test choose.
import childProcess from 'node:child_process'
import { EventEmitter, getEventListeners } from 'node:events'
import { syncBuiltinESMExports } from 'node:module'
import { ToolError } from '@tallystick/tools'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { keepProcesses, maxIdleMs, maxStartMs } from '../../src/built-in/sql-query/sqlite-host.ts'
import { HeldTimers } from './held-timers.ts'

const request = {
  path: 'x.db',
  sql: 'SELECT 1',
  parameters: [],
  maxRows: 1,
  maxBytes: 1,
  timeoutMs: 700,
  lockTimeoutMs: 300,
}
const rows = { kind: 'rows', columns: ['1'], rows: [[1]] }
const running = ['message', { kind: 'running' }] as const
const answered = ['message', { kind: 'ended', ending: rows, isSpent: false }] as const
const spent = ['message', { kind: 'ended', ending: rows, isSpent: true }] as const
const gone = [['exit'], ['disconnect']] as const

class Child extends EventEmitter {
  readonly kill = vi.fn<(signal: string) => void>()
  readonly send = vi.fn<(message: object) => void>()
  readonly ref = vi.fn<() => void>()
  readonly unref = vi.fn<() => void>()
  readonly channel = { ref: vi.fn<() => void>(), unref: vi.fn<() => void>() }
}

/** Statements in processes that do only what the test says, the first of which runs, and how they end. */
function started() {
  const children: Child[] = []
  const fork = vi.spyOn(childProcess, 'fork').mockImplementation(() => {
    children.push(new Child())
    return children.at(-1) as never
  })
  syncBuiltinESMExports()
  const [timers, idleTimers, abort] = [new HeldTimers(), new HeldTimers(), new AbortController()]
  const processes = keepProcesses(timers, idleTimers)
  const seen: unknown[] = []
  const run = (): void =>
    void processes.run(request, abort.signal).then(
      (reply) => seen.push(reply),
      (error: unknown) => seen.push(error),
    )
  run()
  const [child] = children as [Child]
  /** Lets events happen in the last process, and says how the statements have ended by then. */
  const after = async (...events: readonly (readonly [string, unknown?])[]) => {
    for (const [event, value] of events) children.at(-1)?.emit(event, value)
    await new Promise((resolve) => setImmediate(resolve))
    return seen
  }
  return { child, children, fork, timers, idleTimers, abort, run, after }
}

afterEach(() => {
  vi.restoreAllMocks()
  syncBuiltinESMExports()
})

describe('the process of a statement', () => {
  it('is started without the environment and the options of this one, and receives the statement', () => {
    const { child, fork } = started()
    const [[entry, options] = []] = fork.mock.calls as unknown as readonly (readonly [URL, object])[]
    expect(entry?.pathname).toMatch(/\/statement-process\.ts$/)
    expect(options).toEqual({ execArgv: [], env: {}, stdio: ['ignore', 'ignore', 'ignore', 'ipc'] })
    expect(child.send.mock.calls).toEqual([[request, expect.any(Function)]])
  })

  it.each<[string, readonly (readonly [string, unknown?])[]]>([
    ['after it said that it runs', [running, answered]],
    ['at once', [answered]],
    ['and then says more', [answered, ['message', { kind: 'ended', ending: 'more', isSpent: true }]]],
    ['between its exit and the end of its channel', [['exit'], answered]],
    ['after the end of its channel, and before its exit', [['disconnect'], answered]],
  ])('answers %s: that is how the statement ends', async (_, events) => {
    const { after, child, timers, abort } = started()
    expect(await after(...events)).toEqual([rows])
    expect([child.kill.mock.calls, timers.count]).toEqual([[], 0])
    // A signal may outlive many statements.
    expect(getEventListeners(abort.signal, 'abort')).toEqual([])
    abort.abort()
    expect(child.kill).not.toHaveBeenCalled()
  })

  it('that has taken much memory is killed, and its statement ends when it is gone', async () => {
    const { after, child, idleTimers } = started()
    expect(await after(running, spent)).toEqual([])
    expect(child.kill.mock.calls).toEqual([['SIGKILL']])
    expect(await after(...gone)).toEqual([rows])
    expect(idleTimers.count).toBe(0)
  })

  it('that ends without an answer fails the statement', async () => {
    const { after, timers } = started()
    const [error] = await after(running, ...gone)
    expect(error).toBeInstanceOf(ToolError)
    expect(error).toMatchObject({ message: expect.stringMatching(/^The statement ended its process\./) })
    expect(timers.count).toBe(0)
  })

  it('that cannot be started fails it at once', async () => {
    const { after, child, timers } = started()
    const [error] = await after(['error', new Error('spawn ENOMEM')])
    expect(error).toMatchObject({
      message: 'The statement cannot be run: no process can be started for it (spawn ENOMEM).',
    })
    expect([error instanceof ToolError, child.kill.mock.calls.length, timers.count]).toEqual([true, 1, 0])
  })

  it.each<[string, readonly (readonly [string, unknown?])[], number, object]>([
    [
      'does not come up in time',
      [],
      maxStartMs + request.lockTimeoutMs,
      { kind: 'not_started', why: expect.any(String) as string },
    ],
    ['does not finish in time', [running], request.timeoutMs, { kind: 'timed_out' }],
  ])('that %s is killed, and the statement ends when it is gone', async (_, events, delayMs, reply) => {
    const { after, child, timers } = started()
    await after(...events)
    expect(timers.count).toBe(1)
    await timers.fire(delayMs)
    await after()
    expect(child.kill.mock.calls).toEqual([['SIGKILL']])
    expect(await after(answered)).toEqual([])
    expect(await after(...gone)).toEqual([reply])
    expect(timers.count).toBe(0)
  })

  it('that has answered while this one was busy is in time: its words are read before its limit ends it', async () => {
    const { after, child, timers } = started()
    await timers.fire(maxStartMs + request.lockTimeoutMs)
    expect(await after(running)).toEqual([])
    await timers.fire(request.timeoutMs)
    expect(await after(answered)).toEqual([rows])
    expect([child.kill.mock.calls, timers.count]).toEqual([[], 0])
  })

  it('is killed where the call is cancelled, and the statement ends with the reason when it is gone', async () => {
    const { after, child, timers, abort } = started()
    abort.abort('enough')
    expect([child.kill.mock.calls, timers.count]).toEqual([[['SIGKILL']], 0])
    expect(await after(['exit'])).toEqual([])
    expect(await after(['disconnect'])).toEqual(['enough'])
  })

  it('that is there before the statement is cancelled does not begin', async () => {
    const { after, children, abort, run } = started()
    await after(answered)
    abort.abort('enough')
    run()
    expect(await after()).toEqual([rows, 'enough'])
    expect(children[0]?.send).toHaveBeenCalledTimes(1)
  })
})

describe('a process whose statement has ended', () => {
  it('runs the next one, and keeps no host alive meanwhile', async () => {
    const { after, child, children, idleTimers, run } = started()
    await after(running, answered)
    expect([child.unref.mock.calls.length, child.channel.unref.mock.calls.length]).toEqual([1, 1])
    expect(idleTimers.count).toBe(1)
    run()
    expect([children.length, idleTimers.count, child.ref.mock.calls.length]).toEqual([1, 0, 2])
    expect(await after(running, answered)).toEqual([rows, rows])
  })

  it('is killed when its idle life is over, and another one runs the next statement', async () => {
    const { after, child, children, idleTimers, run } = started()
    await after(answered)
    await idleTimers.fire(maxIdleMs)
    expect(child.kill.mock.calls).toEqual([['SIGKILL']])
    run()
    expect(children.length).toBe(2)
    expect(await after(answered)).toEqual([rows, rows])
  })

  it('and that is gone is not counted on', async () => {
    const { after, children, idleTimers, run } = started()
    await after(answered)
    await after(...gone)
    expect(idleTimers.count).toBe(0)
    run()
    expect(children.length).toBe(2)
  })

  it('and that ends before the next one runs there lets another process run it, once', async () => {
    const { after, children, run, timers } = started()
    await after(answered)
    run()
    await after(...gone)
    expect([children.length, children[1]?.send.mock.calls.length]).toEqual([2, 1])
    const [, error] = await after(...gone)
    expect(error).toMatchObject({
      message: 'The statement cannot be run: its process ended before it began.',
    })
    expect([children.length, timers.count]).toEqual([2, 0])
  })

  it('and that ends while the next one runs fails that: what it took may end the next process, too', async () => {
    const { after, children, run } = started()
    await after(answered)
    run()
    const [, error] = await after(running, ...gone)
    expect(error).toMatchObject({ message: expect.stringMatching(/^The statement ended its process\./) })
    expect(children.length).toBe(1)
  })

  it('is one of two that are kept', async () => {
    const { after, children, run, idleTimers } = started()
    run()
    run()
    for (const child of children) child.emit(...answered)
    expect(await after()).toEqual([rows, rows, rows])
    expect(children.map(({ kill }) => kill.mock.calls.length)).toEqual([0, 0, 1])
    expect(idleTimers.count).toBe(2)
  })
})
