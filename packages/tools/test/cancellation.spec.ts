import type { ToolSignal } from '@tallystick/core/vocabulary'
import { defineTool, ToolError } from '@tallystick/tools'
import type { ToolContext } from '@tallystick/tools'
import { concat, EMPTY, NEVER, Observable, of, Subject, throwError } from 'rxjs'
import { describe, expect, it } from 'vitest'
import { endingOf, signalsOf, toolRun } from './one-call.ts'

function toolOf(
  execute: (input: unknown, context: ToolContext) => unknown,
  effect: 'read' | 'write' = 'read',
) {
  return defineTool({ name: 'work', description: 'Works.', input: { type: 'object' }, effect, execute })
}

/** Rejects when the signal aborts, as fetch and timers do. */
function untilAborted(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true })
  })
}

const success = { type: 'tool_ended', outcome: 'success', content: [{ type: 'text', text: 'ok' }] } as const

describe('cancelling', () => {
  it('aborts the signal of the tool with the reason, and what it throws then counts as cancelled', async () => {
    const cancelled$ = new Subject<string>()
    let reason: unknown
    const tool = toolOf((_input, { signal }) => {
      queueMicrotask(() => cancelled$.next('the user left.'))
      signal.addEventListener('abort', () => (reason = signal.reason))
      return untilAborted(signal)
    })
    expect(await endingOf(tool, {}, { cancelled$ })).toEqual({
      outcome: 'cancelled',
      text: 'The call was cancelled: the user left.',
    })
    expect(reason).toBeInstanceOf(DOMException)
    expect(reason).toMatchObject({ name: 'AbortError', message: 'the user left.' })
    expect(cancelled$.observed).toBe(false)
  })

  it('names the cancellation where no reason was given', async () => {
    const cancelled$ = new Subject<string>()
    let reason: unknown
    const tool = toolOf((_input, { signal }) => {
      queueMicrotask(() => cancelled$.next(''))
      signal.addEventListener('abort', () => (reason = signal.reason))
      return untilAborted(signal)
    })
    await endingOf(tool, {}, { cancelled$ })
    expect(reason).toMatchObject({ name: 'AbortError', message: 'The call was cancelled' })
  })

  it('tells the model that a write may have done part of its work, and what the tool says of it', async () => {
    const cancelled$ = new Subject<string>()
    const tool = toolOf(async () => {
      cancelled$.next('')
      throw new ToolError('The card was charged, the order was not sent.')
    }, 'write')
    expect(await endingOf(tool, {}, { cancelled$ })).toEqual({
      outcome: 'cancelled',
      text:
        'The call was cancelled. It may have done part of its work: check before calling it again. ' +
        'The card was charged, the order was not sent.',
    })
  })

  it('keeps the result of a tool that finishes all the same', async () => {
    const cancelled$ = new Subject<string>()
    const tool = toolOf(async () => {
      cancelled$.next('stop')
      return 'ok'
    })
    expect(await signalsOf(tool, {}, { cancelled$ })).toEqual([success])
  })

  it('runs nothing where it came before the start', async () => {
    let ran = false
    const tool = toolOf(() => (ran = true), 'write')
    expect(await endingOf(tool, {}, { cancelled$: of('limit', 'again') })).toEqual({
      outcome: 'cancelled',
      text: 'The call was cancelled: limit. Nothing was run.',
    })
    expect(ran).toBe(false)
  })

  it('counts an error as failed without a cancel, whatever its name', async () => {
    const tool = toolOf(() => Promise.reject(new DOMException('gone', 'AbortError')))
    expect(await endingOf(tool, {}, { cancelled$: concat(EMPTY, NEVER) })).toEqual({
      outcome: 'failed',
      text: 'AbortError: gone',
    })
  })

  it('stops the tool where the source of cancellation breaks', async () => {
    const tool = toolOf((_input, { signal }) => (signal.aborted ? 'ran' : untilAborted(signal)))
    const { outcome } = await endingOf(tool, {}, { cancelled$: throwError(() => new Error('bus down')) })
    expect(outcome).toBe('cancelled')
  })

  it('leaves the signal alone once the call has ended', async () => {
    let signal: AbortSignal | undefined
    await signalsOf(
      toolOf((_input, context) => void (signal = context.signal)),
      {},
    )
    expect(signal?.aborted).toBe(false)
  })
})

describe('unsubscribing', () => {
  it('aborts a tool that never settles, hears nothing more of it, and keeps no listener', async () => {
    const cancelled$ = new Subject<string>()
    let context: ToolContext | undefined
    let settle: ((value: string) => void) | undefined
    const started = new Promise<void>((resolve) => {
      const tool = toolOf((_input, lent) => {
        context = lent
        resolve()
        return new Promise<string>((done) => (settle = done))
      })
      const subscription = tool.run(toolRun({}, { cancelled$ })).subscribe((signal) => signals.push(signal))
      stop = () => subscription.unsubscribe()
    })
    await started
    expect(cancelled$.observed).toBe(true)
    stop()
    expect(context?.signal.aborted).toBe(true)
    expect(cancelled$.observed).toBe(false)
    context?.progress(1)
    settle?.('ok')
    await new Promise((resolve) => setImmediate(resolve))
    expect(signals).toEqual([])
  })

  const signals: ToolSignal[] = []
  let stop: () => void = () => {}

  it('swallows what an abandoned tool throws', async () => {
    let reject: ((error: Error) => void) | undefined
    const unhandled: unknown[] = []
    const listen = (error: unknown): void => void unhandled.push(error)
    process.on('unhandledRejection', listen)
    const subscription = toolOf(() => new Promise((_resolve, fail) => (reject = fail)))
      .run(toolRun({}))
      .subscribe()
    await new Promise((resolve) => setImmediate(resolve))
    subscription.unsubscribe()
    reject?.(new Error('left behind'))
    await new Promise((resolve) => setImmediate(resolve))
    process.off('unhandledRejection', listen)
    expect(reject).toBeDefined()
    expect(unhandled).toEqual([])
  })

  it('before the input is checked starts nothing', async () => {
    let ran = false
    toolOf(() => (ran = true))
      .run(toolRun({}))
      .subscribe()
      .unsubscribe()
    await new Promise((resolve) => setImmediate(resolve))
    expect(ran).toBe(false)
  })

  it('from within a progress report is safe', async () => {
    const seen: ToolSignal[] = []
    const tool = toolOf((_input, { progress }) => {
      for (let percent = 0; percent < 3; percent++) progress(percent)
      return 'ok'
    })
    await new Promise<void>((resolve) => {
      const first$ = new Observable<ToolSignal>((subscriber) => tool.run(toolRun({})).subscribe(subscriber))
      const subscription = first$.subscribe((signal) => {
        seen.push(signal)
        subscription.unsubscribe()
        setImmediate(resolve)
      })
    })
    expect(seen).toEqual([{ type: 'tool_progressed', data: 0 }])
  })
})

describe('the signal of a call', () => {
  it('is one, also in a copy of the context, an object made from it, and a proxy', async () => {
    const signals: AbortSignal[] = []
    const tool = toolOf((_input, context) => {
      const made = Object.create(context) as ToolContext
      for (const view of [context, { ...context }, made, new Proxy(context, {})]) signals.push(view.signal)
      return 'ok'
    })
    await signalsOf(tool, {})
    expect(signals[0]).toBeInstanceOf(AbortSignal)
    expect(new Set(signals).size).toBe(1)
    expect(signals).toHaveLength(4)
  })
})
