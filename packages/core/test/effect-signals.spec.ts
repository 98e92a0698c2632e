// What a model call and a tool report to their run, signal by signal, and when they are given up.
import { Observable, Subject } from 'rxjs'
import { ProviderError, type Model } from '@tallystick/core'
import { manualClock, sampleCallId, sampleRunId, scriptedModel, testTool } from '@tallystick/testkit'
import type { Signal } from '@tallystick/core/vocabulary'
import { describe, expect, it } from 'vitest'
import { startModelCall } from '../src/models/model-call.ts'
import { reconcileCall, startTool, type ToolStart } from '../src/tools/tool-call.ts'
import { createSteadyClock } from '../src/values/host.ts'

const turns = async (): Promise<void> => {
  for (let turn = 0; turn < 50; turn++) await Promise.resolve()
}

describe('a model call', () => {
  /** A call of a model whose signals the test sends. */
  function withCall(timeouts?: { readonly idleMs?: number; readonly totalMs?: number }) {
    const clock = manualClock()
    const signals = new Subject<never>()
    let isOpen = true
    const stream = (): Observable<never> =>
      new Observable((subscriber) => {
        const subscription = signals.subscribe(subscriber)
        return () => {
          isOpen = false
          subscription.unsubscribe()
        }
      })
    const model = { ...scriptedModel([], 'm'), stream } as unknown as Model
    const posted: Signal[] = []
    const call = { model, request: {} as never, turn: 3, attempt: 2, ...(timeouts && { timeouts }) }
    const attempt = startModelCall(call, { clock, report: () => {} }, (signal) => posted.push(signal))
    return {
      ...{ clock, posted, signals },
      stop: () => attempt.stop(),
      send: (signal: object) => signals.next(signal as never),
      isOpen: () => isOpen,
    }
  }
  const started = { type: 'model_started' } as const
  const finished = { type: 'model_finished', stopReason: 'end', parts: [] } as const
  const gaveUp = (what: string): object => ({
    ...{ type: 'model_failed', turn: 3, attempt: 2 },
    failure: { class: 'timeout', message: `m was given up: ${what}.`, retryable: true },
  })

  it('reports with its turn and its attempt, up to its end', () => {
    const { posted, send, clock } = withCall({ idleMs: 10, totalMs: 20 })
    send(started)
    expect(posted).toEqual([{ ...started, turn: 3, attempt: 2 }])
    expect(clock.pending).toBe(2)
    send({ ...finished, type: 'model_failed' })
    expect(posted).toHaveLength(2)
    expect(posted[1]).toMatchObject({
      type: 'model_failed',
      failure: { class: 'protocol', retryable: false },
    })
    send(started)
    expect(posted).toHaveLength(2)
    expect(clock.pending).toBe(0)
  })

  it('is given up after so long without a report', () => {
    const { posted, send, clock, isOpen } = withCall({ idleMs: 10 })
    clock.advance(9)
    send(started)
    clock.advance(9)
    expect(posted).toHaveLength(1)
    clock.advance(1)
    expect(posted[1]).toEqual(gaveUp('it reported nothing for 10 ms'))
    expect([isOpen(), clock.pending]).toEqual([false, 0])
  })

  it('is given up after so long in all', () => {
    const { posted, send, clock, isOpen } = withCall({ totalMs: 20 })
    clock.advance(19)
    send(started)
    expect(posted).toHaveLength(1)
    clock.advance(1)
    expect(posted[1]).toEqual(gaveUp('it took longer than 20 ms'))
    expect([isOpen(), clock.pending]).toEqual([false, 0])
  })

  it('waits without end where no time is given, and is heard no more once it is let go', () => {
    const { posted, send, stop, clock, isOpen } = withCall()
    expect(clock.pending).toBe(0)
    stop()
    send(started)
    expect([posted, isOpen()]).toEqual([[], false])
    const timed = withCall({ idleMs: 10, totalMs: 20 })
    timed.stop()
    timed.clock.advance(100)
    expect([timed.posted, timed.clock.pending]).toEqual([[], 0])
  })

  const failureAfter = (error: unknown): unknown => {
    const { posted, signals } = withCall()
    signals.error(error)
    expect(posted).toHaveLength(1)
    return (posted[0] as { failure: unknown }).failure
  }

  it('fails as its provider says, without numbers that are not finite', () => {
    const error = (more: object): ProviderError =>
      new ProviderError({
        ...{ class: 'overloaded', message: 'Later.', retryable: true, retryAfterMs: 5, status: 529 },
        ...more,
      })
    expect(failureAfter(error({}))).toStrictEqual({
      ...error({}).toFailure(),
      ...{ retryAfterMs: 5, status: 529 },
    })
    const bare = failureAfter(error({ retryAfterMs: Number.NaN, status: Infinity }))
    expect(bare).not.toHaveProperty('retryAfterMs')
    expect(bare).not.toHaveProperty('status')
    const none = failureAfter(error({ retryAfterMs: undefined, status: undefined }))
    expect(Object.keys(none as object)).not.toContain('status')
    expect(failureAfter(error({ class: 'strange' }))).toMatchObject({
      ...{ class: 'protocol', retryable: false },
      message: expect.stringMatching(
        /^The adapter for scripted script broke its contract: it threw a ProviderError that is not sound: class is /,
      ) as string,
    })
    expect(failureAfter(new TypeError('a mistake'))).toStrictEqual({
      ...{ class: 'protocol', retryable: false },
      message: 'The adapter for scripted script broke its contract: it threw TypeError: a mistake.',
    })
  })

  it('fails where its adapter reports what is not a signal, or ends without an end', () => {
    const broken = (signal: unknown): unknown => {
      const { posted, send } = withCall()
      send(signal as object)
      return (posted[0] as { failure: { message: string } }).failure.message
    }
    expect(broken(undefined)).toMatch(/broke its contract: it reported something that is not sound: /)
    expect(broken({ type: 7 })).toMatch(/broke its contract: it reported something that is not sound: /)
    expect(broken({ type: 'model_text' })).toMatch(
      /broke its contract: it reported model_text that is not sound: /,
    )
    const { posted, signals } = withCall()
    signals.complete()
    expect(posted).toMatchObject([{ failure: { message: expect.stringContaining('it completed without') } }])
  })
})

