import { filter, firstValueFrom, merge, NEVER, Observable, Subject, type Subscriber } from 'rxjs'
import { describe, expect, it } from 'vitest'
import {
  createRuntime,
  defineAgent,
  memoryLedger,
  type Ledger,
  type RunState,
  type RuntimeEvent,
} from '@tallystick/core'
import { manualClock, sampleMessage, waitUntilSettled } from '@tallystick/testkit'
import type { Model } from '@tallystick/core'
import type { ModelSignal } from '@tallystick/core/vocabulary'
import { Mailbox, type Mail } from '../src/runtime/mailbox.ts'
import { checkedRun, ofType, recorded, stage } from './stage.ts'

const mailOf = (receipt: number): Mail => ({
  message: { type: 'steer', message: sampleMessage('x'), receipt: String(receipt) },
})
const upTo = (count: number, from = 0): readonly Mail[] =>
  Array.from({ length: count }, (_, index) => mailOf(from + index))

describe('a mailbox', () => {
  it('gives a flood batch by batch, in order, and the writer does not wait in between', async () => {
    const mailbox = new Mailbox()
    for (const mail of upTo(4_500)) mailbox.post(mail)
    const batches: (readonly Mail[])[] = []
    while (!mailbox.empty) {
      await mailbox.arrival()
      batches.push(mailbox.takeBatch())
    }
    expect(batches.map(({ length }) => length)).toEqual([2_000, 2_000, 500])
    expect(batches.flat()).toEqual(upTo(4_500))
    expect(mailbox.takeBatch()).toEqual([])
  })

  it('has the writer wait for what comes after the batch that it took', async () => {
    const mailbox = new Mailbox()
    const isThere = async (arrival: Promise<void>): Promise<boolean> => {
      let arrived = false
      void arrival.then(() => (arrived = true))
      for (let turn = 0; turn < 3; turn++) await Promise.resolve()
      return arrived
    }
    mailbox.post(mailOf(0))
    mailbox.takeBatch()
    const arrival = mailbox.arrival()
    expect(await isThere(arrival)).toBe(false)
    mailbox.wake()
    expect(await isThere(arrival)).toBe(true)
    mailbox.wake()
    expect(await isThere(mailbox.arrival())).toBe(true)
    expect(await isThere(mailbox.arrival())).toBe(false)
  })

  it('gives what was put back in one batch with all that came after it', () => {
    const mailbox = new Mailbox()
    for (const mail of upTo(3_000)) mailbox.post(mail)
    const batch = mailbox.takeBatch()
    mailbox.post(mailOf(3_000))
    mailbox.putBack(batch)
    expect(mailbox.takeBatch()).toEqual(upTo(3_001))
    mailbox.putBack([])
    expect(mailbox.empty).toBe(true)
  })

  it('joins deltas of one part that wait together, and nothing else', () => {
    const mailbox = new Mailbox()
    const delta = { type: 'model_text', part: 0, text: 'a', turn: 1, attempt: 1 } as const
    const call = { ...delta, type: 'model_tool_input', part: 1, name: 'look', text: '{' } as const
    const posted: readonly Mail['message'][] = [
      delta,
      { ...delta, text: 'b' },
      { ...delta, part: 1 },
      { ...delta, part: 1, attempt: 2 },
      { ...delta, type: 'model_reasoning', part: 1, attempt: 2 },
      call,
      { ...call, text: '}' },
      { ...call, name: 'see' },
      mailOf(0).message,
      { ...call, name: 'see' },
      { ...delta, replaces: true },
      { ...delta, written: 'A' },
    ]
    for (const message of posted) mailbox.post({ message })
    const [first, second, ...others] = posted
    expect(second).toEqual({ ...delta, text: 'b' })
    expect(mailbox.takeBatch().map(({ message }) => message)).toStrictEqual([
      { ...first, text: 'ab' },
      ...others.slice(0, 3),
      { ...call, text: '{}' },
      ...others.slice(5),
    ])
  })

  it('lets a request take the place of its whole input, but not of the rest of an input', () => {
    const mailbox = new Mailbox()
    const input = {
      type: 'model_tool_input',
      part: 1,
      name: 'look',
      text: '{"at":{}}',
      turn: 1,
      attempt: 1,
    } as const
    const call = { type: 'tool_call', providerCallId: 'x', name: 'look', input: { at: {} } } as const
    const request = { type: 'model_tool_request', part: 1, call, turn: 1, attempt: 1 } as const
    const taken = (...posted: readonly Mail['message'][]): readonly unknown[] => {
      for (const message of posted) mailbox.post({ message })
      expect(mailbox.holdsOnlyDeltas).toBe(false)
      return mailbox.takeBatch().map(({ message }) => message)
    }
    expect(taken({ ...input, text: '{"at":' }, { ...input, text: '{}}' }, request)).toEqual([request])
    // With white space, its tokens would be estimated otherwise than those of the request.
    for (const text of ['{}}', '"at":{}}', '{"at":{', '{"at": {}}']) {
      expect(taken({ ...input, text }, request)).toEqual([{ ...input, text }, request])
    }
    expect(taken(input, { ...request, part: 2 })).toEqual([input, { ...request, part: 2 }])
    expect(taken(input, { ...request, attempt: 2 })).toEqual([input, { ...request, attempt: 2 }])
  })

  it('joins nothing to what was taken, and no more than 64 KiB', () => {
    const mailbox = new Mailbox()
    const message = { type: 'model_text', part: 0, text: 'x'.repeat(1_000), turn: 1, attempt: 1 } as const
    const takeLengths = (): readonly number[] =>
      mailbox
        .takeBatch()
        .map(({ message: each }) => (each.type === 'model_text' ? each.text.length : Number.NaN))
    for (let each = 0; each < 100; each++) mailbox.post({ message })
    expect(takeLengths()).toEqual([65_000, 35_000])
    mailbox.post({ message })
    const batch = mailbox.takeBatch()
    mailbox.post({ message })
    expect(batch).toEqual([{ message }])
    expect(takeLengths()).toEqual([1_000])
  })

  it('says whether it holds deltas, and nothing else with them', () => {
    const mailbox = new Mailbox()
    expect(mailbox.holdsOnlyDeltas).toBe(false)
    const delta = { type: 'model_text', turn: 1, attempt: 1, part: 0, text: 'Hi' } as const
    mailbox.post({ message: delta })
    expect(mailbox.holdsOnlyDeltas).toBe(true)
    mailbox.post(mailOf(0))
    expect(mailbox.holdsOnlyDeltas).toBe(false)
    const batch = mailbox.takeBatch()
    expect(mailbox.holdsOnlyDeltas).toBe(false)
    mailbox.post({ message: delta })
    mailbox.putBack(batch)
    expect(mailbox.holdsOnlyDeltas).toBe(false)
    mailbox.takeBatch()
    mailbox.putBack([{ message: delta }])
    expect(mailbox.holdsOnlyDeltas).toBe(true)
  })
})

