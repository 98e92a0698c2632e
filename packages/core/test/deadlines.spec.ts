import type { Limits, Model } from '@tallystick/core'
import type { ModelSignal } from '@tallystick/core/vocabulary'
import { given, scriptedModel, testTool } from '@tallystick/testkit'
import { Observable } from 'rxjs'
import { describe, expect, it } from 'vitest'
import {
  measureActiveMs,
  getDeadline,
  getFinalizingMs,
  getGraceEnd,
  findTimeLimit,
  getWorkDeadline,
} from '../src/machine/limits.ts'
import { recoverRandom, computeRetryAt } from '../src/machine/retry.ts'
import type { RunState, StreamingState } from '../src/machine/state.ts'
import { idle } from './actions.ts'
import { begun, called, failure } from './pages.ts'
import { checkedRun, ofType, stage } from './stage.ts'

describe('the time of a run', () => {
  const state = idle({ maxDurationMs: 10_000 }, { startedAt: 1_000, waitedMs: 50 })

  it('counts from its start, without what it waited', () => {
    expect([measureActiveMs(state, 1_100), getDeadline(state), getWorkDeadline(state)]).toEqual([
      50, 11_050, 8_550,
    ])
    expect([getDeadline(idle()), getWorkDeadline(idle())]).toEqual([Infinity, Infinity])
    expect(findTimeLimit(state, 1_100)).toEqual({
      limit: 'maxDurationMs',
      max: 10_000,
      used: 50,
      held: 2_500,
    })
    expect(
      findTimeLimit({ ...state, limits: { maxDurationMs: 10, onLimit: 'stop' } }, 1_100),
    ).not.toHaveProperty('held')
  })

  it.each<readonly [Limits, number]>([
    [{}, 0],
    [{ maxDurationMs: 10_001 }, 2_500],
    [{ maxDurationMs: 120_000 }, 30_000],
    [{ maxDurationMs: 121_000 }, 30_000],
    [{ maxDurationMs: 10_000, onLimit: 'stop' }, 0],
    [{ maxDurationMs: 10_000, onLimit: 'ask' }, 0],
  ])('of %o keeps %i ms for the answer', (limits, kept) => {
    expect(getFinalizingMs({ ...state, limits })).toBe(kept)
  })

  it('lets tools that have to stop do so, within it', () => {
    const end = (limits: Limits, more: Partial<RunState> = {}): number =>
      getGraceEnd({ ...state, limits, ...more } as RunState, 11_000)
    expect(end({ graceMs: 500 })).toBe(11_500)
    expect(end({})).toBe(13_000)
    expect(end({ graceMs: 0 })).toBe(11_001)
    expect(end({ graceMs: 500, maxDurationMs: 10_000 })).toBe(11_050)
    expect(end({ graceMs: 500, maxDurationMs: 1 })).toBe(11_001)
    expect(end({ graceMs: 500, maxDurationMs: 1 }, { cancel: { at: 11_000 } })).toBe(11_500)
  })
})

describe('when a failed call is made again', () => {
  const state = (more: Partial<StreamingState> = {}): StreamingState => {
    const retry = { maxAttempts: 3, baseMs: 100, capMs: 300, maxRetryAfterMs: 1_000, maxTotalMs: 2_000 }
    const streaming = given([...begun({ retry }), called()]).state as StreamingState
    return { ...streaming, turnStartedAt: 0, failures: 0, ...more }
  }
  const at = (
    failed: Parameters<typeof failure>[0],
    more: Partial<StreamingState> = {},
    random = 0,
    now = 1_000,
  ) => computeRetryAt(state(more), failure(failed), { at: now, random })

  it.each<readonly [string, number | undefined, number | undefined]>([
    ['as long as the provider asks', at({ retryAfterMs: 0.5 }), 1_001],
    ['at once, where it asks for that', at({ retryAfterMs: 0 }), 1_000],
    ['not where that is too long', at({ retryAfterMs: 1_001 }), undefined],
    ['as long as that is not too long', at({ retryAfterMs: 1_000 }), 2_000],
    ['by its own wait, where it asks for no time', at({ retryAfterMs: -5 }), 1_100],
    ['twice as long each time', at({}, { failures: 1 }), 1_200],
    ['no longer than the cap', at({}, { failures: 1, retry: { ...state().retry, capMs: 150 } }), 1_150],
    ['shortened by chance', at({}, {}, 0.5), 1_075],
    ['no more than it may', at({}, { failures: 2 }), undefined],
    ['not where that is of no use', at({ retryable: false }), undefined],
    ['within the time of the turn', at({}, {}, 0, 1_900), 2_000],
    ['not after it', at({}, {}, 0, 1_901), undefined],
  ])('%s', (_name, time, expected) => {
    expect(time).toBe(expected)
  })

  it('a recorded wait tells its chance, and none where it was asked for', () => {
    const chance = (
      recorded: number | undefined,
      retryAfterMs?: number,
      more: Partial<StreamingState> = {},
    ) =>
      recoverRandom(state(more), {
        type: 'model_stream_failed',
        at: 1_000,
        failure: failure(retryAfterMs === undefined ? {} : { retryAfterMs }),
        ...(recorded !== undefined && { retryAt: recorded }),
      })
    expect([chance(1_100), chance(1_075), chance(1_050)]).toEqual([0, 0.5, 1])
    expect([chance(undefined), chance(1_075, 75), chance(1_075, 0)]).toEqual([0, 0, 0])
    expect(chance(1_075, -1)).toBe(0.5)
    expect(chance(1_000, undefined, { retry: { ...state().retry, baseMs: 0 } })).toBe(0)
  })
})

