import { createRuntime } from '@tallystick/core'
import { manualClock, testTool, type ScriptedStep, type TestTool } from '@tallystick/testkit'
import { describe, expect, it } from 'vitest'
import {
  computeAnswerDigest,
  readCalls,
  emptyCallLog,
  logCall,
  listSameAnswers,
  type LoggedCall,
} from '../src/machine/history.ts'
import { callId } from './pages.ts'
import { checkedRun, ofType, stage, type StageOptions, type Stage } from './stage.ts'

const ask = (...names: readonly string[]): ScriptedStep => ({
  toolCalls: names.map((name) => ({ name, input: {} })),
})
const look = (): TestTool => testTool({ name: 'look', run: () => 'FAIL' })

/** The outcomes of a run's calls, in the order of their ends, and why it ended. */
async function play(tools: readonly TestTool[], steps: readonly ScriptedStep[], maxRepeats = 2) {
  const set = stage({ steps: [...steps, { text: 'Enough.' }], tools: [...tools], limits: { maxRepeats } })
  const run = set.start()
  const { reason } = await set.waitUntilSettled(run.result)
  const outcomes = ofType(checkedRun(await set.eventsOf(run)), 'tool_result').map(
    ({ name, outcome }) => `${name} ${outcome}`,
  )
  return { reason, outcomes }
}

describe('a read whose answer stays the same', () => {
  it('given a write in between, when it is made again, then it runs', async () => {
    const edit = testTool({ name: 'edit', effect: 'write', run: () => 'edited' })
    const tests = look()
    const { outcomes } = await play([tests, edit], [ask('look'), ask('look'), ask('edit'), ask('look')])
    expect(outcomes.at(-1)).toBe('look success')
    expect(tests.runs).toHaveLength(3)
  })

  it('given a write that failed, when it is made again, then it runs: part of it may have happened', async () => {
    const edit = testTool({ name: 'edit', effect: 'write', run: () => Promise.reject(new Error('half')) })
    const tests = look()
    await play([tests, edit], [ask('look'), ask('look'), ask('edit'), ask('look')])
    expect(tests.runs).toHaveLength(3)
  })

  it('given a write before it in the same reply, when both are asked for, then it is not served from before', async () => {
    const edit = testTool({ name: 'edit', effect: 'write', run: () => 'edited' })
    const tests = look()
    const { outcomes } = await play([tests, edit], [ask('look'), ask('look'), ask('edit', 'look')])
    expect(outcomes.filter((outcome) => outcome.endsWith('repeated'))).toEqual([])
    expect(tests.runs).toHaveLength(3)
  })

  it('given an answer in between that was not known, when it is made again, then it runs', async () => {
    let version = 0
    const clock = testTool({ name: 'clock', run: () => `version ${++version}` })
    const tests = look()
    const turns = [ask('look', 'clock'), ask('look', 'clock'), ask('look', 'clock'), ask('look', 'clock')]
    expect((await play([tests, clock], turns)).outcomes).toEqual(
      turns.flatMap(() => ['look success', 'clock success']),
    )
  })

  it('given input while the run is at work, when it is made again, then it runs', async () => {
    const tests = look()
    const steps = [ask('look'), ask('look'), { text: 'It fails.' }, ask('look'), { text: 'Still.' }]
    const set = stage({ steps, tools: [tests], limits: { maxRepeats: 2 } })
    const run = set.start()
    await set.waitUntilSettled(run.queue('I mended it.'))
    await set.waitUntilSettled(run.result)
    expect(tests.runs).toHaveLength(3)
  })
})

describe('a tool that is meant to be asked again', () => {
  it('given equal answers and equal errors, when it is asked on, then every call runs', async () => {
    let asked = 0
    const run = (): string => {
      if (++asked % 7 < 4) throw new Error('not ready')
      return 'running'
    }
    const poll = testTool({ name: 'poll', repeats: 'allowed', run })
    const { reason, outcomes } = await play(
      [poll],
      Array.from({ length: 14 }, () => ask('poll')),
    )
    expect([reason, asked, outcomes.length]).toEqual(['answered', 14, 14])
  })
})

