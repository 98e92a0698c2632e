// The order in which the system reports of a process, which no real process lets a test choose.
import childProcess from 'node:child_process'
import { EventEmitter, getEventListeners } from 'node:events'
import { syncBuiltinESMExports } from 'node:module'
import { ToolError } from '@tallystick/tools'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { maxStartMs, runInOwnProcess } from '../../src/built-in/sql-query/own-process.ts'
import { HeldTimers } from './held-timers.ts'

const request = { path: 'x.db', sql: 'SELECT 1', parameters: [], maxRows: 1, maxBytes: 1, timeoutMs: 700 }
const rows = { kind: 'rows', columns: ['1'], rows: [[1]] }

class Child extends EventEmitter {
  readonly kill = vi.fn<(signal: string) => void>()
  readonly send = vi.fn<(message: object) => void>()
}

/** A statement in a process that does only what the test says, and how the statement ends. */
function started() {
  const child = new Child()
  const fork = vi.spyOn(childProcess, 'fork').mockReturnValue(child as never)
  syncBuiltinESMExports()
  const [timers, abort] = [new HeldTimers(), new AbortController()]
  const seen: unknown[] = []
  void runInOwnProcess(request, abort.signal, timers).then(
    (reply) => seen.push(reply),
    (error: unknown) => seen.push(error),
  )
  /** Lets events happen, and says how the statement has ended by then. */
  const after = async (...events: readonly (readonly [string, unknown?])[]) => {
    for (const [event, value] of events) child.emit(event, value)
    await new Promise((resolve) => setImmediate(resolve))
    return seen
  }
  return { child, fork, timers, abort, after }
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
    expect(child.send.mock.calls).toEqual([[request]])
  })

  it.each<[string, readonly (readonly [string, unknown?])[]]>([
    ['before it is gone', [['message', rows], ['exit'], ['disconnect']]],
    [
      'and is read between its exit and the end of its channel',
      [['exit'], ['message', rows], ['disconnect']],
    ],
    ['and is gone in the other order', [['message', rows], ['disconnect'], ['exit']]],
    [
      'after it said that it runs',
      [['message', { kind: 'running' }], ['message', rows], ['exit'], ['disconnect']],
    ],
    [
      'and then says more',
      [['message', rows], ['message', { kind: 'out_of_memory' }], ['exit'], ['disconnect']],
    ],
  ])('answers %s: that is how the statement ends', async (_, events) => {
    const { after, child, timers, abort } = started()
    expect(await after(...events.slice(0, -1))).toEqual([])
    expect(await after(...events.slice(-1))).toEqual([rows])
    expect([child.kill.mock.calls, timers.count]).toEqual([[['SIGKILL']], 0])
    // A signal may outlive many statements.
    expect(getEventListeners(abort.signal, 'abort')).toEqual([])
    abort.abort()
    expect(child.kill).toHaveBeenCalledTimes(1)
  })

  it('that ends without an answer fails the statement', async () => {
    const { after, timers } = started()
    const [error] = await after(['message', { kind: 'running' }], ['exit'], ['disconnect'])
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

  it.each([
    ['does not come up in time', [], maxStartMs],
    ['does not finish in time', [['message', { kind: 'running' }] as const], request.timeoutMs],
  ])('that %s is killed, and the statement ends when it is gone', async (_, events, delayMs) => {
    const { after, child, timers } = started()
    await after(...events)
    expect(timers.count).toBe(1)
    await timers.fire(delayMs)
    expect(child.kill.mock.calls).toEqual([['SIGKILL']])
    expect(await after(['message', rows])).toEqual([])
    expect(await after(['exit'], ['disconnect'])).toEqual([{ kind: 'timed_out' }])
    expect(timers.count).toBe(0)
  })

  it('is killed where the call is cancelled, and the statement ends with the reason when it is gone', async () => {
    const { after, child, timers, abort } = started()
    abort.abort('enough')
    expect([child.kill.mock.calls, timers.count]).toEqual([[['SIGKILL']], 0])
    expect(await after(['exit'])).toEqual([])
    expect(await after(['disconnect'])).toEqual(['enough'])
  })
})
