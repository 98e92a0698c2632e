// What a run, a fork and a session take, and where each number begins.
import { ConfigurationError, createRuntime, defineAgent, memoryLedger } from '@tallystick/core'
import { manualClock, sampleRunId, scriptedModel, testTool } from '@tallystick/testkit'
import { describe, expect, it } from 'vitest'
import {
  forkOptions,
  requireRunOptions,
  resumeOptions,
  runtimeOptions,
  sessionRunOptions,
} from '../src/runtime/runtime-options.ts'
import { requireOptions } from '../src/values/option.ts'
import { createRunIdMaker } from '../src/runtime/host.ts'
import { ofType, stage } from './stage.ts'

const agent = defineAgent({ name: 'agent', instructions: 'Act.', model: scriptedModel([]) })
const runId = sampleRunId(1)
const ledger = memoryLedger()
const takers = {
  run: (options: object) => requireRunOptions(options),
  session: (options: object) => requireOptions('session(…).run', sessionRunOptions, options),
  fork: (options: object) => requireOptions('fork', forkOptions, { atSeq: 1, ...options }),
  resume: (options: object) => requireOptions('resume', resumeOptions, options),
  runtime: (options: object) => requireOptions('createRuntime', runtimeOptions, { ledger, ...options }),
}
const call = { toolCallId: 'c', content: 'x' }
const approval = { toolCallId: 'c', by: 'ada', approved: true }

describe('options', () => {
  it.each<readonly [keyof typeof takers, object]>([
    ['run', {}],
    ['run', { sessionId: 's', whenBusy: 'conflict', subject: 'ada', context: null }],
    ['run', { whenBusy: 'wait', limits: { maxTurns: 0 }, modelSettings: {}, from: { runId } }],
    ['run', { from: { runId, atSeq: 0 }, edit: { of: runId, edits: [{ index: 0 }], by: 'ada', reason: '' } }],
    ['session', { whenBusy: 'conflict', inputId: 'i' }],
    ['session', { whenBusy: 'wait' }],
    ['session', { whenBusy: 'join', from: { runId, atSeq: 3 }, subject: 'ada', context: 7 }],
    ['fork', { atSeq: 0 }],
    ['fork', { atSeq: 1, agent, sessionId: 's', writes: 'ask', context: 1, edit: {} }],
    ['fork', { writes: 'stub', edit: { input: 'x', history: [{}], by: '', reason: '' } }],
    ['fork', { writes: 'run', edit: { results: [call, { ...call, outcome: 'failed' }] } }],
    ['fork', { edit: { results: [{ ...call, outcome: 'success' }] } }],
    ['fork', { edit: { approvals: [approval, { ...approval, approved: false, reason: '', input: {} }] } }],
    ['resume', { agent, context: 1 }],
    ['runtime', { agents: [agent], prices: {}, approval: () => 'run', onDrift: 'continue', host: {} }],
    ['runtime', { prices: () => undefined, onDrift: 'refuse', host: { clock: manualClock() } }],
    ['runtime', { host: { random: Math.random, report: async () => {} } }],
  ])('of a %s may be %j', (taker, options) => {
    expect(() => takers[taker](options)).not.toThrow()
  })

  it.each<readonly [keyof typeof takers, object, string]>([
    ['run', { whenBusy: 'join' }, "run: whenBusy is 'join'"],
    ['run', { sessionId: '' }, 'sessionId is an empty text'],
    ['run', { subject: '' }, 'subject is an empty text'],
    ['run', { from: { runId, atSeq: -1 } }, 'from.atSeq is -1'],
    ['run', { from: {} }, 'from.runId is missing'],
    ['run', { edit: { of: runId, edits: {} } }, 'edit.edits is an object'],
    ['session', { whenBusy: 'never' }, "session(…).run: whenBusy is 'never'"],
    ['session', { inputId: '' }, 'inputId is an empty text'],
    ['session', { sessionId: 's' }, 'sessionId is not an option'],
    ['fork', { atSeq: -1 }, 'fork: atSeq is -1'],
    ['fork', { atSeq: 1.5 }, 'atSeq is 1.5; expected a whole number'],
    ['fork', { writes: 'all' }, "writes is 'all'"],
    ['fork', { agent: {} }, 'agent is an object'],
    ['fork', { edit: { results: [{ ...call, outcome: 'denied' }] } }, "edit.results[0].outcome is 'denied'"],
    ['fork', { edit: { results: [{ content: 'x' }] } }, 'edit.results[0].toolCallId is missing'],
    ['fork', { edit: { approvals: [{ ...approval, approved: 1 }] } }, 'edit.approvals[0].approved is 1'],
    ['fork', { edit: { approvals: [{ ...approval, by: '' }] } }, 'edit.approvals[0].by is an empty text'],
    ['resume', { agent: 'a' }, 'resume: agent is a text'],
    ['resume', { by: 'a' }, 'by is not an option'],
    ['runtime', { onDrift: 'ask' }, "onDrift is 'ask'"],
    ['runtime', { ledger: { append: 1, read: () => {}, acquire: () => {} } }, 'ledger is an object'],
    ['runtime', { ledger: { append: () => {} } }, 'ledger is an object'],
    ['runtime', { host: { clock: { now: () => 1 } } }, 'host.clock is an object; expected a clock'],
    ['runtime', { host: { random: async () => 1 } }, 'host.random is an async function'],
  ])('of a %s may not be %j', (taker, options, message) => {
    expect(() => takers[taker](options)).toThrow(ConfigurationError)
    expect(() => takers[taker](options)).toThrow(message)
  })
})

