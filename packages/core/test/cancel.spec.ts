import {
  type Run,
  type RunResult,
  type RuntimeEvent,
  type Tool,
  createRuntime,
  defineAgent,
  memoryLedger,
  type Agent,
  type Ledger,
} from '@tallystick/core'
import type { EventType, ToolSignal } from '@tallystick/core/vocabulary'
import { testTool, scriptedModel } from '@tallystick/testkit'
import { Observable, type Subscriber, Subject, config, map, type Subscription, lastValueFrom } from 'rxjs'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { toCancelCommand, cancelWith, someSignal } from '../src/runtime/runtime-options.ts'
import { StopRequest } from '../src/tools/tool-call.ts'
import { checkedRun, ofType, stage, typesOf, type Stage, type StageOptions } from './stage.ts'

interface Cancelled extends Stage {
  readonly run: Run
  readonly result: RunResult
  readonly events: readonly RuntimeEvent[]
}

/** Plays a run, and cancels it when the first event of a type is seen. */
async function cancelAt(type: EventType, options: StageOptions): Promise<Cancelled> {
  const set = stage(options)
  const run = set.start()
  let asked = false
  run.events$.subscribe((event) => {
    if (event.type !== type || asked) return
    asked = true
    void run.cancel('enough')
  })
  const result = await set.waitUntilSettled(run.result)
  const events = checkedRun(await set.eventsOf(run))
  expect(result).toMatchObject({ status: 'done', reason: 'cancelled' })
  expect(ofType(events, 'cancel_requested')).toMatchObject([{ reason: 'enough' }])
  return { ...set, run, result, events }
}

const outcomes = (events: readonly RuntimeEvent[]): readonly (readonly [string, string])[] =>
  ofType(events, 'tool_result').map(({ name, outcome }) => [name, outcome])

/** A tool whose endings the test gives, and that takes no notice of being asked to stop. */
function deafTool(): { tool: Tool; reasons: string[]; end: (text: string) => void } {
  const reasons: string[] = []
  let report: Subscriber<ToolSignal> | undefined
  const tool: Tool = {
    ...testTool({ name: 'deaf', effect: 'write' }),
    run: ({ cancelled$ }) =>
      new Observable((subscriber) => {
        report = subscriber
        cancelled$.subscribe((reason) => reasons.push(reason))
      }),
  }
  const end = (text: string): void =>
    report?.next({ type: 'tool_ended', outcome: 'success', content: [{ type: 'text', text }] })
  return { tool, reasons, end }
}

describe('a cancel while the model answers', () => {
  it('keeps the text that came, marks it as partial, and lets go of the connection', async () => {
    const { result, events, model } = await cancelAt('assistant_text_delta', {
      steps: [{ text: 'Once upon a time', hang: true }],
    })
    const [message] = ofType(events, 'assistant_message_finished')
    expect(message).toMatchObject({ partial: true, stopReason: 'cancelled' })
    expect(message?.parts).toEqual([{ type: 'text', text: result.text }])
    expect('Once upon a time'.startsWith(result.text) && result.text.length > 0).toBe(true)
    expect(model.abandoned).toBe(1)
  })

  it('gives every call that was asked for a result, and runs none of them', async () => {
    const look = testTool({ name: 'look' })
    const { events, result } = await cancelAt('tool_request_ready', {
      steps: [{ text: 'Hm.', toolCalls: [{ name: 'look', input: { at: 'sky' } }], hang: true }],
      tools: [look],
    })
    expect(ofType(events, 'assistant_message_finished')[0]?.parts).toMatchObject([
      { type: 'text', text: 'Hm.' },
      { type: 'tool_call', name: 'look', input: { at: 'sky' } },
    ])
    expect(outcomes(events)).toEqual([['look', 'cancelled']])
    expect(look.runs).toEqual([])
    expect(result).toMatchObject({ toolCalls: 0, text: 'Hm.' })
  })

  it('leaves no empty message when nothing came', async () => {
    const { events, result } = await cancelAt('assistant_started', { steps: [{ hang: true }] })
    expect(typesOf(events).slice(-2)).toEqual(['cancel_requested', 'run_finished'])
    expect(result.text).toBe('')
  })

  it('keeps what the usage was so far', async () => {
    const { result } = await cancelAt('usage_updated', {
      steps: [{ text: 'Hm.', usage: { inputTokens: 10, outputTokens: 3 }, hang: true }],
    })
    expect(result.usage).toEqual({ inputTokens: 10, outputTokens: 3 })
  })

  it('ends a wait for the next attempt, and keeps the text of the failed one', async () => {
    const { result, clock, model } = await cancelAt('model_stream_failed', {
      steps: [{ text: 'Once upon', fail: 'overloaded' }],
    })
    expect(result.text).toBe('Once upon')
    expect(model.requests).toHaveLength(1)
    expect(clock.now()).toBe(Date.UTC(2026, 0, 1))
  })
})

