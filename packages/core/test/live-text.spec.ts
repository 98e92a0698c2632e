import {
  createRuntime,
  defineAgent,
  type LiveText,
  memoryLedger,
  outputMask,
  type RuntimeEvent,
  type Model,
} from '@tallystick/core'
import type { ModelSignal, ReplyPart } from '@tallystick/core/vocabulary'
import {
  checkLaws,
  manualClock,
  scriptedModel,
  waitUntilSettled,
  sampleFacts,
  sampleRunId,
  stampFacts,
} from '@tallystick/testkit'
import { firstValueFrom, Observable, toArray } from 'rxjs'
import { describe, expect, it } from 'vitest'
import { LiveEvents } from '../src/runtime/run-streams.ts'
import { ofType, recorded, stage } from './stage.ts'

// The text of replies before it is on record: of no law, without a number, and off unless a runtime is told to pass it on.

type Step = Parameters<typeof scriptedModel>[0][number]

function begin(options: {
  steps?: readonly Step[]
  liveText?: boolean
  textDeltas?: boolean
  mask?: string
}) {
  const { steps = [{ text: 'Nine in the morning.' }], liveText = true, textDeltas, mask } = options
  const [clock, ledger] = [manualClock(), memoryLedger()]
  const reports: unknown[] = []
  const host = { clock, report: (error: unknown) => void reports.push(error) }
  const agent = defineAgent({
    name: 'clock',
    instructions: 'Tell.',
    model: scriptedModel(steps),
    ...(mask && {
      outputStream: {
        transforms: [
          outputMask({ name: 'mask', pattern: new RegExp(mask, 'g'), window: 20, replacement: '…' }),
        ],
      },
    }),
  })
  // Deltas wait as long as they may, so that what is shown before the record can be told from it.
  const slow = { ...ledger, deltaDelayMs: 1_000 }
  const runtime = createRuntime({ ledger: slow, host, liveText, recording: { textDeltas } })
  const run = runtime.run(agent, 'What time is it?')
  const pieces: LiveText[] = []
  const order: string[] = []
  return { run, clock, ledger, pieces, order, reports, runtime }
}

const textOf = (pieces: readonly LiveText[]): string => pieces.map(({ text }) => text).join('')

describe('live text', () => {
  it('is all that the model writes, as it comes, and ends with the run', async () => {
    const { run, clock, pieces, ledger } = begin({})
    let isOver = false
    run.liveText$.subscribe({ next: (piece) => pieces.push(piece), complete: () => (isOver = true) })
    await waitUntilSettled(clock, run.result)
    expect(textOf(pieces)).toBe('Nine in the morning.')
    expect(pieces[0]).toEqual({ turn: 1, attempt: 1, part: 0, text: expect.any(String) })
    expect(isOver).toBe(true)
    const deltas = ofType(await recorded(ledger, run.id), 'assistant_text_delta')
    expect(deltas.length).toBeLessThan(pieces.length)
  })

  it('is all that is shown before the message, where a run records no deltas of text', async () => {
    const { run, clock, pieces, ledger } = begin({ textDeltas: false })
    run.liveText$.subscribe((piece) => pieces.push(piece))
    const updates: string[] = []
    run.textUpdates$.subscribe(({ text }) => updates.push(text))
    const { text, status } = await waitUntilSettled(clock, run.result)
    const events = await recorded(ledger, run.id)
    expect(ofType(events, 'assistant_text_delta')).toEqual([])
    expect(checkLaws(events)).toEqual([])
    expect([status, text, textOf(pieces)]).toEqual(['done', 'Nine in the morning.', 'Nine in the morning.'])
    expect(updates).toEqual(['Nine in the morning.'])
  })

  it('names the attempt that it is of', async () => {
    const { run, clock, pieces } = begin({
      steps: [{ text: 'Nine in the', fail: 'network' }, { text: 'Nine.' }],
    })
    run.liveText$.subscribe((piece) => pieces.push(piece))
    await waitUntilSettled(clock, run.result)
    expect(textOf(pieces.filter(({ attempt }) => attempt === 1))).toBe('Nine in the')
    expect(textOf(pieces.filter(({ attempt }) => attempt === 2))).toBe('Nine.')
  })

  it('is masked as the recorded text is', async () => {
    const { run, clock, pieces } = begin({ mask: 'morning' })
    run.liveText$.subscribe((piece) => pieces.push(piece))
    const { text } = await waitUntilSettled(clock, run.result)
    expect(text).not.toContain('morning')
    expect(textOf(pieces)).toBe(text)
  })

  it('drops a subscriber that throws, and nothing else', async () => {
    const { run, clock, pieces, reports } = begin({})
    run.liveText$.subscribe(() => {
      throw new Error('no room')
    })
    run.liveText$.subscribe((piece) => pieces.push(piece))
    await waitUntilSettled(clock, run.result)
    expect(textOf(pieces)).toBe('Nine in the morning.')
    expect(reports).toMatchObject([{ message: 'no room' }])
  })

  it('is refused where the runtime does not pass it on', async () => {
    const { run, clock } = begin({ liveText: false })
    let refusal: unknown
    run.liveText$.subscribe({ error: (error: unknown) => (refusal = error) })
    await waitUntilSettled(clock, run.result)
    expect(String(refusal)).toContain('liveText: true')
  })
})