const runId = sampleRunId(1)
const toolCallId = sampleCallId(runId)
const call = { toolCallId, name: 'look', input: { at: 'tea' }, attempts: 2, effect: 'read' } as never
const context = { runId, turn: 1, toolCallId, context: 'app' } as never

function starting(more: Partial<ToolStart> & { readonly effect?: 'read' | 'write' } = {}) {
  const clock = manualClock()
  const signals = new Subject<never>()
  const seen: Record<string, unknown>[] = []
  const reasons: unknown[] = []
  const tool = {
    ...testTool({ name: 'look', timeoutMs: 1_000 }),
    run: (run: { readonly cancelled$: Observable<string> }) => {
      seen.push({ ...run, cancelled$: undefined })
      run.cancelled$.subscribe((reason) => reasons.push(reason))
      return signals
    },
  } as never
  const posted: Signal[] = []
  const { effect = 'read', ...given } = more
  const start: ToolStart = {
    ...{ tool, call: { ...(call as object), effect } as never, context },
    ...{ host: { clock, report: () => {} }, ...given },
  }
  const running = startTool(start, (signal) => posted.push(signal))
  return {
    clock,
    posted,
    running,
    seen,
    reasons,
    signals,
    send: (signal: object) => signals.next(signal as never),
  }
}

const ended = (outcome: string, text: string, durationMs = 0): object => ({
  ...{ type: 'tool_ended', toolCallId, attempt: 2, outcome, content: [{ type: 'text', text }], durationMs },
})