/** Says a text in four deltas, with so many promise turns before each signal. */
function pacedModel(turnsBetween: number): Model {
  const play = async (subscriber: Subscriber<ModelSignal>): Promise<void> => {
    const deltas = ['a', 'b', 'c', 'd'].map((text) => ({ type: 'model_text', part: 0, text }) as const)
    const parts = [{ part: 0, type: 'text', text: 'abcd' }] as const
    const end = { type: 'model_finished', stopReason: 'end', parts } as const
    for (const signal of [{ type: 'model_started' } as const, ...deltas, end]) {
      for (let turn = 0; turn < turnsBetween; turn++) await Promise.resolve()
      subscriber.next(signal)
    }
    subscriber.complete()
  }
  const stream: Model['stream'] = () => new Observable((subscriber) => void play(subscriber))
  return { ...{ provider: 'paced', api: 'wire', modelId: 'paced-1' }, stream }
}

describe('the writer of a run', () => {
  it('records in one append what a model reports in one go, and apart what comes apart', async () => {
    const appendsOf = async (turnsBetween: number): Promise<readonly string[]> => {
      const ledger = memoryLedger()
      const appends: string[] = []
      const append: Ledger['append'] = (runId, expected, events, options) => {
        appends.push(`${events[0]?.type} ${events.length}`)
        return ledger.append(runId, expected, events, options)
      }
      const set = stage({ model: pacedModel(turnsBetween), ledger: { ...ledger, append } })
      await set.play()
      return appends
    }
    expect(await appendsOf(0)).toEqual(['run_started 3', 'assistant_started 4'])
    expect((await appendsOf(40)).slice(0, 3)).toEqual([
      ...['run_started 3', 'assistant_started 1', 'assistant_text_delta 1'],
    ])
  })

  it('takes what is put into its inbox while it reads it', async () => {
    const ledger = memoryLedger()
    // A hint may come for nothing.
    const hints = new Subject<void>()
    let reads = 0
    const overtaken: Ledger = {
      ...ledger,
      changes: (...args) => merge(ledger.changes(...args), hints),
      inbox: async (runId) => {
        const entries = await ledger.inbox(runId)
        if (reads++ === 0) await ledger.put(runId, { key: 'late', at: 0, command: { type: 'cancel' } })
        return entries
      },
    }
    const set = stage({ steps: [{ text: 'Thinking', hang: true }], ledger: overtaken })
    const run = set.start()
    await firstValueFrom(run.events$.pipe(filter(({ type }) => type === 'assistant_text_delta')))
    // Until it waits for its model.
    for (let turn = 0; turn < 50; turn++) await Promise.resolve()
    expect(reads).toBe(0)
    hints.next()
    // The clock stands still: no timer has it look again.
    expect(await run.result).toMatchObject({ reason: 'cancelled' })
  })

  it('reads its inbox for what is put there, and not at its begin or for each of its own appends', async () => {
    const ledger = memoryLedger()
    let [reads, appends] = [0, 0]
    const watched: Ledger = {
      ...ledger,
      inbox: (runId) => {
        reads++
        return ledger.inbox(runId)
      },
      append: (...args) => {
        appends++
        return ledger.append(...args)
      },
    }
    const ask = Promise.withResolvers<void>()
    const steps = [{ text: 'a '.repeat(50), until: ask.promise }, { text: 'Well.' }]
    const set = stage({ steps, ledger: watched })
    const run = set.start()
    await firstValueFrom(run.events$.pipe(filter(({ type }) => type === 'assistant_text_delta')))
    const before = reads
    const steered = await set.waitUntilSettled(run.steer('Faster.'))
    expect(steered).toEqual({ accepted: true })
    ask.resolve()
    await set.waitUntilSettled(run.result)
    expect(appends).toBeGreaterThan(5)
    expect([before, reads]).toEqual([0, 2])
  })
})

