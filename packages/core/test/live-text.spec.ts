// The text of replies before it is on record: of no law, without a number, and off unless a runtime is told to pass it on.
import { describe, expect, it } from 'vitest'
import { createRuntime, defineAgent, type LiveText, memoryLedger, outputMask } from '@tallystick/core'
import { checkLaws, manualClock, scriptedModel, waitUntilSettled } from '@tallystick/testkit'
import { ofType, recorded } from './stage.ts'

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