describe('a session', () => {
  const runtime = createRuntime({ ledger, host: { clock: manualClock() } })

  it.each(['chat', ' ', '"', 'a\nb', '😀'])('may be called %j', (id) => {
    expect(runtime.session(id).id).toBe(id)
  })

  it.each(['', 7, undefined, 'half \ud83d', 'nul \0'])('may not be called %j', (id) => {
    expect(() => runtime.session(id as string)).toThrow('A session needs a name: a text that is not empty')
  })
})

describe('a handle of a run', () => {
  it('shows events after a whole number of them', async () => {
    const set = stage()
    const run = set.start()
    await set.waitUntilSettled(run.result)
    expect(() => run.after(0)).not.toThrow()
    expect(() => run.after(-1)).toThrow('run.after: seq is -1')
    expect(() => run.after(1.5)).toThrow('run.after: seq is 1.5; expected a whole number')
  })

  it('sends commands in the shape in which they are recorded', async () => {
    const slow = testTool({ name: 'slow', run: () => new Promise(() => {}) })
    const put: object[] = []
    const store = memoryLedger()
    const set = stage({
      ...{ steps: [{ toolCalls: [{ name: 'slow', input: {} }] }], tools: [slow] },
      ledger: {
        ...store,
        put: (id, entry) => {
          put.push(entry.command)
          return store.put(id, entry)
        },
      },
    })
    const run = set.start()
    while (slow.runs.length === 0) await Promise.resolve()
    await set.waitUntilSettled(run.steer('Hurry.'))
    await set.waitUntilSettled(run.queue('Then rest.'))
    await set.waitUntilSettled(run.raiseLimit('maxTurns', 90, { by: 'ada' }))
    await set.waitUntilSettled(run.cancel())
    expect(await set.waitUntilSettled(run.result)).toMatchObject({ reason: 'cancelled' })
    const message = (text: string): object => ({ role: 'user', parts: [{ type: 'text', text }] })
    const receipt = expect.stringMatching(/^[0-9a-f-]{36}$/) as string
    expect(put).toStrictEqual([
      { type: 'steer', message: message('Hurry.'), receipt },
      { type: 'queue', message: message('Then rest.'), receipt },
      { type: 'raise_limit', limit: 'maxTurns', max: 90, by: 'ada' },
      { type: 'cancel' },
    ])
  })

  it('says in words what was wrong with a command, and sends nothing', async () => {
    const set = stage()
    const run = set.start()
    await set.waitUntilSettled(run.result)
    expect(await run.approve('c', 7 as never)).toEqual({
      ...{ accepted: false, code: 'malformed' },
      message: expect.stringMatching(/^approve: what it was given is 7.*Nothing was sent\.$/) as string,
    })
    expect(await run.deny('c', { by: 'ada' } as never)).toEqual({
      ...{ accepted: false, code: 'malformed' },
      message: expect.stringMatching(/^deny: reason is missing.*Nothing was sent\.$/) as string,
    })
  })
})

