import { Observable, type Subscriber } from 'rxjs'
import { describe, expect, it } from 'vitest'
import { memoryLedger, type Ledger, type Model, type RuntimeEvent } from '@tallystick/core'
import { manualClock, testTool, type ManualClock, type TestToolOptions } from '@tallystick/testkit'
import type { ModelSignal } from '@tallystick/core/vocabulary'
import { checkedRun, recorded, stage, type Stage, type StageOptions } from './stage.ts'

/** A memory ledger that keeps the types of each append, and how durable it had to be. */
function noting(deltaDelayMs?: number) {
  const ledger = memoryLedger()
  const appends: string[] = []
  const append: Ledger['append'] = (runId, expected, events, options) => {
    appends.push(`${options.durability}: ${events.map(({ type }) => type).join(' ')}`)
    return ledger.append(runId, expected, events, options)
  }
  return { ledger: { ...ledger, append, ...(deltaDelayMs !== undefined && { deltaDelayMs }) }, appends }
}

/** A run of one call of a tool; returns the appends that hold the reply and the start of the call. */
async function appendsOf(tool: Partial<TestToolOptions>, options: StageOptions = {}) {
  const { ledger, appends } = noting()
  const steps = [{ toolCalls: [{ name: 'look', input: {} }] }, { text: 'Done.' }]
  const set = stage({ ledger, steps, tools: [testTool({ name: 'look', ...tool })], ...options })
  checkedRun(await set.eventsOf(await set.play().then(({ runId }) => runId)))
  const from = appends.findIndex((append) => append.includes('assistant_message_finished'))
  const to = appends.findIndex((append) => append.includes('tool_started'))
  return appends
    .slice(from, to + 1)
    .map((append) => append.replace(/: .*assistant_message/, ': assistant_message'))
}

const together = 'lazy: assistant_message_finished tool_requests_collected tool_started'
const apart = ['lazy: assistant_message_finished', 'lazy: tool_requests_collected tool_started']

describe('a reply with calls', () => {
  it('is one append with the start of its calls where their check waits for nothing', async () => {
    expect(await appendsOf({})).toEqual([together])
    expect(await appendsOf({ check: () => ({ kind: 'run' }) })).toEqual([together])
  })

  it('is recorded before a check that waits for something has ended', async () => {
    const clock = manualClock()
    const later: TestToolOptions['check'] = () =>
      new Promise((resolve) => clock.schedule(5, () => resolve({ kind: 'run' })))
    expect(await appendsOf({ check: later }, { clock })).toEqual(apart)
    const soon: TestToolOptions['check'] = async () => await Promise.resolve({ kind: 'run' } as const)
    expect(await appendsOf({ check: soon })).toEqual(apart)
  })

  it('is recorded before guardrails and policies look at its calls', async () => {
    let [seen, set] = ['', undefined as Stage | undefined]
    const look = async (runId: string): Promise<void> => {
      const events = set ? await recorded(set.ledger, runId) : []
      seen = events.at(-1)?.type ?? ''
    }
    const steps = [{ toolCalls: [{ name: 'look', input: {} }] }, { text: 'Done.' }]
    const common = { steps, tools: [testTool({ name: 'look' })] }
    set = stage({
      ...common,
      approval: ({ runId }) => look(runId).then(() => 'run' as const),
    })
    await set.play()
    expect(seen).toBe('assistant_message_finished')
    seen = ''
    set = stage({
      ...common,
      guardrails: [
        {
          name: 'watch',
          on: 'tool_input',
          check: (_call, { runId }) => look(runId).then(() => 'pass' as const),
        },
      ],
    })
    await set.play()
    expect(seen).toBe('assistant_message_finished')
  })

  it('runs no tool whose check refuses it, and asks a person as before', async () => {
    const ask = stage({
      steps: [{ toolCalls: [{ name: 'pay', input: {} }] }],
      tools: [testTool({ name: 'pay', check: () => ({ kind: 'ask' }) })],
    })
    expect(await ask.play()).toMatchObject({ status: 'suspended', pendingApprovals: [{ name: 'pay' }] })
  })
})

/** A model whose one reply the test plays, signal by signal. */
function playedModel() {
  let reply: Subscriber<ModelSignal> | undefined
  const model: Model = {
    ...{ provider: 'played', api: 'script', modelId: 'played-1' },
    stream: () => new Observable((subscriber) => void (reply = subscriber)),
  }
  const say = (text: string): void => reply?.next({ type: 'model_text', part: 0, text })
  const end = (text: string): void => {
    reply?.next({ type: 'model_finished', stopReason: 'end', parts: [{ part: 0, type: 'text', text }] })
  }
  return { model, say, end }
}

