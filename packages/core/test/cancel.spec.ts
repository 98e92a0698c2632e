import { Observable, type Subscriber } from 'rxjs'
import { describe, expect, it } from 'vitest'
import { checkedRun, ofType, stage, typesOf, type Stage, type StageOptions } from './stage.ts'
import type { Run, RunResult, RuntimeEvent, Tool } from '@tallystick/core'
import type { EventType, ToolSignal } from '@tallystick/core/vocabulary'
import { testTool } from '@tallystick/testkit'

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