describe('the times of a runtime', () => {
  const slow = () => testTool({ name: 'slow', run: () => new Promise(() => {}) })
  const steps = [{ toolCalls: [{ name: 'slow', input: {} }] }]

  it('give what is in flight five seconds, where a drain does not say', async () => {
    const tool = slow()
    const set = stage({ steps, tools: [tool] })
    const run = set.start()
    while (tool.runs.length === 0) await Promise.resolve()
    for (let turn = 0; turn < 100; turn++) await Promise.resolve()
    const before = set.clock.now()
    expect(await set.waitUntilSettled(set.runtime.drain())).toMatchObject([
      { runId: run.id, status: 'interrupted' },
    ])
    expect(set.clock.now() - before).toBe(5_000)
  })

  it('let a silent ledger keep a drain waiting for five seconds more', async () => {
    const tool = slow()
    const store = memoryLedger()
    let isSilent = false
    const set = stage({
      ...{ steps, tools: [tool] },
      ledger: { ...store, append: (...given) => (isSilent ? new Promise(() => {}) : store.append(...given)) },
    })
    const run = set.start()
    while (tool.runs.length === 0) await Promise.resolve()
    for (let turn = 0; turn < 100; turn++) await Promise.resolve()
    isSilent = true
    void run.cancel().catch(() => {})
    for (let turn = 0; turn < 100; turn++) await Promise.resolve()
    const before = set.clock.now()
    const result = run.result.catch((error: unknown) => error)
    expect(await set.waitUntilSettled(set.runtime.drain(700))).toEqual([])
    expect(String(await result)).toContain('has not answered for 5000 ms')
    expect(set.clock.now() - before).toBe(5_700)
  })
})

describe('ids of runs that begin in the same millisecond', () => {
  it('are four thousand and ninety-six, and then those of the next', () => {
    const make = createRunIdMaker({ clock: { now: () => 5, schedule: () => () => {} }, random: () => 0 })
    const ids = Array.from({ length: 4_098 }, () => make().slice(0, 18))
    expect(ids[0]).toBe('00000000-0005-7000')
    expect(ids[4_095]).toBe('00000000-0005-7fff')
    expect(ids.slice(4_096)).toEqual(['00000000-0006-7000', '00000000-0006-7001'])
    const early = createRunIdMaker({ clock: { now: () => 0, schedule: () => () => {} }, random: () => 0 })
    expect(early().slice(0, 18)).toBe('00000000-0000-7000')
  })
})

describe('two wrong commands in an inbox', () => {
  it('leave it both, with the next append', async () => {
    const set = stage({
      steps: [{ toolCalls: [{ name: 'pay', input: {} }] }],
      tools: [testTool({ name: 'pay', check: () => ({ kind: 'ask' }) })],
    })
    const run = set.start()
    await set.waitUntilSettled(run.result)
    for (const key of ['one', 'two', 'three'])
      await set.ledger.put(run.id, { key, at: 0, command: { type: 'dream' } as never })
    const other = stage({ ledger: set.ledger, clock: set.clock, tools: set.agent.tools })
    const resumed = other.runtime.resume(run.id)
    expect(await other.waitUntilSettled(resumed.result)).toMatchObject({ status: 'suspended' })
    expect(await set.ledger.inbox(run.id)).toEqual([])
    expect(ofType(await set.eventsOf(run), 'run_finished')).toEqual([])
  })
})