describe('a cancel while calls are checked', () => {
  it('waits for no check', async () => {
    const slow = testTool({ name: 'slow', check: () => new Promise(() => {}) })
    const { events } = await cancelAt('assistant_message_finished', {
      steps: [{ toolCalls: [{ name: 'slow', input: {} }] }],
      tools: [slow],
    })
    expect(outcomes(events)).toEqual([['slow', 'cancelled']])
    expect(slow.runs).toEqual([])
  })
})

describe('a cancel while tools run', () => {
  it('keeps results that are there, stops what runs, and starts nothing more', async () => {
    const quick = testTool({ name: 'quick', run: () => 'was quick' })
    const slow = testTool({ name: 'slow', effect: 'write', run: () => new Promise(() => {}) })
    const after = testTool({ name: 'after', effect: 'write' })
    const { events, model } = await cancelAt('tool_result', {
      steps: [{ toolCalls: ['quick', 'slow', 'after'].map((name) => ({ name, input: {} })) }],
      tools: [quick, slow, after],
    })
    expect(outcomes(events)).toEqual([
      ['quick', 'success'],
      ['after', 'cancelled'],
      ['slow', 'cancelled'],
    ])
    expect(ofType(events, 'tool_result').map(({ content }) => content)).toEqual([
      [{ type: 'text', text: 'was quick' }],
      [{ type: 'text', text: 'The run was cancelled before this call was complete.' }],
      // What a tool says of its own stop is kept.
      [{ type: 'text', text: 'enough' }],
    ])
    expect(after.runs).toEqual([])
    expect(model.requests).toHaveLength(1)
    expect(ofType(events, 'tool_results_injected')).toHaveLength(1)
  })

  it('lets a tool that ignores the signal end within the grace time', async () => {
    const { tool, reasons, end } = deafTool()
    const {
      start,
      clock,
      waitUntilSettled: settle,
      eventsOf,
    } = stage({
      steps: [{ toolCalls: [{ name: 'deaf', input: {} }] }],
      tools: [tool],
      limits: { graceMs: 1_000 },
    })
    const run = start()
    run.events$.subscribe(({ type }) => {
      if (type === 'tool_started') void run.cancel('enough')
      if (type === 'cancel_requested') clock.schedule(999, () => end('It was done all the same.'))
    })
    expect(await settle(run.result)).toMatchObject({ reason: 'cancelled', toolCalls: 1 })
    expect(outcomes(checkedRun(await eventsOf(run)))).toEqual([['deaf', 'success']])
    expect(reasons).toEqual(['enough'])
  })

  it('abandons such a tool after the grace time, and its late ending changes nothing', async () => {
    const { tool, end } = deafTool()
    const {
      clock,
      run,
      events,
      eventsOf,
      waitUntilSettled: settle,
    } = await cancelAt('tool_started', {
      steps: [{ toolCalls: [{ name: 'deaf', input: {} }] }],
      tools: [tool],
      limits: { graceMs: 1_000 },
    })
    expect(outcomes(events)).toEqual([['deaf', 'cancelled']])
    expect(clock.now() - events[0]!.at).toBe(1_000)
    end('Too late.')
    await settle(Promise.resolve())
    expect(await eventsOf(run)).toEqual(events)
  })

  it('says the reason once to each tool, however much happens until it ends', async () => {
    const { tool, reasons, end } = deafTool()
    const chatty = testTool({
      name: 'chatty',
      run: async (_run, report) => {
        for (let step = 0; step < 20; step++) {
          report.progress(step)
          for (let turn = 0; turn < 30; turn++) await Promise.resolve()
        }
        end('Done.')
        return 'said it all'
      },
    })
    const talking: Tool = {
      ...chatty,
      run: (call) => chatty.run({ ...call, cancelled$: new Observable() }),
    }
    const { events } = await cancelAt('tool_started', {
      steps: [{ toolCalls: ['deaf', 'chatty'].map((name) => ({ name, input: {} })) }],
      tools: [tool, talking],
    })
    expect(new Set(outcomes(events).map(([, outcome]) => outcome))).toEqual(new Set(['success']))
    expect(ofType(events, 'tool_progress').length).toBeGreaterThan(5)
    expect(reasons).toEqual(['enough'])
  })
})