describe('a poll with a least interval', () => {
  const interval = { minIntervalMs: 5_000 }

  /** A run of polls, and the seconds after its beginning at which each was made. */
  function polling(steps: readonly ScriptedStep[], options: StageOptions = {}) {
    const clock = manualClock()
    const began = clock.now()
    const at: number[] = []
    const poll = testTool({
      name: 'poll',
      repeats: interval,
      run: () => {
        at.push(Math.round((clock.now() - began) / 1000))
        return 'running'
      },
    })
    const set = stage({ ...options, steps: [...steps, { text: 'Enough.' }], tools: [poll], clock })
    return { set, at, clock, poll }
  }

  it('given equal answers, when it is asked on, then each call waits for its time, and all run', async () => {
    const { set, at } = polling(
      Array.from({ length: 9 }, () => ask('poll')),
      { limits: { maxRepeats: 2 } },
    )
    const run = set.start()
    expect(await set.waitUntilSettled(run.result)).toMatchObject({ reason: 'answered' })
    expect(at).toEqual([0, 5, 10, 15, 20, 25, 30, 35, 40])
    checkedRun(await set.eventsOf(run))
  })

  it('given equal calls in one reply, and others, when they start, then only the equal ones wait for each other', async () => {
    const calls = [{ job: 1 }, { job: 1 }, { job: 2 }].map((input) => ({ name: 'poll', input }))
    const { set, at, poll } = polling([{ toolCalls: calls }])
    await set.waitUntilSettled(set.start().result)
    expect(at).toEqual([0, 0, 5])
    expect(poll.runs.map(({ input }) => input['job'])).toEqual([1, 2, 1])
  })

  it('given a run whose time is up while a poll waits, when it ends, then the model hears that it was not made', async () => {
    const { set, at } = polling([ask('poll'), ask('poll'), { text: 'It was running.' }], {
      limits: { maxDurationMs: 4_000 },
    })
    const run = set.start()
    expect(await set.waitUntilSettled(run.result)).toMatchObject({
      reason: 'time_limit',
      text: 'It was running.',
    })
    expect(at).toEqual([0])
    expect(ofType(await set.eventsOf(run), 'tool_result').at(-1)?.outcome).toBe('limit_reached')
  })

  it('given a cancel while a poll waits, when it comes, then the run ends at once', async () => {
    const { set, at, clock } = polling([ask('poll'), ask('poll')])
    const run = set.start()
    run.events$.subscribe(({ type, turn }) => {
      if (type === 'tool_requests_collected' && turn === 2) void run.cancel('enough')
    })
    expect(await set.waitUntilSettled(run.result)).toMatchObject({ reason: 'cancelled' })
    expect([at, clock.pending]).toEqual([[0], 0])
  })

  it('given a stop while a poll waits, when another process resumes the run, then the poll keeps its time', async () => {
    const { set, at, clock } = polling([ask('poll'), ask('poll')])
    const run = set.start()
    const waits = new Promise<void>((resolve) =>
      run.events$.subscribe(({ type, turn }) => {
        if (type === 'tool_requests_collected' && turn === 2) resolve()
      }),
    )
    await set.waitUntilSettled(waits)
    await set.waitUntilSettled(set.runtime.drain(0))
    clock.advance(2_000)
    const other = createRuntime({ ledger: set.ledger, agents: [set.agent], host: { clock } })
    await set.waitUntilSettled(other.resume(run.id).result)
    expect(at).toEqual([0, 5])
  })
})

describe('a write that is meant several times', () => {
  it('given equal answers, when it is asked for again, then it runs each time', async () => {
    const send = testTool({ name: 'send', effect: 'write', run: () => 'sent' })
    const { reason } = await play(
      [send],
      Array.from({ length: 5 }, () => ask('send')),
    )
    expect([reason, send.runs.length]).toEqual(['answered', 5])
  })

  it('given the same error again and again, when it is asked on, then the run ends', async () => {
    const send = testTool({ name: 'send', effect: 'write', run: () => Promise.reject(new Error('no')) })
    const { reason } = await play(
      [send],
      Array.from({ length: 5 }, () => ask('send')),
    )
    expect([reason, send.runs.length]).toEqual(['repeat_limit', 2])
  })
})

const call = (name: string, day = 'today') => ({ name, input: { day } })

function asking(tool: TestTool, calls: readonly ReturnType<typeof call>[], limits: object): Stage {
  return stage({ steps: [{ toolCalls: [...calls] }, { text: 'Done.' }], tools: [tool], limits })
}

async function outcomes(set: Stage): Promise<readonly string[]> {
  const run = set.start()
  await set.waitUntilSettled(run.result)
  const results = ofType(checkedRun(await set.eventsOf(run)), 'tool_result')
  const order = ofType(await set.eventsOf(run), 'tool_results_injected')[0]!.toolCallIds
  return order.map((id) => results.find(({ toolCallId }) => toolCallId === id)!.outcome)
}