/** A model that reports its whole reply in one job. */
function floodingModel(deltas: number): Model {
  const text = 'ab '.repeat(deltas)
  const reports: readonly ModelSignal[] = [
    ...Array.from({ length: deltas }, () => ({ type: 'model_text', part: 0, text: 'ab ' }) as const),
    { type: 'model_finished', stopReason: 'end', parts: [{ part: 0, type: 'text', text }] },
  ]
  const stream = (): Observable<ModelSignal> =>
    new Observable((subscriber) => {
      for (const report of reports) subscriber.next(report)
      subscriber.complete()
    })
  return { provider: 'flood', api: 'flood', modelId: 'flood-1', stream }
}

function flooded(deltas: number, ledger: Ledger) {
  const agent = defineAgent({ name: 'agent', instructions: 'Act.', model: floodingModel(deltas) })
  const clock = manualClock()
  const runtime = createRuntime({ ledger, agents: [agent], host: { clock, random: () => 0 } })
  return { clock, run: runtime.run(agent, 'Go.') }
}

describe('a model that reports thousands of deltas at once', () => {
  it('is recorded and shown in few events of a bounded size', async () => {
    const ledger = memoryLedger()
    const sizes: number[] = []
    const shown: number[] = []
    const watched: Ledger = {
      ...ledger,
      append: (runId, expected, events, options) => {
        sizes.push(events.length)
        return ledger.append(runId, expected, events, options)
      },
    }
    const { clock, run } = flooded(12_000, watched)
    run.state$.subscribe((state: RunState) => {
      if (state.phase === 'streaming') shown.push(state.attempt.drafts[0]?.text.length ?? 0)
    })
    const result = await waitUntilSettled(clock, run.result)
    expect(result).toMatchObject({ reason: 'answered', text: 'ab '.repeat(12_000) })
    expect(Math.max(...sizes)).toBeLessThanOrEqual(10)
    expect(Math.max(...shown)).toBe(36_000)
    const deltas = ofType(checkedRun(await recorded(ledger, run.id)), 'assistant_text_delta')
    expect(deltas.map(({ text }) => text).join('')).toBe('ab '.repeat(12_000))
  })

  it('ends with a command that nothing hinted at, though the end came in another batch', async () => {
    const ledger = memoryLedger()
    let isPut = false
    const deaf: Ledger = {
      ...ledger,
      changes: () => NEVER,
      append: async (runId, expected, events, options) => {
        const isEnd = events.at(-1)?.type === 'run_finished'
        if (isEnd && !isPut) {
          isPut = true
          const command = { type: 'steer', message: sampleMessage('More.'), receipt: 'more' } as const
          await ledger.put(runId, { key: 'more', command, at: 0 })
        }
        return await ledger.append(runId, expected, events, options)
      },
    }
    const { clock, run } = flooded(2_500, deaf)
    expect(await waitUntilSettled(clock, run.result)).toMatchObject({ reason: 'answered', turns: 2 })
    const events = checkedRun(await recorded(ledger, run.id))
    expect(ofType(events, 'input_settled')).toMatchObject([{ receipt: 'more', delivered: true }])
  })
})