/** A model that reports one delta every `everyMs`, by the clock that it is lent, and never ends. */
function slowModel(everyMs: number): Model & { readonly closed: () => number } {
  let closed = 0
  return {
    ...{ provider: 'slow', api: 'script', modelId: 'slow-1', closed: () => closed },
    stream: (_request, { clock }) =>
      new Observable<ModelSignal>((subscriber) => {
        let open = true
        const tick = (): void => {
          clock.schedule(everyMs, () => {
            if (!open) return
            subscriber.next({ type: 'model_text', part: 0, text: '.' })
            tick()
          })
        }
        tick()
        return () => {
          open = false
          closed++
        }
      }),
  }
}

describe('the timeouts of a model call', () => {
  it('give up a call that reports nothing, which counts as a failed attempt and closes the connection', async () => {
    const model = slowModel(60_000)
    const { play, eventsOf } = stage({
      ...{ model, timeouts: { idleMs: 1_000 }, retry: { maxAttempts: 2 } },
    })
    const { runId, reason } = await play()
    expect(reason).toBe('model_failed')
    expect(model.closed()).toBe(2)
    expect(ofType(checkedRun(await eventsOf(runId)), 'model_stream_failed')).toMatchObject([
      {
        failure: { class: 'timeout', retryable: true, message: expect.stringContaining('1000 ms') as string },
      },
      { failure: { class: 'timeout' } },
    ])
  })

  it('let a call continue that reports, up to the total time', async () => {
    const model = slowModel(400)
    const { play, eventsOf } = stage({
      ...{ model, timeouts: { idleMs: 1_000, totalMs: 3_000 }, retry: { maxAttempts: 1 } },
    })
    const { runId, text } = await play()
    expect(text).toBe('.......')
    const [failed] = ofType(checkedRun(await eventsOf(runId)), 'model_stream_failed')
    expect(failed?.failure.message).toContain('longer than 3000 ms')
  })

  it('leave a call alone that ends in time', async () => {
    const { play } = stage({ timeouts: { idleMs: 1_000, totalMs: 3_000 } })
    expect(await play()).toMatchObject({ reason: 'answered', text: 'Done.' })
  })
})

describe('a turn that offers a part of the tools', () => {
  it('does not run a tool that it did not offer', async () => {
    const [look, pay] = [testTool({ name: 'look' }), testTool({ name: 'pay', effect: 'write' })]
    const model = scriptedModel([
      { toolCalls: ['look', 'pay'].map((name) => ({ name, input: {} })) },
      { text: 'Done.' },
    ])
    const { play, eventsOf } = stage({ model, tools: [look, pay], prepareTurn: () => ({ tools: ['look'] }) })
    const { runId } = await play()
    expect([look.runs.length, pay.runs.length]).toEqual([1, 0])
    const results = ofType(checkedRun(await eventsOf(runId)), 'tool_result')
    expect(results.map(({ name, outcome }) => `${name} ${outcome}`).toSorted()).toEqual([
      ...['look success', 'pay unknown_tool'],
    ])
  })

  it('is refused where what it would show parts a call from its result', async () => {
    const look = testTool({ name: 'look' })
    const { play } = stage({
      ...{ steps: [{ toolCalls: [{ name: 'look', input: {} }] }, { text: 'Done.' }], tools: [look] },
      prepareTurn: ({ turn, history }) =>
        turn === 0 ? undefined : { messages: history.store.messages.slice(0, 2) },
    })
    await expect(play()).rejects.toThrow(
      /prepareTurn of the agent agent returned messages that no provider takes/,
    )
  })
})
