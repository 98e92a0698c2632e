import { describe, expect, it } from 'vitest'
import type { Limits } from '@tallystick/core'
import { given } from '@tallystick/testkit'
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