/** A run on a ledger that lets deltas wait 20 ms, its first delta shown. */
async function paced(deltaDelayMs = 20, clock = manualClock()) {
  const { ledger, appends } = noting(deltaDelayMs)
  const { model, say, end } = playedModel()
  const set = stage({ ledger, model, clock })
  const run = set.start()
  let shown = ''
  run.events$.subscribe((event: RuntimeEvent) => {
    if (event.type === 'assistant_text_delta') shown += event.text
  })
  const rest = async (): Promise<void> => {
    for (let turn = 0; turn < 200; turn++) await Promise.resolve()
  }
  const pass = async (ms: number): Promise<string> => {
    await rest()
    clock.advance(ms)
    await rest()
    return shown
  }
  await rest()
  say('a')
  const first = await pass(0)
  const deltasOf = (): readonly number[] =>
    appends.map((append) => append.split('_delta').length - 1).filter((count) => count > 0)
  return { set, run, say, end, pass, first, deltasOf }
}

describe('pieces of a reply, on a ledger that lets them wait', () => {
  it('are shown at once where they are the first, then together after the delay', async () => {
    const { run, set, say, end, pass, first, deltasOf } = await paced()
    expect(first).toBe('a')
    say('b')
    expect(await pass(19)).toBe('a')
    say('c')
    expect(await pass(1)).toBe('abc')
    // Nothing came meanwhile: the next one follows after a pause, and waits for nothing.
    await pass(20)
    say('d')
    expect(await pass(0)).toBe('abcd')
    say('e')
    end('abcde')
    expect(await set.waitUntilSettled(run.result)).toMatchObject({ text: 'abcde' })
    expect(deltasOf()).toEqual([1, 1, 1, 1])
    checkedRun(await set.eventsOf(run))
  })

  it('are shown at once where another reply has just begun', async () => {
    const { model, say, end } = playedModel()
    const { ledger, appends } = noting(20)
    const set = stage({ ledger, model })
    const run = set.start()
    const rest = async (): Promise<void> => {
      for (let turn = 0; turn < 200; turn++) await Promise.resolve()
    }
    await rest()
    say('a')
    await rest()
    void run.queue('And then?')
    end('a')
    await rest()
    say('b')
    await rest()
    const texts = appends.filter((append) => append.includes('_delta'))
    // No time has passed between the two.
    expect(texts).toEqual(['lazy: assistant_text_delta', 'lazy: assistant_text_delta'])
    end('b')
    expect(await set.waitUntilSettled(run.result)).toMatchObject({ text: 'b' })
  })

  it('are shown where the timer rings before the clock shows its time', async () => {
    const exact = manualClock()
    const schedule: ManualClock['schedule'] = (delayMs, callback) => exact.schedule(delayMs - 1, callback)
    const early = Object.create(exact, { schedule: { value: schedule } }) as ManualClock
    const { say, pass } = await paced(20, early)
    say('b')
    expect(await pass(18)).toBe('a')
    expect(await pass(1)).toBe('ab')
  })

  it('wait no longer than for a command', async () => {
    const { run, set, say, pass } = await paced()
    say('b')
    expect(await pass(5)).toBe('a')
    const cancelled = run.cancel('Enough.')
    expect(await pass(0)).toBe('ab')
    expect(await cancelled).toEqual({ accepted: true })
    expect(await set.waitUntilSettled(run.result)).toMatchObject({ reason: 'cancelled' })
  })

  it('wait no longer than for the end of the time of the run, and of a drain', async () => {
    const { set, say, pass } = await paced()
    say('b')
    expect(await pass(5)).toBe('a')
    const drained = set.runtime.drain(0)
    expect(await pass(0)).toBe('ab')
    await set.waitUntilSettled(drained)
  })

  it('wait a second at most, whatever a ledger asks for, and never where it asks for nothing sound', async () => {
    const long = await paced(Infinity)
    long.say('b')
    expect(await long.pass(999)).toBe('a')
    expect(await long.pass(1)).toBe('ab')
    for (const unsound of [NaN, -1, 0]) {
      const none = await paced(unsound)
      none.say('b')
      expect(await none.pass(0)).toBe('ab')
    }
  })
})
