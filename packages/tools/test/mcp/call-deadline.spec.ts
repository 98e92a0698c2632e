import { describe, expect, it } from 'vitest'
import { callDeadline } from '../../src/mcp/connection/call-deadline.ts'
import { HeldTimers } from '../built-in/held-timers.ts'

describe('the time of a call', () => {
  it('ends after a time without progress, or as a whole', async () => {
    for (const over of [10, 100]) {
      const timers = new HeldTimers()
      const deadline = callDeadline(timers, 10, 100)
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
    const deadline = callDeadline(timers, 10, 100)
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
    const deadline = callDeadline(timers, 10, 100)
    deadline.pause()
    deadline.stop()
    deadline.resume()
    deadline.progress()
    expect(timers.count).toBe(0)
    expect(deadline.signal.aborted).toBe(false)
  })
})
