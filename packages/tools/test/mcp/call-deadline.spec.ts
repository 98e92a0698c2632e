import { manualClock } from '@tallystick/testkit'
import { describe, expect, it } from 'vitest'
import { startDeadline, pauseAll } from '../../src/mcp/deadline.ts'
import { HeldTimers } from '../built-in/held-timers.ts'

describe('the time of a call', () => {
  it('ends after a time without progress, or as a whole', async () => {
    for (const over of [10, 100]) {
      const timers = new HeldTimers()
      const deadline = startDeadline(timers, 10, 100)
      deadline.progress()
      expect(timers.count).toBe(2)
      await timers.fire(over)
      expect(deadline.signal.reason).toMatchObject({ name: 'TimeoutError' })
      expect(timers.count).toBe(0)
      deadline.progress()
      expect(timers.count).toBe(0)
    }
  })

  it('stands still while a person decides, also where several questions are open', () => {
    const timers = new HeldTimers()
    const deadline = startDeadline(timers, 10, 100)
    deadline.pause()
    deadline.pause()
    deadline.resume()
    deadline.progress()
    expect(timers.count).toBe(0)
    deadline.resume()
    expect(timers.count).toBe(2)
  })

  it('sets no timer any more once the call has ended', () => {
    const timers = new HeldTimers()
    const deadline = startDeadline(timers, 10, 100)
    deadline.pause()
    deadline.stop()
    deadline.resume()
    deadline.progress()
    expect(timers.count).toBe(0)
    expect(deadline.signal.aborted).toBe(false)
  })
})

describe('calls while a person answers for one of them', () => {
  it('stand still; one that begins meanwhile has its time prolonged by progress, then and later', () => {
    const clock = manualClock()
    const asking = startDeadline(clock, 1_000, 10_000)
    const deadlines = new Set([asking])
    const runAgain = pauseAll(deadlines)
    const late = startDeadline(clock, 1_000, 10_000)
    deadlines.add(late)
    for (let report = 0; report < 3; report++) {
      clock.advance(900)
      late.progress()
    }
    runAgain()
    clock.advance(900)
    expect([asking.signal.aborted, late.signal.aborted]).toEqual([false, false])
    late.progress()
    clock.advance(900)
    expect([asking.signal.aborted, late.signal.aborted]).toEqual([true, false])
    clock.advance(100)
    expect(late.signal.aborted).toBe(true)
    expect(clock.pending).toBe(0)
  })
})
