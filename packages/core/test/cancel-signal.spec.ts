// A signal that cancels a run: which values are one, what its reason becomes, and when the run forgets it.
import { Subject } from 'rxjs'
import { describe, expect, it } from 'vitest'
import type { RuntimeEvent } from '@tallystick/core'
import { toCancelCommand, cancelWith, someSignal } from '../src/runtime/runtime-options.ts'

function listening() {
  const controller = new AbortController()
  const { signal } = controller
  const listeners = new Set<unknown>()
  const watched = {
    get aborted() {
      return signal.aborted
    },
    get reason(): unknown {
      return signal.reason
    },
    addEventListener: (type: 'abort', listener: () => void) => {
      listeners.add(listener)
      signal.addEventListener(type, listener)
    },
    removeEventListener: (type: 'abort', listener: () => void) => {
      listeners.delete(listener)
      signal.removeEventListener(type, listener)
    },
  }
  const sent: unknown[] = []
  const live = new Subject<RuntimeEvent>()
  const driver = {
    live,
    send: (command: unknown) => (sent.push(command), Promise.reject(new Error('x'))),
  }
  cancelWith(watched, driver as never)
  return { controller, listeners, live, sent }
}

describe('a signal that cancels a run', () => {
  it('is what has a state and takes listeners', () => {
    const fits = (value: unknown) => someSignal(value) === undefined
    const listens = { addEventListener: () => {}, removeEventListener: () => {} }
    expect([new AbortController().signal, { ...listens, aborted: false }].map(fits)).toEqual([true, true])
    const { addEventListener, removeEventListener } = listens
    expect(
      [
        ...[undefined, null, 'abort', {}, listens, { ...listens, aborted: 'no' }],
        ...[
          { aborted: true, addEventListener },
          { aborted: true, removeEventListener },
        ],
      ].map(fits),
    ).toEqual(Array.from({ length: 8 }, () => false))
  })

  it('becomes a cancel with its reason, once it is aborted', () => {
    const aborted = (reason?: unknown) => toCancelCommand({ aborted: true, reason } as never)
    expect(toCancelCommand(undefined)).toBeUndefined()
    expect(toCancelCommand({ aborted: false, reason: 'x' } as never)).toBeUndefined()
    expect(aborted()).toStrictEqual({ type: 'cancel' })
    expect(aborted('Enough.')).toStrictEqual({ type: 'cancel', reason: 'Enough.' })
    expect(aborted(new Error('Too late'))).toStrictEqual({ type: 'cancel', reason: 'Too late' })
  })

  it('is sent once, and leaves no rejection where the run takes no command any more', async () => {
    const { controller, sent } = listening()
    controller.abort('Enough.')
    controller.abort('Again.')
    await Promise.resolve()
    expect(sent).toEqual([{ type: 'cancel', reason: 'Enough.' }])
  })

  it('is forgotten when the run has ended or failed, and not before', () => {
    for (const end of ['run_finished', 'failure']) {
      const { controller, listeners, live, sent } = listening()
      live.next({ type: 'run_started' } as never)
      expect(listeners.size).toBe(1)
      if (end === 'failure') live.error(new Error('x'))
      else live.next({ type: 'run_finished' } as never)
      expect(listeners.size).toBe(0)
      controller.abort()
      expect(sent).toEqual([])
    }
  })
})