it('gives a call the same estimate of tokens, whether its input came before its request or with it', async () => {
  const input = { at: 'Zürich', of: ['a', 1, true] }
  const call = { type: 'tool_call', providerCallId: 'x', name: 'look', input } as const
  const usageOf = async (isApart: boolean): Promise<unknown> => {
    const shown = new Subject<void>()
    const stream = (): Observable<ModelSignal> =>
      new Observable((subscriber) => {
        const text = JSON.stringify(input)
        subscriber.next({ type: 'model_started' })
        subscriber.next({ type: 'model_tool_input', part: 0, name: 'look', text })
        const end = (): void => {
          subscriber.next({ type: 'model_tool_request', part: 0, call })
          subscriber.error(new Error('cut'))
        }
        if (isApart) shown.subscribe(end)
        else end()
      })
    const model: Model = { provider: 'x', api: 'x', modelId: 'x', stream }
    const agent = defineAgent({ name: 'a', instructions: 'Look.', model, limits: { maxTotalTokens: 10_000 } })
    const run = createRuntime({ ledger: memoryLedger(), agents: [agent] }).run(agent, 'Where?')
    const events: RuntimeEvent[] = []
    run.events$.subscribe((event) => {
      events.push(event)
      if (event.type === 'tool_input_delta') shown.next()
    })
    await run.result
    expect(ofType(events, 'tool_input_delta')).toHaveLength(isApart ? 1 : 0)
    return ofType(events, 'usage_updated').map(({ usage }) => usage)
  }
  const together = await usageOf(false)
  expect(together).toMatchObject([{ outputTokens: expect.any(Number) as number }])
  expect(await usageOf(true)).toEqual(together)
})
