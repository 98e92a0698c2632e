import { joinText, type Tool } from '@tallystick/core'
import type { Json, ResultPart } from '@tallystick/core/vocabulary'
import { type ManualClock, manualClock } from '@tallystick/testkit'
import type { HttpServer, McpManager } from '@tallystick/tools/mcp'
import { describe, expect, it } from 'vitest'
import { startDeadline, pauseAll } from '../../src/mcp/deadline.ts'
import { HeldTimers } from '../built-in/held-timers.ts'
import { callContext, endingOf } from '../one-call.ts'
import { connect, tick, connectFaulty } from './connected.ts'
import { type TaskPlan, type TaskServer, taskServer } from './servers/task-server.ts'

const done = { content: [{ type: 'text', text: 'worked' }] }
const working = { status: 'working' }
const completed = { status: 'completed' }

interface Connected {
  readonly server: TaskServer
  readonly manager: McpManager
  readonly clock: ManualClock
}

async function connected(plan: TaskPlan, more: Partial<HttpServer> = {}): Promise<Connected> {
  const clock = manualClock()
  const server = await taskServer(plan)
  const url = { url: server.url, era: 'legacy', ...more } as const
  const manager = await connect({ bad: url }, { timers: clock, reconnect: { baseMs: 1 } })
  return { server, manager, clock }
}

/** Lets time pass until a call has ended, and returns what it ended with. */
async function ended(call: Promise<readonly ResultPart[]>, clock: ManualClock): Promise<unknown> {
  const endings: unknown[] = []
  call.then(
    (parts) => void endings.push(joinText(parts)),
    (error: unknown) => void endings.push(error),
  )
  await until(() => endings.length > 0, clock)
  return endings[0]
}

async function until(holds: () => boolean, clock: ManualClock): Promise<void> {
  while (!holds()) {
    clock.advance(10)
    await tick()
  }
}

