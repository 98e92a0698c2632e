import { of } from 'rxjs'
import { describe, expect, it } from 'vitest'
import { type RunId, type RuntimeEvent, memoryLedger } from '@tallystick/core'
import type { RetryPolicy } from '@tallystick/core/vocabulary'
import { manualClock, testTool, type TestToolOptions } from '@tallystick/testkit'
import { checkedRun, ofType, stage, type StageOptions } from './stage.ts'

const policy: RetryPolicy = { maxAttempts: 3, baseMs: 100, capMs: 1_000, maxRetryAfterMs: 5_000 }

/** One call of a tool with retries, and what is on record of it. */
function playing(
  tool: Partial<TestToolOptions>,
  options: StageOptions = {},
): {
  readonly set: ReturnType<typeof stage>
  readonly tool: ReturnType<typeof testTool>
  readonly play: () => Promise<readonly RuntimeEvent[]>
} {
  const made = testTool({ name: 'look', retry: policy, ...tool })
  const steps = [{ toolCalls: [{ name: 'look', input: {} }] }, { text: 'Done.' }]
  const set = stage({ steps, tools: [made], ...options })
  const play = async (): Promise<readonly RuntimeEvent[]> => {
    const result = await set.play()
    return checkedRun(await set.eventsOf(result.runId))
  }
  return { set, tool: made, play }
}

const failsTimes =
  (times: number): NonNullable<TestToolOptions['run']> =>
  ({ attempt }) => {
    if (attempt <= times) throw new Error(`busy ${attempt}`)
    return 'found'
  }