describe('a tool', () => {
  const success = { type: 'tool_ended', outcome: 'success', content: [{ type: 'text', text: 'blue' }] }

  it('gets its call with what the application gave the run', () => {
    const { seen } = starting()
    expect(seen).toEqual([
      {
        ...{ runId, turn: 1, toolCallId, context: 'app', input: { at: 'tea' }, attempt: 2 },
        ...{ idempotencyKey: expect.any(String) as string, cancelled$: undefined },
      },
    ])
  })

  it('reports its progress and its end, once', () => {
    const { posted, send, clock } = starting()
    send({ type: 'tool_progressed', data: { done: 1 } })
    clock.advance(30)
    send(success)
    send(success)
    send({ type: 'tool_progressed', data: { done: 2 } })
    expect(posted).toEqual([
      { type: 'tool_progressed', toolCallId, attempt: 2, data: { done: 1 } },
      ended('success', 'blue', 30),
    ])
    expect(clock.pending).toBe(0)
  })

  it('may settle later, and is heard no more', () => {
    for (const deadlineMs of [undefined, 70]) {
      const { posted, send, clock } = starting()
      send({ type: 'tool_deferred', externalId: 'job-7', ...(deadlineMs !== undefined && { deadlineMs }) })
      send(success)
      expect(posted).toStrictEqual([
        {
          ...{ type: 'tool_deferred', toolCallId, attempt: 2, externalId: 'job-7' },
          ...(deadlineMs !== undefined && { deadlineMs }),
        },
      ])
      expect(clock.pending).toBe(0)
    }
  })

  it.each<readonly [string, object | undefined, RegExp]>([
    [
      'an outcome that is not its own to give',
      { ...success, outcome: 'denied' },
      /the outcome denied, which a tool cannot report/,
    ],
    [
      'an end without content',
      { type: 'tool_ended', outcome: 'success' },
      /it reported tool_ended that is not sound/,
    ],
    ['nothing at all', undefined, /it reported something that is not sound/],
    ['a signal without a type', { type: 7 }, /it reported something that is not sound/],
  ])('fails that reports %s', (_what, signal, message) => {
    const { posted, send } = starting()
    send(signal as object)
    expect(posted).toMatchObject([{ outcome: 'failed', content: [{ text: expect.stringMatching(message) }] }])
    expect(posted).toHaveLength(1)
  })

  it.each(['success', 'failed', 'timed_out', 'cancelled', 'invalid_input'])('may end as %s', (outcome) => {
    const { posted, send } = starting()
    send({ ...success, outcome })
    expect(posted).toEqual([ended(outcome, 'blue')])
  })

  it('loses no result by progress that cannot be kept', () => {
    const { posted, send } = starting()
    send({ type: 'tool_progressed', data: 1n })
    send(success)
    expect(posted).toEqual([ended('success', 'blue')])
  })

  it('fails that throws or ends without a result, and one that is not there any more', () => {
    const failing = starting()
    failing.signals.error(new Error('no sky'))
    expect(failing.posted).toMatchObject([
      { outcome: 'failed', content: [{ text: expect.stringContaining('no sky') }] },
    ])
    const silent = starting()
    silent.signals.complete()
    expect(silent.posted).toMatchObject([
      { outcome: 'failed', content: [{ text: expect.stringContaining('The tool ended without a result.') }] },
    ])
    const throwing = starting({
      tool: {
        ...testTool({ name: 'look' }),
        run: () => {
          throw new Error('at once')
        },
      },
    })
    expect(throwing.posted).toMatchObject([{ content: [{ text: expect.stringContaining('at once') }] }])
    const gone = starting({ tool: undefined })
    expect(gone.posted).toMatchObject([
      {
        outcome: 'failed',
        content: [{ text: expect.stringContaining('The tool look is not there any more as it was') }],
      },
    ])
  })

  it('that reads is given up when its time is over', () => {
    const { posted, clock, reasons } = starting()
    clock.advance(999)
    expect(posted).toEqual([])
    clock.advance(1)
    expect(posted).toMatchObject([{ outcome: 'timed_out', durationMs: 1_000 }])
    expect(reasons).toEqual(['The tool took too long.'])
  })

  it('that writes has its grace time to stop', () => {
    const deaf = starting({ effect: 'write', graceMs: 500 })
    deaf.clock.advance(1_499)
    expect([deaf.posted, deaf.reasons]).toEqual([[], ['The tool took too long.']])
    deaf.clock.advance(1)
    expect(deaf.posted).toMatchObject([{ outcome: 'timed_out', durationMs: 1_500 }])
    const obeying = starting({ effect: 'write', graceMs: 500 })
    obeying.clock.advance(1_200)
    obeying.send({ ...success, outcome: 'cancelled' })
    expect(obeying.posted).toEqual([ended('timed_out', 'blue', 1_200)])
    expect(obeying.clock.pending).toBe(0)
    const done = starting({ effect: 'write', graceMs: 500 })
    done.clock.advance(1_200)
    done.send(success)
    expect(done.posted).toEqual([ended('success', 'blue', 1_200)])
    const hurried = starting({ effect: 'write' })
    hurried.clock.advance(1_000)
    expect(hurried.posted).toMatchObject([{ outcome: 'timed_out', durationMs: 1_000 }])
  })

  it('is asked to stop once, and may be given up', () => {
    const { running, reasons, posted, send, clock } = starting()
    running.cancel('enough')
    running.cancel('really')
    expect([reasons, posted]).toEqual([['enough'], []])
    running.stop()
    send(success)
    clock.advance(5_000)
    expect([posted, clock.pending]).toEqual([[], 0])
  })
})