describe('a call that a server takes as a task', () => {
  it('is asked about until it is over; what its state says is progress', async () => {
    const { server, manager, clock } = await connected({
      states: [
        working,
        { status: 'working', statusMessage: 'halfway\u001b[2J' },
        { status: 'working', statusMessage: 'halfway\u001b[2J' },
        completed,
      ],
      result: done,
    })
    const heard: Json[] = []
    const call = manager.call('bad', 'work', {}, { onProgress: (data) => void heard.push(data) })
    expect(await ended(call, clock)).toBe('worked')
    expect(heard).toEqual([working, { status: 'working', message: 'halfway' }, completed])
    const polls = Array.from({ length: 4 }, () => 'tasks/get')
    expect(server.asked).toEqual(['tools/call', ...polls, 'tasks/result'])
  })

  it('is a plain call where the server does not say that it takes tasks', async () => {
    const { server, manager, clock } = await connected({ states: [working], created: done, hasTasks: false })
    expect(await ended(manager.call('bad', 'work', {}), clock)).toBe('worked')
    expect(server.asked).toEqual(['tools/call'])
  })

  it('says nothing of a long secret in its progress, however often the server repeats it', async () => {
    const secret = `secret-${'0123456789'.repeat(120)}`
    const message = `${secret} ${secret} ${secret}`
    const { manager, clock } = await connected(
      { states: [working, { status: 'working', statusMessage: message }, completed], result: done },
      { headers: { authorization: `Bearer ${secret}` } },
    )
    const heard: Json[] = []
    const call = manager.call('bad', 'work', {}, { onProgress: (data) => void heard.push(data) })
    expect(await ended(call, clock)).toBe('worked')
    expect(heard[1]).toEqual({ status: 'working', message: '[secret] [secret] [secret]' })
  })

  it('ends as failed where the task failed, or the server cancelled it', async () => {
    const failed = { ...done, isError: true }
    const plans: readonly [TaskPlan, string][] = [
      [{ states: [{ status: 'failed' }], result: failed }, 'worked'],
      [{ states: [{ status: 'failed' }], result: 'out of paper' }, 'out of paper'],
      [{ states: [{ status: 'cancelled' }] }, 'The server cancelled the task'],
    ]
    for (const [plan, text] of plans) {
      const { manager, clock } = await connected(plan)
      expect(await ended(manager.call('bad', 'work', {}), clock)).toMatchObject({
        outcome: 'failed',
        message: expect.stringContaining(text) as string,
      })
    }
  })

  it('is found again after its connection broke five times, and in a new session', async () => {
    const fiveBreaks = Array.from({ length: 5 }, () => 'break' as const)
    const { server, manager, clock } = await connected({
      states: [working, ...fiveBreaks, working, 'forget', completed],
      result: done,
    })
    expect(await ended(manager.call('bad', 'work', {}), clock)).toBe('worked')
    expect(server.asked.filter((method) => method === 'tools/call')).toHaveLength(1)
  })

  it('is in doubt where the server does not know it any more, or is not reached', async () => {
    for (const [last, times] of [
      [{ error: 'unknown task' }, 1],
      ['break', 6],
    ] as const) {
      const { server, manager, clock } = await connected({ states: [working, last] })
      expect(await ended(manager.call('bad', 'work', {}), clock)).toMatchObject({
        outcome: 'interrupted',
        message: expect.stringContaining('It may have taken effect') as string,
      })
      expect(server.asked.filter((method) => method === 'tools/call')).toHaveLength(1)
      expect(server.asked.filter((method) => method === 'tasks/get')).toHaveLength(1 + times)
    }
  })

  it('that needs input is asked once for its result, which ends it as soon as it comes', async () => {
    const { server, manager, clock } = await connected({
      states: [{ status: 'input_required' }],
      result: 'never',
    })
    const call = manager.call('bad', 'work', {})
    await until(() => server.asked.length > 4, clock)
    expect(server.asked.filter((method) => method === 'tasks/result')).toHaveLength(1)
    server.release()
    expect(await ended(call, clock)).toBe('worked')
  })

  it('is cancelled at the server when it is cancelled here, at any moment', async () => {
    for (const [plan, moment] of [
      [{ states: [working] }, 'tasks/get'],
      [{ states: [{ status: 'input_required' }], result: 'never' }, 'tasks/result'],
      [{ states: [working], created: 'never' }, 'tools/call'],
    ] as const) {
      const { server, manager, clock } = await connected({ ...plan })
      const abort = new AbortController()
      const call = manager.call('bad', 'work', {}, { signal: abort.signal })
      await until(() => server.asked.includes(moment), clock)
      abort.abort(new Error('enough'))
      const ending = await ended(call, clock)
      server.release()
      expect(ending).toMatchObject({ message: 'enough' })
      await until(() => server.asked.at(-1) === 'tasks/cancel', clock)
    }
  })

  it('is cancelled at the server when its time is over; while the server says that it works, it is not quiet', async () => {
    const { server, manager, clock } = await connected(
      { states: [working], pollInterval: 1e9 },
      { timeoutMs: 1_000, maxTotalMs: 20_000 },
    )
    const began = clock.now()
    expect(await ended(manager.call('bad', 'work', {}), clock)).toMatchObject({ outcome: 'timed_out' })
    expect(clock.now() - began).toBeGreaterThanOrEqual(20_000)
    await until(() => server.asked.at(-1) === 'tasks/cancel', clock)
  })

  it('is not asked about more often than every 50 ms, whatever the server says', async () => {
    const { server, manager, clock } = await connected({ states: [working], pollInterval: -1 })
    const abort = new AbortController()
    const call = manager.call('bad', 'work', {}, { signal: abort.signal })
    await until(() => server.asked.length > 3, clock)
    const began = clock.now()
    const before = server.asked.length
    await until(() => server.asked.length >= before + 10, clock)
    expect(clock.now() - began).toBeGreaterThanOrEqual(450)
    abort.abort(new Error('enough'))
    await ended(call, clock)
  })

  it('fails where the server answers with something else', async () => {
    const { manager, clock } = await connected({ states: [], created: { content: 'no task' } })
    expect(await ended(manager.call('bad', 'work', {}), clock)).toMatchObject({
      outcome: 'failed',
      message: expect.stringContaining('may have happened all the same') as string,
    })
  })

  it('leaves no timer when it has ended, or five seconds after it was cancelled before the server took it', async () => {
    const { manager, clock } = await connected({ states: [working, completed], result: done })
    await ended(manager.call('bad', 'work', {}), clock)
    expect(clock.pending).toBe(0)
    const slow = await connected({ states: [], created: 'never' })
    const abort = new AbortController()
    const call = slow.manager.call('bad', 'work', {}, { signal: abort.signal })
    await until(() => slow.server.asked.length > 0, slow.clock)
    abort.abort(new Error('enough'))
    await expect(call).rejects.toThrow('enough')
    slow.clock.advance(4_999)
    await tick()
    expect(slow.clock.pending).toBe(1)
    slow.clock.advance(1)
    while (slow.clock.pending > 0) await tick()
  })
})