const runId = sampleRunId(1)
const delta = sampleFacts(runId).assistant_text_delta
const [one, two, three] = stampFacts(runId, [delta, delta, delta]) as [
  RuntimeEvent,
  RuntimeEvent,
  RuntimeEvent,
]

describe('live events', () => {
  it('reach those that follow when they come, in order, until they leave', () => {
    const live = new LiveEvents()
    const seen: [string, number][] = []
    live.next(one)
    const early = live.subscribe(({ seq }) => {
      seen.push(['early', seq])
      if (seq === two.seq) live.subscribe((event) => seen.push(['late', event.seq]))
    })
    live.next(two)
    early.unsubscribe()
    live.next(three)
    expect(seen).toEqual([
      ['early', two.seq],
      ['late', three.seq],
    ])
  })

  it('reach no reader that another one has unsubscribed meanwhile, and all the others', () => {
    const live = new LiveEvents()
    const seen: string[] = []
    live.subscribe(() => {
      seen.push('first')
      second.unsubscribe()
    })
    const second = live.subscribe(() => seen.push('second'))
    live.subscribe(() => seen.push('third'))
    live.next(one)
    live.next(two)
    expect(seen).toEqual(['first', 'third', 'first', 'third'])
  })

  it('end with an error for those that follow, and for those that come later', () => {
    const live = new LiveEvents()
    const fault = new Error('The ledger is gone.')
    const seen: unknown[] = []
    const reader = {
      next: (event: RuntimeEvent) => seen.push(event),
      error: (error: unknown) => seen.push(error),
    }
    live.subscribe(reader)
    live.error(fault)
    live.error(new Error('It is too late for another.'))
    live.next(one)
    expect(seen).toEqual([fault])
    live.subscribe(reader)
    expect(seen).toEqual([fault, fault])
  })
})

/** A model that reports these signals, and then the reply of these parts. */
function reporting(signals: readonly ModelSignal[], parts: readonly ReplyPart[]): Model {
  return {
    ...{ provider: 'test', api: 'test', modelId: 'm' },
    stream: () =>
      new Observable((subscriber) => {
        for (const signal of signals) subscriber.next(signal)
        subscriber.next({ type: 'model_finished', stopReason: 'end', parts })
        subscriber.complete()
      }),
  }
}

const text = (part: number, words: string, replaces?: true): ModelSignal => ({
  ...{ type: 'model_text', part, text: words },
  ...(replaces && { replaces }),
})

async function played(signals: readonly ModelSignal[], parts: readonly ReplyPart[]) {
  const set = stage({ model: reporting(signals, parts) })
  const run = set.start()
  const result = await set.waitUntilSettled(run.result)
  const events = await set.eventsOf(run)
  const updates = await firstValueFrom(run.textUpdates$.pipe(toArray()))
  return { result, events, updates: updates.map((update) => [update.type, update.text]) }
}

describe('text that its provider takes back in the end', () => {
  it('is not part of the message, and the record says both', async () => {
    const { result, events, updates } = await played(
      [text(0, 'The balance '), text(0, 'is 12.'), text(0, 'The balance is 99.', true)],
      [{ part: 0, type: 'text', text: 'The balance is 99.' }],
    )
    expect(result).toMatchObject({ reason: 'answered', text: 'The balance is 99.' })
    expect(
      ofType(events, 'assistant_text_delta').map(({ text: words, replaces }) => [words, replaces]),
    ).toEqual([
      ['The balance is 12.', undefined],
      ['The balance is 99.', true],
    ])
    expect(checkLaws(events)).toEqual([])
    expect(updates).toEqual([
      ['text', 'The balance is 12.'],
      ['withdrawn', 'The balance is 12.'],
      ['text', 'The balance is 99.'],
    ])
  })

  it('may be one of several parts, may continue, and may be nothing', async () => {
    const { result, events } = await played(
      [
        text(0, 'One. '),
        text(1, 'Twp'),
        text(1, 'Two', true),
        text(1, '. '),
        text(2, 'Three'),
        text(2, '', true),
      ],
      [
        { part: 0, type: 'text', text: 'One. ' },
        { part: 1, type: 'text', text: 'Two. ' },
        { part: 2, type: 'text', text: '' },
      ],
    )
    expect(result).toMatchObject({ reason: 'answered', text: 'One. Two. ' })
    expect(checkLaws(events)).toEqual([])
  })

  it('is still a breach of the adapter where the reply says another text than that', async () => {
    const { result } = await played(
      [text(0, 'One'), text(0, 'Two', true)],
      [{ part: 0, type: 'text', text: 'One' }],
    )
    expect(result).toMatchObject({
      reason: 'model_failed',
      detail: expect.stringContaining('broke its contract'),
    })
  })
})
