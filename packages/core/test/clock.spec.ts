import { createSteadyClock } from '../src/values/host.ts'
import { describe, expect, it } from 'vitest'
import { NEVER } from 'rxjs'
import { memoryLedger, type RuntimeEvent } from '@tallystick/core'
import { manualClock, testTool, type ManualClock } from '@tallystick/testkit'
import { ofType, recorded, stage } from './stage.ts'

const hour = 3_600_000

/** A clock that is set to a wrong time: it jumps, its timers do not. */
function jumpyClock(): ManualClock & { jump(ms: number): void } {
  const clock = manualClock()
  let skew = 0
  return {
    ...clock,
    now: () => clock.now() + skew,
    jump(ms) {
      skew += ms
    },
    get pending() {
      return clock.pending
    },
    get uses() {
      return clock.uses
    },
  }
}

const rising = (events: readonly RuntimeEvent[]): boolean =>
  events.every(({ at }, index) => index === 0 || at >= events[index - 1]!.at)

describe('a host whose clock is set ahead', () => {
  it('ends no run that waits to ask its model again, whether the host has even time or not', async () => {
    for (const isEven of [true, false]) {
      const clock = jumpyClock()
      if (!isEven) Reflect.deleteProperty(clock, 'even')
      const set = stage({
        steps: [{ fail: 'overloaded' }, { text: 'Done.' }],
        limits: { maxDurationMs: 60_000 },
        clock,
      })
      const run = set.start()
      const waiting = new Promise<void>((resolve) => {
        run.events$.subscribe(({ type }) => type === 'model_stream_failed' && resolve())
      })
      await waiting
      for (let turns = 0; turns < 100; turns++) await Promise.resolve()
      clock.jump(3 * hour)
      expect(await set.waitUntilSettled(run.result)).toMatchObject({ reason: 'answered', text: 'Done.' })
    }
  })
})

describe('a host whose clock goes backwards', () => {
  it('makes no caller wait longer than was decided', async () => {
    const clock = jumpyClock()
    const start = clock.now()
    const set = stage({
      steps: [
        () => {
          clock.jump(-hour)
          return { fail: 'overloaded' }
        },
        () => {
          clock.jump(-hour)
          return { fail: 'overloaded' }
        },
        { text: 'Done.' },
      ],
      clock,
    })
    expect(await set.play()).toMatchObject({ reason: 'answered' })
    // Two hours back, and less than three seconds of waiting.
    expect(clock.now() - (start - 2 * hour)).toBeLessThan(3_000)
  })

  it('dates no event before the one that it follows', async () => {
    const clock = jumpyClock()
    const look = testTool({
      name: 'look',
      run: () => {
        clock.jump(-hour)
        return 'blue'
      },
    })
    const set = stage({
      steps: [{ toolCalls: [{ name: 'look', input: {} }] }, { text: 'Blue.' }],
      tools: [look],
      clock,
    })
    const { runId } = await set.play()
    const events = await set.eventsOf(runId)
    expect(rising(events)).toBe(true)
    expect(ofType(events, 'tool_result').map(({ durationMs }) => durationMs)).toEqual([0])
  })

  it('lets a cancel take its grace time, and no more', async () => {
    const clock = jumpyClock()
    const deaf = testTool({ name: 'deaf', run: () => new Promise(() => {}) })
    const tool = {
      ...deaf,
      run: (call: Parameters<typeof deaf.run>[0]) => deaf.run({ ...call, cancelled$: NEVER }),
    }
    const set = stage({
      ...{
        steps: [{ toolCalls: [{ name: 'deaf', input: {} }] }],
        tools: [tool],
        clock,
        limits: { graceMs: 500 },
      },
    })
    const run = set.start()
    const before = clock.now()
    run.events$.subscribe(({ type }) => {
      if (type === 'tool_started') void run.cancel()
      if (type === 'cancel_requested') clock.jump(-hour)
    })
    expect(await set.waitUntilSettled(run.result)).toMatchObject({ reason: 'cancelled' })
    expect(clock.now() - (before - hour)).toBe(500)
  })

  it('does not keep the next process waiting for the time of the last', async () => {
    const ledger = memoryLedger()
    const ahead = stage({
      ledger,
      clock: manualClock(Date.UTC(2027, 0, 1)),
      steps: [{ text: 'He', hang: true }],
    })
    const run = ahead.start()
    const streaming = new Promise<void>((resolve) => {
      run.textUpdates$.subscribe(() => resolve())
    })
    await ahead.waitUntilSettled(streaming)
    const clock = manualClock(Date.UTC(2026, 0, 1))
    const next = stage({ ledger, clock })
    const resumed = next.runtime.resume(run.id, { takeOver: true })
    expect(await next.waitUntilSettled(resumed.result)).toMatchObject({ reason: 'answered', text: 'Done.' })
    expect(clock.now()).toBe(Date.UTC(2026, 0, 1))
    expect(rising(await recorded(ledger, run.id))).toBe(true)
  })
})

describe('the timers of a run', () => {
  it('are asked for no time that is over: a clock of an application may refuse one', () => {
    const asked: number[] = []
    const clock = createSteadyClock({
      now: () => 1_000,
      schedule(delayMs) {
        asked.push(delayMs)
        return () => {}
      },
    })
    for (const delayMs of [-5, 0, 7]) clock.schedule(delayMs, () => {})
    expect(asked).toEqual([0, 0, 7])
  })
})
