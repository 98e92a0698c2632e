import { LedgerConflictError, RunNotFoundError, type Feedback, type Ledger } from '@tallystick/core'
import { evolve } from '@tallystick/core/machine'
import { eventTypes, type EventType } from '@tallystick/core/vocabulary'
import { checkLaws, manualClock, sampleFacts, testTool } from '@tallystick/testkit'
import { lastValueFrom, toArray } from 'rxjs'
import { describe, expect, it } from 'vitest'
import { memoryLedger } from '@tallystick/core'
import { checkedRun, ofType, stage } from './stage.ts'

const ended = async () => {
  const set = stage()
  const result = await set.play()
  return { ...set, runId: result.runId }
}

describe('feedback', () => {
  it('is the only event behind the end of a run, and leaves its result as it was', async () => {
    const { runtime, runId, clock, waitUntilSettled, eventsOf } = await ended()
    const before = await runtime.resume(runId).result
    clock.advance(3_600_000)
    expect(
      await waitUntilSettled(runtime.feedback(runId, { by: 'ada', score: 0.5, note: 'Half of it.' })),
    ).toEqual({ accepted: true })
    const events = checkedRun(await eventsOf(runId))
    expect(events.slice(-2)).toMatchObject([
      { type: 'run_finished' },
      { type: 'feedback_given', by: 'ada', score: 0.5, note: 'Half of it.', turn: 1 },
    ])
    const { seq, ...after } = await runtime.resume(runId).result
    expect(after).toEqual({ ...before, seq: undefined })
    expect(seq).toBe(events.length)
    const state = events.reduce<ReturnType<typeof evolve> | undefined>(evolve, undefined)!
    const others = eventTypes.filter((type) => type !== 'feedback_given')
    for (const type of others) {
      const next = {
        ...sampleFacts(runId)[type as EventType],
        at: state.at,
        v: 1,
        runId,
        seq: events.length + 1,
        turn: 1,
        epoch: 1,
      }
      expect(() => evolve(state, next as never)).toThrow(/done|run_started/)
    }
  })

  it('is told by an independent judge where it stands elsewhere, and what else follows the end', async () => {
    const { runtime, runId, eventsOf } = await ended()
    await runtime.feedback(runId, { by: 'ada', score: 1 })
    const events = await eventsOf(runId)
    const numbered = (list: readonly (typeof events)[number][]) =>
      list.map((event, index) => ({ ...event, seq: index + 1 }))
    const early = numbered([...events.slice(0, -2), events.at(-1)!, events.at(-2)!])
    expect(checkLaws(early).map(({ what }) => what)).toEqual([
      'feedback_given before the end of the run',
      'run_finished after the end of the run',
    ])
    const late = numbered([...events, { ...events.at(-1)!, type: 'cancel_requested' } as never])
    expect(checkLaws(late).map(({ what }) => what)).toEqual(['cancel_requested after the end of the run'])
  })

  it('is refused while the run goes on, and when it says nothing', async () => {
    const { runtime, start, waitUntilSettled, eventsOf } = stage({ steps: [{ text: 'Hm', hang: true }] })
    const run = start()
    await new Promise<void>((resolve) => {
      run.textUpdates$.subscribe(() => resolve())
    })
    expect(await run.feedback({ by: 'ada', score: 1 })).toMatchObject({
      accepted: false,
      code: 'not_finished',
    })
    void run.cancel()
    await waitUntilSettled(run.result)
    for (const wrong of [
      { by: 'ada' },
      { by: 'ada', note: '' },
      { by: '', score: 1 },
      { by: 'ada', score: Number.NaN },
      { by: 'ada', score: '1' },
      { by: 'ada', rating: 1 },
      undefined,
    ])
      expect(await run.feedback(wrong as Feedback)).toMatchObject({ accepted: false, code: 'malformed' })
    expect(await run.feedback({ by: 'ada', note: 'It hung.' })).toEqual({ accepted: true })
    expect(ofType(await eventsOf(run), 'feedback_given')).toHaveLength(1)
    await expect(runtime.feedback('no-run', { by: 'ada', score: 1 })).rejects.toThrow(RunNotFoundError)
  })

  it('of many at once is recorded once each, and once under a key', async () => {
    const { runtime, runId, eventsOf } = await ended()
    await Promise.all(Array.from({ length: 8 }, (_, score) => runtime.feedback(runId, { by: 'ada', score })))
    const vote = (by: string, score: number) => runtime.feedback(runId, { by, score }, { key: 'vote' })
    for (let time = 0; time < 2; time++) expect(await vote('bob', 1)).toEqual({ accepted: true })
    for (const other of [() => vote('bob', 0), () => vote('ada', 1)])
      await expect(other()).rejects.toMatchObject({ code: 'ledger_conflict', kind: 'unique' })
    const given = ofType(checkedRun(await eventsOf(runId)), 'feedback_given')
    expect(given.map(({ score = -1 }) => score).sort((a, b) => a - b)).toEqual([0, 1, 1, 2, 3, 4, 5, 6, 7])
    expect(given.filter(({ by }) => by === 'bob')).toMatchObject([{ score: 1 }])
  })

  it('reads no more of a run that is longer', async () => {
    const read = async (turns: number) => {
      const look = { name: 'look', input: {} }
      const clock = manualClock()
      const ledger = memoryLedger({ clock })
      let count = 0
      const counted = async function* <T>(events: AsyncIterable<T>): AsyncGenerator<T> {
        for await (const event of events) {
          count++
          yield event
        }
      }
      const counting: Ledger = {
        ...ledger,
        read: (...given) => counted(ledger.read(...given)),
        find: (...given) => counted(ledger.find(...given)),
      }
      const { runtime, play } = stage({
        ...{ ledger: counting, clock, tools: [testTool({ name: 'look' })] },
        steps: [...Array.from({ length: turns }, () => ({ toolCalls: [look] })), { text: 'Done.' }],
      })
      const { runId } = await play()
      count = 0
      await runtime.feedback(runId, { by: 'ada', score: 1 }, { key: 'vote' })
      return count
    }
    expect(await read(9)).toBe(await read(1))
  })

  it('passes on what the ledger says other than a lost race', async () => {
    const clock = manualClock()
    const ledger = memoryLedger({ clock })
    let refuses = false
    const full: Ledger = {
      ...ledger,
      append: async (...given) => {
        if (refuses) throw new LedgerConflictError('unique', 'The disk is full.')
        return await ledger.append(...given)
      },
    }
    const { runtime, play } = stage({ ledger: full, clock })
    const { runId } = await play()
    refuses = true
    await expect(runtime.feedback(runId, { by: 'ada', score: 1 })).rejects.toThrow('The disk is full.')
  })

  it('is at a time that never falls, whatever the clock does', async () => {
    const { ledger, runId, eventsOf } = await ended()
    const early = stage({ ledger, clock: manualClock(0) })
    await early.runtime.feedback(runId, { by: 'ada', score: 1 })
    const [end, given] = (await eventsOf(runId)).slice(-2)
    expect(given?.at).toBe(end?.at)
  })

  it('that is there by then is in every view of the run, and each view ends', async () => {
    const { runtime, runId, eventsOf } = await ended()
    await runtime.feedback(runId, { by: 'ada', score: 1 })
    await runtime.feedback(runId, { by: 'bob', score: 0 })
    const events = await eventsOf(runId)
    const run = runtime.resume(runId)
    expect(await lastValueFrom(run.events$.pipe(toArray()))).toEqual(events)
    expect(await Array.fromAsync(run)).toEqual(events)
    for (const { seq } of events)
      expect(await lastValueFrom(run.after(seq).events$.pipe(toArray()))).toEqual(events.slice(seq))
    expect((await lastValueFrom(run.state$)).seq).toBe(events.length)
  })

  it('does not hold up one who reads the run as it comes', async () => {
    const { runtime, start, waitUntilSettled } = stage()
    const run = start()
    const read = Array.fromAsync(run)
    await waitUntilSettled(run.result)
    await run.feedback({ by: 'ada', score: 1 })
    expect((await read).map(({ type }) => type)).toContain('run_finished')
    expect(await lastValueFrom(runtime.resume(run.id).text$.pipe(toArray()))).toEqual(['Done.'])
  })
})