describe('the outside world, asked about a call in doubt', () => {
  async function found(reconcile: unknown, timeoutMs?: number) {
    const clock = manualClock()
    const posted: Signal[] = []
    const tool = {
      ...testTool({ name: 'look' }),
      reconcile,
      ...(timeoutMs !== undefined && { timeoutMs }),
    } as never
    const start: ToolStart = { tool, call, context, host: { clock, report: () => {} } }
    const done = reconcileCall(start, (signal) => posted.push(signal))
    await turns()
    return { clock, posted, done }
  }
  const unknown = [{ type: 'call_reconciled', toolCallId, finding: { state: 'unknown' } }]

  it('says what became of it', async () => {
    const asked: unknown[] = []
    const { posted, clock } = await found(async (run: unknown) => {
      asked.push(run)
      return { state: 'not_started' }
    })
    expect(posted).toMatchObject([{ type: 'call_reconciled', toolCallId }])
    expect(asked).toMatchObject([{ runId, toolCallId, input: { at: 'tea' }, attempt: 2, context: 'app' }])
    expect(clock.pending).toBe(0)
  })

  it.each([
    ['an answer that is none', async () => ({ state: 'perhaps' })],
    ['a failure', () => Promise.reject(new Error('no'))],
    ['nothing', undefined],
  ])('finds nothing by %s', async (_what, reconcile) => {
    const { posted, clock } = await found(reconcile)
    if (posted.length === 0) clock.advance(60_000)
    await turns()
    expect(posted).toEqual(unknown)
  })

  it.each([undefined, 50])('has its time to answer: %j ms, or a minute', async (timeoutMs) => {
    const { posted, clock } = await found(() => new Promise(() => {}), timeoutMs)
    clock.advance((timeoutMs ?? 60_000) - 1)
    await turns()
    expect(posted).toEqual([])
    clock.advance(1)
    await turns()
    expect(posted).toEqual(unknown)
  })
})

describe('a clock that may be set ahead', () => {
  it.each([
    [1_000, 11_000],
    [1_001, 10_000],
  ])('takes a timer that is %d ms late for what it is', (lateMs, due) => {
    let now = 0
    let ring: () => void = () => {}
    const clock = createSteadyClock({
      now: () => now,
      schedule: (_delayMs, callback) => {
        ring = callback
        return () => {}
      },
    })
    clock.schedule(10_000, () => {})
    now = 10_000 + lateMs
    ring()
    expect(clock.now()).toBe(due)
  })
})