describe('a cancel while a person is waited for', () => {
  it('takes the suspended run up, and ends it', async () => {
    const pay = testTool({ name: 'pay', effect: 'write', check: () => ({ kind: 'ask' }) })
    const {
      start,
      waitUntilSettled: settle,
      eventsOf,
    } = stage({
      steps: [{ toolCalls: [{ name: 'pay', input: {} }] }],
      tools: [pay],
    })
    const run = start()
    expect(await settle(run.result)).toMatchObject({ status: 'suspended' })
    const acknowledgement = run.cancel()
    expect(await settle(run.result)).toMatchObject({
      status: 'done',
      reason: 'cancelled',
      pendingApprovals: [],
    })
    expect(await acknowledgement).toEqual({ accepted: true })
    expect(outcomes(checkedRun(await eventsOf(run)))).toEqual([['pay', 'cancelled']])
    expect(pay.runs).toEqual([])
  })
})

describe('a cancel that comes too late', () => {
  it('is refused while another is at work, and once the run is done', async () => {
    const set = stage({ steps: [{ text: 'Hm.', hang: true }] })
    const run = set.start()
    const streaming = new Promise<void>((resolve) => {
      run.textUpdates$.subscribe(() => resolve())
    })
    await set.waitUntilSettled(streaming)
    const [first, second] = await set.waitUntilSettled(Promise.all([run.cancel('once'), run.cancel('twice')]))
    expect(first).toEqual({ accepted: true })
    expect(second).toMatchObject({ accepted: false, code: 'already_cancelled' })
    expect(await set.waitUntilSettled(run.result)).toMatchObject({ reason: 'cancelled' })
    expect(await set.waitUntilSettled(run.cancel())).toMatchObject({ accepted: false, code: 'run_finished' })
    expect(ofType(await set.eventsOf(run), 'cancel_requested')).toMatchObject([{ reason: 'once' }])
  })
})

// A signal that cancels a run: which values are one, what its reason becomes, and when the run forgets it.

function listening() {
  const controller = new AbortController()
  const { signal } = controller
  const listeners = new Set<unknown>()
  const watched = {
    get aborted() {
      return signal.aborted
    },
    get reason(): unknown {
      return signal.reason
    },
    addEventListener: (type: 'abort', listener: () => void) => {
      listeners.add(listener)
      signal.addEventListener(type, listener)
    },
    removeEventListener: (type: 'abort', listener: () => void) => {
      listeners.delete(listener)
      signal.removeEventListener(type, listener)
    },
  }
  const sent: unknown[] = []
  const live = new Subject<RuntimeEvent>()
  const driver = {
    live,
    send: (command: unknown) => (sent.push(command), Promise.reject(new Error('x'))),
  }
  cancelWith(watched, driver as never)
  return { controller, listeners, live, sent }
}

describe('a signal that cancels a run', () => {
  it('is what has a state and takes listeners', () => {
    const fits = (value: unknown) => someSignal(value) === undefined
    const listens = { addEventListener: () => {}, removeEventListener: () => {} }
    expect([new AbortController().signal, { ...listens, aborted: false }].map(fits)).toEqual([true, true])
    const { addEventListener, removeEventListener } = listens
    expect(
      [
        ...[undefined, null, 'abort', {}, listens, { ...listens, aborted: 'no' }],
        ...[
          { aborted: true, addEventListener },
          { aborted: true, removeEventListener },
        ],
      ].map(fits),
    ).toEqual(Array.from({ length: 8 }, () => false))
  })

  it('becomes a cancel with its reason, once it is aborted', () => {
    const aborted = (reason?: unknown) => toCancelCommand({ aborted: true, reason } as never)
    expect(toCancelCommand(undefined)).toBeUndefined()
    expect(toCancelCommand({ aborted: false, reason: 'x' } as never)).toBeUndefined()
    expect(aborted()).toStrictEqual({ type: 'cancel' })
    expect(aborted('Enough.')).toStrictEqual({ type: 'cancel', reason: 'Enough.' })
    expect(aborted(new Error('Too late'))).toStrictEqual({ type: 'cancel', reason: 'Too late' })
  })

  it('is sent once, and leaves no rejection where the run takes no command any more', async () => {
    const { controller, sent } = listening()
    controller.abort('Enough.')
    controller.abort('Again.')
    await Promise.resolve()
    expect(sent).toEqual([{ type: 'cancel', reason: 'Enough.' }])
  })

  it('is forgotten when the run has ended or failed, and not before', () => {
    for (const end of ['run_finished', 'failure']) {
      const { controller, listeners, live, sent } = listening()
      live.next({ type: 'run_started' } as never)
      expect(listeners.size).toBe(1)
      if (end === 'failure') live.error(new Error('x'))
      else live.next({ type: 'run_finished' } as never)
      expect(listeners.size).toBe(0)
      controller.abort()
      expect(sent).toEqual([])
    }
  })
})

type Hear = (reason: string) => void
type Follow = (reason$: Observable<string>, hear: Hear) => Subscription

const followers: readonly (readonly [what: string, follow: Follow])[] = [
  ['a function', (reason$, hear) => reason$.subscribe(hear)],
  ['an observer', (reason$, next) => reason$.subscribe({ next })],
  ['an operator', (reason$, hear) => reason$.pipe(map((reason) => reason)).subscribe(hear)],
]

