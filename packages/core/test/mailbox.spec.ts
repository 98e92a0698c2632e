import { filter, firstValueFrom, NEVER, Observable } from 'rxjs'
import { describe, expect, it } from 'vitest'
import { createRuntime, defineAgent, memoryLedger, type Ledger, type RunState } from '@tallystick/core'
import { manualClock, sampleMessage, untilSettled } from '@tallystick/core/testing'
import type { Model } from '@tallystick/core'
import type { ModelSignal } from '@tallystick/core/vocabulary'
import { Mailbox, type Mail } from '../src/runtime/drive/mailbox.ts'
import { checkedRun, ofType, recorded, stage } from './stage.ts'

const mailOf = (receipt: number): Mail => ({
  message: { type: 'steer', message: sampleMessage('x'), receipt: String(receipt) },
})
const upTo = (count: number, from = 0): readonly Mail[] =>
  Array.from({ length: count }, (_, index) => mailOf(from + index))

describe('a mailbox', () => {
  it('gives a flood page by page, in order, and the writer does not wait in between', async () => {
    const mailbox = new Mailbox()
    for (const mail of upTo(4_500)) mailbox.post(mail)
    const pages: (readonly Mail[])[] = []
    while (!mailbox.empty) {
      await mailbox.arrival()
      pages.push(mailbox.takePage())
    }
    expect(pages.map(({ length }) => length)).toEqual([2_000, 2_000, 500])
    expect(pages.flat()).toEqual(upTo(4_500))
    expect(mailbox.takePage()).toEqual([])
  })

  it('gives what was put back in one page with all that came after it', () => {
    const mailbox = new Mailbox()
    for (const mail of upTo(3_000)) mailbox.post(mail)
    const page = mailbox.takePage()
    mailbox.post(mailOf(3_000))
    mailbox.putBack(page)
    expect(mailbox.takePage()).toEqual(upTo(3_001))
    mailbox.putBack([])
    expect(mailbox.empty).toBe(true)
  })
})

describe('the writer of a run', () => {
  it('reads its inbox for what is put there, and not for each of its own appends', async () => {
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
    const steered = await set.untilSettled(run.steer('Faster.'))
    expect(steered).toEqual({ accepted: true })
    ask.resolve()
    await set.untilSettled(run.result)
    expect(appends).toBeGreaterThan(5)
    expect([before, reads]).toEqual([1, 3])
  })
})

/** A model that reports its whole reply in one job. */
function floodingModel(pieces: number): Model {
  const text = 'ab '.repeat(pieces)
  const reports: readonly ModelSignal[] = [
    ...Array.from({ length: pieces }, () => ({ type: 'model_text', part: 0, text: 'ab ' }) as const),
    { type: 'model_finished', stopReason: 'end', parts: [{ part: 0, type: 'text', text }] },
  ]
  const stream = (): Observable<ModelSignal> =>
    new Observable((subscriber) => {
      for (const report of reports) subscriber.next(report)
      subscriber.complete()
    })
  return { provider: 'flood', api: 'flood', modelId: 'flood-1', stream }
}

function flooded(pieces: number, ledger: Ledger) {
  const agent = defineAgent({ name: 'agent', instructions: 'Act.', model: floodingModel(pieces) })
  const clock = manualClock()
  const runtime = createRuntime({ ledger, agents: [agent], host: { clock, random: () => 0 } })
  return { clock, run: runtime.run(agent, 'Go.') }
}

describe('a model that reports thousands of pieces at once', () => {
  it('is recorded and shown piece by piece', async () => {
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
    const { clock, run } = flooded(7_000, watched)
    run.state$.subscribe((state: RunState) => {
      if (state.phase === 'streaming') shown.push(state.attempt.drafts[0]?.text.length ?? 0)
    })
    const result = await untilSettled(clock, run.result)
    expect(result).toMatchObject({ reason: 'answered', text: 'ab '.repeat(7_000) })
    expect(Math.max(...sizes)).toBeLessThanOrEqual(2_010)
    expect(Math.max(...shown)).toBe(21_000)
    expect(ofType(checkedRun(await recorded(ledger, run.id)), 'assistant_text_delta')).toHaveLength(7_000)
  })

  it('ends with a command that nothing hinted at, though the end came in another page', async () => {
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
    expect(await untilSettled(clock, run.result)).toMatchObject({ reason: 'answered', turns: 2 })
    const events = checkedRun(await recorded(ledger, run.id))
    expect(ofType(events, 'input_settled')).toMatchObject([{ receipt: 'more', delivered: true }])
  })
})