describe('equal calls in one reply', () => {
  it('run as often as a repeat is allowed, and the rest is served', async () => {
    const look = testTool({ name: 'look', run: () => 'rain' })
    const calls = Array.from({ length: 4 }, () => call('look'))
    expect(await outcomes(asking(look, calls, { maxRepeats: 1 }))).toEqual([
      ...['success', 'repeated', 'repeated', 'repeated'],
    ])
    expect(look.runs).toHaveLength(1)
    const twice = testTool({ name: 'look', run: () => 'rain' })
    await outcomes(asking(twice, calls, { maxRepeats: 2 }))
    expect(twice.runs).toHaveLength(2)
  })

  it.each([
    ['writes', { effect: 'write' as const }],
    ['calls of a tool that is meant to be asked again', { repeats: 'allowed' as const }],
  ])('all run where they are %s', async (_what, options) => {
    const pay = testTool({ name: 'pay', ...options, run: () => 'done' })
    const calls = Array.from({ length: 5 }, () => call('pay'))
    expect(await outcomes(asking(pay, calls, { maxRepeats: 1 }))).toEqual(calls.map(() => 'success'))
    expect(pay.runs).toHaveLength(5)
  })

  it('run again where the answer changes: that is progress', async () => {
    let answers = 0
    const look = testTool({ name: 'look', run: () => `answer ${++answers}` })
    const calls = Array.from({ length: 3 }, () => call('look'))
    expect(await outcomes(asking(look, calls, { maxRepeats: 2 }))).toEqual(['success', 'success', 'success'])
  })

  it('leave calls of other input alone, which run beside them', async () => {
    const release = Promise.withResolvers<string>()
    const look = testTool({ name: 'look', run: () => release.promise })
    const set = asking(look, [call('look'), call('look', 'tomorrow'), call('look')], { maxRepeats: 1 })
    const run = set.start()
    set.clock.schedule(10, () => release.resolve('rain'))
    await set.waitUntilSettled(run.result)
    const types = (await set.eventsOf(run)).map(({ type }) => type)
    const starts = types.filter((type) => type === 'tool_started')
    expect(starts).toHaveLength(2)
    expect(types.lastIndexOf('tool_started')).toBeLessThan(types.indexOf('tool_result'))
  })

  it('that write ask a person each, since each is meant', async () => {
    const pay = testTool({ name: 'pay', effect: 'write', check: () => ({ kind: 'ask' }), run: () => 'paid' })
    const set = asking(pay, [call('pay'), call('pay')], { maxRepeats: 1 })
    const rest = await set.waitUntilSettled(set.start().result)
    expect(rest.pendingApprovals).toHaveLength(2)
  })

  it('take nothing of the limit on calls where they are served', async () => {
    const look = testTool({ name: 'look', run: () => 'rain' })
    const calls = [call('look'), call('look'), call('look', 'tomorrow')]
    const limits = { maxRepeats: 1, maxToolCalls: 2 }
    expect(await outcomes(asking(look, calls, limits))).toEqual(['success', 'repeated', 'success'])
  })
})

const logged = (ordinal: number, resultDigest = 'a', inputDigest = 'd'): LoggedCall => ({
  ...{ toolCallId: callId(ordinal), name: 'look', inputDigest, resultDigest },
  result: { toolCallId: callId(ordinal), name: 'look', outcome: 'success', content: [] },
})
const same = (log: Parameters<typeof readCalls>[0]): readonly string[] =>
  listSameAnswers(log, { name: 'look', inputDigest: 'd' }).map(({ toolCallId }) => toolCallId)

describe('a log of calls', () => {
  it('stays as it is when another one grows from it', () => {
    const one = logCall(emptyCallLog, logged(1))
    const grown = logCall(one, logged(2))
    expect([readCalls(one), readCalls(grown)]).toEqual([[logged(1)], [logged(1), logged(2)]])
    expect([same(one), same(grown)]).toEqual([[callId(1)], [callId(2), callId(1)]])
    const sibling = logCall(one, logged(3))
    expect(readCalls(sibling)).toEqual([logged(1), logged(3)])
    expect([same(sibling), same(grown), same(one)]).toEqual([
      [callId(3), callId(1)],
      [callId(2), callId(1)],
      [callId(1)],
    ])
    expect(readCalls(logCall(sibling, logged(4)))).toEqual([logged(1), logged(3), logged(4)])
  })

  it('of a run that has called nothing stays empty, whatever other runs call', () => {
    const [one, two] = [logCall(emptyCallLog, logged(1)), logCall(emptyCallLog, logged(2))]
    expect([readCalls(one), readCalls(two), readCalls(emptyCallLog)]).toEqual([[logged(1)], [logged(2)], []])
    expect([same(one), same(emptyCallLog)]).toEqual([[callId(1)], []])
  })

  it('finds equal calls from the last backwards, up to another answer', () => {
    const log = [logged(1), logged(2, 'b'), logged(3, 'b', 'other'), logged(4, 'b')].reduce(
      logCall,
      emptyCallLog,
    )
    expect(same(log)).toEqual([callId(4), callId(2)])
    expect(same(emptyCallLog)).toEqual([])
  })

  it('compares answers by what they say where no digest is given, and with those that have one', () => {
    const answered = (ordinal: number, text: string): LoggedCall => {
      const { resultDigest: _none, result, ...call } = logged(ordinal)
      return { ...call, result: { ...result, content: [{ type: 'text', text }] } }
    }
    const log = [answered(1, 'other'), answered(2, 'same'), answered(3, 'same')].reduce(logCall, emptyCallLog)
    expect(same(log)).toEqual([callId(3), callId(2)])
    const digest = computeAnswerDigest('success', [{ type: 'text', text: 'same' }])
    const more = logCall(log, logged(4, digest))
    expect(same(more)).toEqual([callId(4), callId(3), callId(2)])
  })
})