describe.each(followers)('the request that a running tool stops, followed by %s', (_what, follow) => {
  it('reaches every listener that has not left, those that come later too, once and with the first reason', () => {
    const request = new StopRequest(() => {})
    const heard: string[] = []
    const listen = (name: string) => follow(request.reason$, (reason) => heard.push(`${name}: ${reason}`))
    listen('first').unsubscribe()
    const leaving = listen('second')
    listen('third')
    leaving.unsubscribe()
    request.ask('enough')
    request.ask('really')
    listen('late')
    expect(heard).toEqual(['third: enough', 'late: enough'])
  })

  it('lets a listener go that throws, says so, and reaches the others', () => {
    const threw = vi.fn<(error: unknown) => void>()
    const request = new StopRequest(threw)
    const fault = new Error('not now')
    const heard = vi.fn<Hear>()
    const faulty = (): never => {
      throw fault
    }
    const first = follow(request.reason$, faulty)
    follow(request.reason$, heard)
    request.ask('enough')
    expect(first.closed).toBe(true)
    expect(heard.mock.calls).toEqual([['enough']])
    expect(follow(request.reason$, faulty).closed).toBe(true)
    expect(threw.mock.calls).toEqual([[fault], [fault]])
  })

  it('does not reach a listener that another one has taken away', () => {
    const request = new StopRequest(() => {})
    const heard = vi.fn<Hear>()
    follow(request.reason$, () => second.unsubscribe())
    const second = follow(request.reason$, heard)
    request.ask('enough')
    expect(heard).not.toHaveBeenCalled()
  })

  it('keeps no listener that has left: RxJS gets nothing to pass over', () => {
    vi.useFakeTimers()
    onTestFinished(() => void vi.useRealTimers())
    const passedOver = vi.fn<() => void>()
    config.onStoppedNotification = passedOver
    onTestFinished(() => void (config.onStoppedNotification = null))
    const request = new StopRequest(() => {})
    follow(request.reason$, () => {}).unsubscribe()
    request.ask('enough')
    vi.runAllTimers()
    expect(passedOver).not.toHaveBeenCalled()
  })
})

function payer(): Agent {
  return defineAgent({
    name: 'payer',
    instructions: 'Pay.',
    model: scriptedModel([{ toolCalls: [{ name: 'pay', input: {} }] }, { text: 'Paid.' }]),
    tools: [testTool({ name: 'pay', effect: 'write', check: () => ({ kind: 'ask' }), run: () => 'paid' })],
  })
}

it('a resume that finds the inbox empty, since another writer consumed it, is a conflict, and no suspended run', async () => {
  const agent = payer()
  const ledger = memoryLedger()
  const { runId, pendingApprovals } = await createRuntime({ ledger, agents: [agent] }).run(agent, 'Pay.')
    .result
  const [{ toolCallId }] = pendingApprovals as [(typeof pendingApprovals)[number]]
  await ledger.put(runId, { key: 'k', at: 0, command: { type: 'approve', toolCallId, by: 'ada' } })
  // The slow process has read the events; before it reads the inbox, the other one resumes the run and ends it.
  const endings: unknown[] = []
  const slow: Ledger = {
    ...ledger,
    inbox: async (asked) => {
      if (endings.length === 0) {
        endings.push('resumes')
        const other = createRuntime({ ledger, agents: [agent] })
        endings.push((await other.resume(runId, { takeOver: true }).result).reason)
      }
      return await ledger.inbox(asked)
    },
  }
  const stale = createRuntime({ ledger: slow, agents: [agent] }).resume(runId).result
  await expect(stale).rejects.toMatchObject({ code: 'ledger_conflict', kind: 'epoch' })
  expect(endings).toEqual(['resumes', 'answered'])
})

it('a reader of a run that stops sees what another process records before this one listens to it', async () => {
  const agent = payer()
  const ledger = memoryLedger()
  const other = createRuntime({ ledger, agents: [agent] })
  let asked = 0
  // The look with which the first process makes sure that it stops at the last event.
  const overtaken: Ledger = {
    ...ledger,
    head: async (runId) => {
      const head = await ledger.head(runId)
      if (asked++ === 0) {
        const run = other.resume(runId, { takeOver: true })
        const { pendingApprovals } = await run.result
        await run.approve(pendingApprovals[0]?.toolCallId ?? '', { by: 'ada' })
        await run.result
      }
      return head
    },
  }
  const run = createRuntime({ ledger: overtaken, agents: [agent] }).run(agent, 'Pay.')
  const seen = await lastValueFrom(run.events$)
  expect(seen).toMatchObject({ type: 'run_finished', reason: 'answered' })
  expect(asked).toBe(1)
})