describe('a tool call that fails', () => {
  it('is tried again after growing waits, each attempt on record under one key', async () => {
    const { play, tool } = playing({ run: failsTimes(2) })
    const events = await play()
    const starts = ofType(events, 'tool_started')
    const failures = ofType(events, 'tool_attempt_failed')
    expect(starts.map(({ attempt }) => attempt)).toEqual([1, 2, 3])
    expect(new Set(starts.map(({ idempotencyKey }) => idempotencyKey)).size).toBe(1)
    expect(new Set(tool.runs.map(({ idempotencyKey }) => idempotencyKey)).size).toBe(1)
    expect(failures.map(({ at, retryAt }) => retryAt - at)).toEqual([100, 200])
    expect(starts.slice(1).map(({ at }) => at)).toEqual(failures.map(({ retryAt }) => retryAt))
    expect(failures.map(({ content }) => content)).toEqual([
      [{ type: 'text', text: 'Error: busy 1' }],
      [{ type: 'text', text: 'Error: busy 2' }],
    ])
    const [result] = ofType(events, 'tool_result')
    expect(result).toMatchObject({ outcome: 'success', content: [{ text: 'found' }] })
    expect(ofType(events, 'run_finished')).toMatchObject([{ toolCalls: 1, reason: 'answered' }])
  })

  it('ends with its last failure when its attempts are used up', async () => {
    const { play } = playing({ run: failsTimes(9) })
    const events = await play()
    expect(ofType(events, 'tool_started')).toHaveLength(3)
    expect(ofType(events, 'tool_result')).toMatchObject([
      {
        outcome: 'failed',
        content: [{ text: 'Error: busy 3' }, { text: 'All 3 attempts of this call have failed.' }],
      },
    ])
  })

  it('says so in each form of that failure, of which the model reads the last', async () => {
    const text = (said: string) => ({ type: 'text' as const, text: said })
    const long = 'busy '.repeat(60)
    const projecting = { ...testTool({ name: 'look', retry: policy }), maxResultChars: 100 }
    const ending = { type: 'tool_ended', outcome: 'failed', retryable: true } as const
    const fails: typeof projecting.run = () =>
      of({ ...ending, content: [text('raw')], projected: [text(long)] })
    const set = stage({
      steps: [{ toolCalls: [{ name: 'look', input: {} }] }, { text: 'Done.' }],
      tools: [{ ...projecting, run: fails }],
    })
    const events = checkedRun(await set.eventsOf((await set.play()).runId))
    const [result] = ofType(events, 'tool_result')
    const last = text('All 3 attempts of this call have failed.')
    expect(result).toMatchObject({
      content: [text('raw'), last],
      projected: [text(long), last],
      shown: [{ text: expect.stringContaining('are left out here') as string }, last],
    })
    const messages = set.model.requests.at(-1)?.messages.at(-1)
    expect(messages).toMatchObject({ results: [{ content: result?.shown }] })
  })

  it('waits without a timer where its time has come and other calls hold all places', async () => {
    const end = Promise.withResolvers<string>()
    const slow = testTool({ name: 'slow', run: () => end.promise })
    const look = testTool({ name: 'look', retry: policy, run: failsTimes(1) })
    const steps = [{ toolCalls: [look, slow].map(({ name }) => ({ name, input: {} })) }, { text: 'Done.' }]
    const base = manualClock()
    const delays: number[] = []
    const schedule: typeof base.schedule = (delayMs, callback) => {
      delays.push(delayMs)
      return base.schedule(delayMs, callback)
    }
    const clock = { ...base, schedule }
    const set = stage({ steps, tools: [look, slow], limits: { maxConcurrency: 1 }, clock })
    const run = set.start()
    while (ofType(await set.eventsOf(run), 'tool_started').length < 2) await Promise.resolve()
    base.advance(policy.capMs)
    await new Promise((resolve) => void setImmediate(resolve))
    const before = delays.length
    for (let turn = 0; turn < 50; turn++) {
      base.advance(1)
      await new Promise((resolve) => void setImmediate(resolve))
    }
    expect(delays.length).toBe(before)
    end.resolve('slowly')
    expect(await set.waitUntilSettled(run.result)).toMatchObject({ reason: 'answered', toolCalls: 2 })
    const events = checkedRun(await set.eventsOf(run))
    expect(ofType(events, 'tool_result').map(({ outcome }) => outcome)).toEqual(['success', 'success'])
  })

  it('is tried again as soon as it asks, if that is not too long', async () => {
    const asks = (retryAfterMs: number): Partial<TestToolOptions> => ({
      run: failsTimes(1),
      retryAfterMs: () => retryAfterMs,
    })
    const [failed] = ofType(await playing(asks(2_000)).play(), 'tool_attempt_failed')
    expect(failed).toMatchObject({ retryAfterMs: 2_000, retryAt: failed!.at + 2_000 })
    expect(ofType(await playing(asks(5_001)).play(), 'tool_attempt_failed')).toEqual([])
  })

  it('is not tried again where the tool declares nothing', async () => {
    const tool = testTool({ name: 'look', run: failsTimes(1) })
    const set = stage({
      steps: [{ toolCalls: [{ name: 'look', input: {} }] }, { text: 'Done.' }],
      tools: [tool],
    })
    const { runId } = await set.play()
    const events = checkedRun(await set.eventsOf(runId))
    expect(ofType(events, 'tool_attempt_failed')).toEqual([])
    expect(ofType(events, 'tool_result')).toMatchObject([
      { outcome: 'failed', content: [{ text: 'Error: busy 1' }] },
    ])
  })

  it('is tried again after a timeout where it reads or may be made again, and else not', async () => {
    const hangs: Partial<TestToolOptions> = {
      timeoutMs: 50,
      run: ({ attempt }) => (attempt === 1 ? new Promise<string>(() => {}) : 'found'),
    }
    const outcomes = async (more: Partial<TestToolOptions>): Promise<readonly string[]> =>
      (await playing({ ...hangs, ...more }).play()).flatMap((event) =>
        event.type === 'tool_attempt_failed' || event.type === 'tool_result' ? [event.outcome] : [],
      )
    expect(await outcomes({})).toEqual(['timed_out', 'success'])
    expect(await outcomes({ effect: 'write', recovery: 'rerun' })).toEqual(['timed_out', 'success'])
    expect(await outcomes({ effect: 'write' })).toEqual(['timed_out'])
  })

  it('is given up when the run is cancelled while it waits, with what it failed with', async () => {
    const { set } = playing({ run: failsTimes(9) })
    const run = set.start()
    run.events$.subscribe(({ type }) => {
      if (type === 'tool_attempt_failed') void run.cancel('enough')
    })
    expect((await set.waitUntilSettled(run.result)).reason).toBe('cancelled')
    const events = checkedRun(await set.eventsOf(run))
    expect(ofType(events, 'tool_started')).toHaveLength(1)
    const text = 'It was not tried again: the run was cancelled.'
    expect(ofType(events, 'tool_result')).toMatchObject([
      { outcome: 'failed', content: [{ text: 'Error: busy 1' }, { text }] },
    ])
    expect(set.clock.pending).toBe(0)
  })

  it('is not tried again after the time of the run, nor waited for', async () => {
    const limits = { maxDurationMs: 150, onLimit: 'stop' } as const
    const { play, set } = playing({ run: failsTimes(9) }, { limits })
    const events = await play()
    expect(ofType(events, 'tool_started').map(({ attempt }) => attempt)).toEqual([1, 2])
    expect(ofType(events, 'tool_result')).toMatchObject([{ outcome: 'failed' }])
    expect(set.clock.pending).toBe(0)
  })

  it('keeps later writes waiting until it has ended', async () => {
    const order: string[] = []
    const write = (name: string, fails: boolean): ReturnType<typeof testTool> =>
      testTool({
        name,
        effect: 'write',
        recovery: 'rerun',
        retry: policy,
        run: ({ attempt }) => {
          order.push(`${name} ${attempt}`)
          if (fails && attempt === 1) throw new Error('busy')
          return 'done'
        },
      })
    const toolCalls = [
      { name: 'first', input: {} },
      { name: 'second', input: {} },
    ]
    const set = stage({
      steps: [{ toolCalls }, { text: 'Done.' }],
      tools: [write('first', true), write('second', false)],
    })
    await set.play()
    expect(order).toEqual(['first 1', 'first 2', 'second 1'])
  })

  it('is tried again by the process that takes the run over, when its time has come', async () => {
    const ledger = memoryLedger()
    const clock = manualClock()
    const first = playing({ run: failsTimes(1) }, { ledger, clock })
    const run = first.set.start()
    await new Promise<void>((resolve) => {
      run.events$.subscribe(({ type }) => type === 'tool_attempt_failed' && resolve())
    })
    const second = playing({ run: failsTimes(1) }, { ledger, clock, steps: [{ text: 'Done.' }] })
    const result = await second.set.waitUntilSettled(
      second.set.runtime.resume(run.id, { takeOver: true }).result,
    )
    expect(result.reason).toBe('answered')
    const events = checkedRun(await second.set.eventsOf(run))
    expect(ofType(events, 'run_resumed')).toMatchObject([{ inDoubt: [] }])
    const [failed] = ofType(events, 'tool_attempt_failed')
    const [, again] = ofType(events, 'tool_started')
    expect(again).toMatchObject({ attempt: 2, at: failed!.retryAt, epoch: 2 })
    expect(second.tool.runs.map(({ attempt }) => attempt)).toEqual([2])
    await run.result.catch(() => {})
  })

  const payment = { effect: 'write', recovery: 'rerun' } as const

  /** A run whose write fails once, cancelled there or not, and the failure, where forks begin. */
  async function failedWrite(
    isCancelled: boolean,
  ): Promise<{ readonly set: ReturnType<typeof stage>; readonly runId: RunId; readonly atSeq: number }> {
    const { set } = playing({ ...payment, run: failsTimes(1) })
    const run = set.start()
    run.events$.subscribe(({ type }) => {
      if (isCancelled && type === 'tool_attempt_failed') void run.cancel('enough')
    })
    await set.waitUntilSettled(run.result)
    const [failed] = ofType(await set.eventsOf(run), 'tool_attempt_failed')
    return { set, runId: run.id, atSeq: failed!.seq }
  }

  it('asks a person in a fork before a write is tried again, and a cancel ends it there', async () => {
    const { set, runId, atSeq } = await failedWrite(true)
    const fork = set.runtime.fork(runId, { atSeq })
    const waiting = await set.waitUntilSettled(fork.result)
    expect(waiting).toMatchObject({ status: 'suspended', pendingApprovals: [{ name: 'look', attempt: 2 }] })
    expect(await set.waitUntilSettled(fork.cancel('enough'))).toEqual({ accepted: true })
    expect(await set.waitUntilSettled(set.runtime.resume(fork.id).result)).toMatchObject({
      reason: 'cancelled',
    })
    const events = checkedRun(await set.eventsOf(fork))
    expect(ofType(events, 'tool_result')).toMatchObject([{ outcome: 'interrupted' }])
  })

  it('waits in a fork for the time of its next attempt where a person approves that before', async () => {
    const { set, runId, atSeq } = await failedWrite(true)
    const fork = set.runtime.fork(runId, { atSeq })
    const asked = await set.waitUntilSettled(fork.result)
    await fork.approve(asked.pendingApprovals[0]!.toolCallId, { by: 'ada' })
    expect(await set.waitUntilSettled(set.runtime.resume(fork.id).result)).toMatchObject({
      reason: 'answered',
    })
    const events = checkedRun(await set.eventsOf(fork))
    const [failed] = ofType(events, 'tool_attempt_failed')
    expect(ofType(events, 'approval_decided')[0]!.at).toBeLessThan(failed!.retryAt)
    expect(ofType(events, 'tool_started').map(({ at }) => at)[1]).toBe(failed!.retryAt)
  })

  it('has the recorded result in a fork at once, also where the clock of the fork is slow', async () => {
    const { set, runId, atSeq } = await failedWrite(false)
    const options = { ledger: set.ledger, steps: [{ text: 'Done.' }], random: () => 0.5 }
    const { set: slow, tool } = playing({ ...payment, run: failsTimes(1) }, options)
    const fork = slow.runtime.fork(runId, { atSeq })
    expect(await slow.waitUntilSettled(fork.result)).toMatchObject({ reason: 'answered' })
    const events = checkedRun(await slow.eventsOf(fork))
    expect(ofType(events, 'tool_started')).toMatchObject([{ attempt: 1 }, { attempt: 2 }])
    expect(ofType(events, 'tool_result')).toMatchObject([
      { outcome: 'success', content: [{ text: 'found' }] },
    ])
    expect(tool.runs).toEqual([])
  })
})
