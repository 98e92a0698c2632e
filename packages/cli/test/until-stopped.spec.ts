import { of, Subject } from 'rxjs'
import { describe, expect, it } from 'vitest'
import { awaitCompletion, handleAll, runUntilStopped } from '../src/terminal/wait.ts'

async function* items(): AsyncGenerator<number> {
  yield* [1, 2, 3]
}

describe('items that are handled until a stop', () => {
  it('are handled one after the other, each to its end', async () => {
    const received: string[] = []
    const handle = async (item: number): Promise<void> => {
      received.push(`begin ${item}`)
      await Promise.resolve()
      received.push(`end ${item}`)
    }
    const stop$ = new Subject<void>()
    expect(await handleAll(items(), handle, stop$)).toBe(true)
    expect(received).toEqual([1, 2, 3].flatMap((item) => [`begin ${item}`, `end ${item}`]))
    expect(stop$.observed).toBe(false)
  })

  it('are handled no further after it, which is reported', async () => {
    const [received, stop$] = [[] as number[], new Subject<void>()]
    const handle = async (item: number): Promise<void> => {
      received.push(item)
      if (item === 2) stop$.next()
    }
    expect(await handleAll(items(), handle, stop$)).toBe(false)
    expect(received).toEqual([1, 2])
    expect(await handleAll(items(), handle, of(undefined))).toBe(false)
    expect(received).toEqual([1, 2])
  })

  it('stop where one cannot be handled', async () => {
    const stop$ = new Subject<void>()
    const failing = handleAll(items(), () => Promise.reject(new Error('no')), stop$)
    await expect(failing).rejects.toThrow('no')
    expect(stop$.observed).toBe(false)
  })
})

describe('a signal to stop', () => {
  it.each(['SIGINT', 'SIGTERM'] as const)(
    'reaches the work as %s, also before it listens',
    async (signal) => {
      const before = process.listenerCount(signal)
      const stopped = await runUntilStopped(async (stop$) => {
        expect(process.listenerCount(signal)).toBe(before + 1)
        process.emit(signal)
        let received = 0
        stop$.subscribe(() => received++)
        return received
      })
      expect([stopped, process.listenerCount(signal)]).toEqual([1, before])
    },
  )

  it('is listened for no longer once the work fails', async () => {
    const before = process.listenerCount('SIGINT')
    await expect(runUntilStopped(() => Promise.reject(new Error('no')))).rejects.toThrow('no')
    expect(process.listenerCount('SIGINT')).toBe(before)
  })
})

describe('a feed', () => {
  it('is waited for until it completes, also where it says nothing', async () => {
    const feed$ = new Subject<number>()
    let isOver = false
    const over = awaitCompletion(feed$).then(() => (isOver = true))
    feed$.next(1)
    await Promise.resolve()
    expect(isOver).toBe(false)
    feed$.complete()
    await over
    expect(isOver).toBe(true)
    await expect(awaitCompletion(of())).resolves.toBeUndefined()
  })
})
