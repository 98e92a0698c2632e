import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { defaultHost } from '../src/values/host.ts'

describe('the default host', () => {
  beforeEach(() => {
    vi.useFakeTimers({ now: Date.UTC(2026, 0, 1) })
  })
  afterEach(() => {
    // A spy on a fake timer puts that back: real timers come after it.
    vi.restoreAllMocks()
    vi.useRealTimers()
  })

  it('tells the time of the host, and calls back after a delay', () => {
    const { clock } = defaultHost
    const called = vi.fn<() => void>()
    clock.schedule(1_000, called)
    expect(clock.now()).toBe(Date.UTC(2026, 0, 1))
    vi.advanceTimersByTime(999)
    expect(called).not.toHaveBeenCalled()
    vi.advanceTimersByTime(1)
    expect(called).toHaveBeenCalledTimes(1)
    expect(clock.now()).toBe(Date.UTC(2026, 0, 1, 0, 0, 1))
  })

  it('never calls back at once, and not any more when it is called off', () => {
    const { clock } = defaultHost
    const called = vi.fn<() => void>()
    clock.schedule(-5, called)
    const cancel = clock.schedule(5, called)
    expect(called).not.toHaveBeenCalled()
    vi.advanceTimersByTime(0)
    expect(called).toHaveBeenCalledTimes(1)
    cancel()
    cancel()
    vi.advanceTimersByTime(10)
    expect(called).toHaveBeenCalledTimes(1)
  })

  it('waits longer than a timer of the host can: a year is a year', () => {
    const year = 365 * 24 * 3_600_000
    const called = vi.fn<() => void>()
    defaultHost.clock.schedule(year, called)
    // A timer that is set for more than 2^31 - 1 ms fires at once.
    vi.advanceTimersByTime(2 ** 31 - 1)
    expect(called).not.toHaveBeenCalled()
    vi.advanceTimersByTime(year - (2 ** 31 - 1) - 1)
    expect(called).not.toHaveBeenCalled()
    vi.advanceTimersByTime(1)
    expect(called).toHaveBeenCalledTimes(1)
  })

  it('waits as long at once as a timer of the host can', () => {
    const timers = vi.spyOn(globalThis, 'setTimeout')
    const cancel = defaultHost.clock.schedule(2 ** 32, () => {})
    expect(timers.mock.calls.map(([, delayMs]) => delayMs)).toEqual([2 ** 31 - 1])
    cancel()
  })

  it('tells even time, which passes as its timers do', () => {
    const { clock } = defaultHost
    const begun = clock.even?.() ?? Number.NaN
    vi.advanceTimersByTime(250)
    expect(clock.even?.()).toBe(begun + 250)
  })

  it('calls a long wait off, whatever piece of it is under way', () => {
    const called = vi.fn<() => void>()
    const cancel = defaultHost.clock.schedule(2 ** 33, called)
    vi.advanceTimersByTime(2 ** 32)
    cancel()
    vi.advanceTimersByTime(2 ** 33)
    expect(called).not.toHaveBeenCalled()
    expect(vi.getTimerCount()).toBe(0)
  })

  it('draws numbers from 0 to 1, and writes stray errors to the console', () => {
    const draws = Array.from({ length: 1_000 }, () => defaultHost.random())
    expect(draws.every((number) => number >= 0 && number < 1)).toBe(true)
    expect(new Set(draws).size).toBeGreaterThan(900)
    const written = vi.spyOn(console, 'error').mockImplementation(() => {})
    const error = new Error('bad subscriber')
    defaultHost.report(error, 'A subscriber of run 1 threw')
    expect(written.mock.calls).toEqual([['Tallystick: A subscriber of run 1 threw:', error]])
  })
})