/** What the server got beside the input of a call. */
async function metaOf({ tools }: McpManager): Promise<unknown> {
  const tool = tools.find(({ origin }) => origin?.name === 'meta') as Tool
  return JSON.parse((await endingOf(tool, {})).text)
}

describe('a call of a server', () => {
  const traceparent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'

  it('carries its place in a trace', async () => {
    const { toolCallId } = callContext
    const manager = await connectFaulty(
      {},
      { traceparent: (call) => (call.toolCallId === toolCallId ? traceparent : undefined) },
    )
    expect(await metaOf(manager)).toMatchObject({ traceparent })
  })

  it('is made without one where none can be had', async () => {
    const manager = await connectFaulty({}, { traceparent: () => Promise.reject(new Error('no ledger')) })
    expect(await metaOf(manager)).not.toHaveProperty('traceparent')
  })
})

describe('the time of a call', () => {
  it('ends after a time without progress, or as a whole', async () => {
    for (const over of [10, 100]) {
      const timers = new HeldTimers()
      const deadline = startDeadline(timers, 10, 100)
      deadline.progress()
      expect(timers.count).toBe(2)
      await timers.fire(over)
      expect(deadline.signal.reason).toMatchObject({ name: 'TimeoutError' })
      expect(timers.count).toBe(0)
      deadline.progress()
      expect(timers.count).toBe(0)
    }
  })

  it('stands still while a person decides, also where several questions are open', () => {
    const timers = new HeldTimers()
    const deadline = startDeadline(timers, 10, 100)
    deadline.pause()
    deadline.pause()
    deadline.resume()
    deadline.progress()
    expect(timers.count).toBe(0)
    deadline.resume()
    expect(timers.count).toBe(2)
  })

  it('sets no timer any more once the call has ended', () => {
    const timers = new HeldTimers()
    const deadline = startDeadline(timers, 10, 100)
    deadline.pause()
    deadline.stop()
    deadline.resume()
    deadline.progress()
    expect(timers.count).toBe(0)
    expect(deadline.signal.aborted).toBe(false)
  })
})

describe('calls while a person answers for one of them', () => {
  it('stand still; one that begins meanwhile has its time prolonged by progress, then and later', () => {
    const clock = manualClock()
    const asking = startDeadline(clock, 1_000, 10_000)
    const deadlines = new Set([asking])
    const runAgain = pauseAll(deadlines)
    const late = startDeadline(clock, 1_000, 10_000)
    deadlines.add(late)
    for (let report = 0; report < 3; report++) {
      clock.advance(900)
      late.progress()
    }
    runAgain()
    clock.advance(900)
    expect([asking.signal.aborted, late.signal.aborted]).toEqual([false, false])
    late.progress()
    clock.advance(900)
    expect([asking.signal.aborted, late.signal.aborted]).toEqual([true, false])
    clock.advance(100)
    expect(late.signal.aborted).toBe(true)
    expect(clock.pending).toBe(0)
  })
})
