// What is waited for, until a signal aborts; afterwards neither a timer nor a listener is left.
import { getEventListeners } from 'node:events'
import { manualClock } from '@tallystick/testkit'
import { describe, expect, it } from 'vitest'
import { pause, waitUnlessAborted } from '../../../src/mcp/deadline.ts'
import { tick } from '../connected.ts'

/** A signal, how it is aborted, and how many listen to it. */
function signalOf() {
  const abort = new AbortController()
  return {
    signal: abort.signal,
    abort: () => abort.abort(new Error('enough')),
    listeners: () => getEventListeners(abort.signal, 'abort').length,
  }
}

async function settled(promise: Promise<unknown>): Promise<unknown> {
  let how: unknown = 'pending'
  promise.then(
    (value) => (how = value ?? 'resolved'),
    (error: Error) => (how = error.message),
  )
  await tick()
  return how
}

describe('a pause', () => {
  it('given its time, when that is over, then it ends', async () => {
    const { signal, listeners } = signalOf()
    const clock = manualClock()
    const paused = pause(100, clock, signal)
    clock.advance(99)
    expect(await settled(paused)).toBe('pending')
    clock.advance(1)
    expect(await settled(paused)).toBe('resolved')
    expect([listeners(), clock.pending]).toEqual([0, 0])
  })

  it('given a signal, when it aborts before or meanwhile, then it ends at once', async () => {
    const { signal, abort, listeners } = signalOf()
    const clock = manualClock()
    const paused = pause(100, clock, signal)
    abort()
    expect(await settled(paused)).toBe('resolved')
    expect(await settled(pause(100, clock, signal))).toBe('resolved')
    expect([listeners(), clock.pending]).toEqual([0, 0])
  })
})

describe('a result', () => {
  it('given it comes or fails before the signal aborts, then it is what is waited for', async () => {
    const { signal, listeners } = signalOf()
    expect(await settled(waitUnlessAborted(Promise.resolve('there'), signal))).toBe('there')
    expect(await settled(waitUnlessAborted(Promise.reject(new Error('no')), signal))).toBe('no')
    expect(listeners()).toBe(0)
  })

  it('given a signal, when it aborts before or meanwhile, then its reason is what is heard', async () => {
    const { signal, abort } = signalOf()
    const never = new Promise(() => {})
    const waited = waitUnlessAborted(never, signal)
    expect(await settled(waited)).toBe('pending')
    abort()
    expect(await settled(waited)).toBe('enough')
    expect(await settled(waitUnlessAborted(never, signal))).toBe('enough')
  })
})
