import { createRuntime, defineAgent, memoryLedger, type RunId } from '@tallystick/core'
import { foldTo } from '@tallystick/ledger'
import { manualClock, scriptedModel, testTool } from '@tallystick/testkit'
import { of, Subject } from 'rxjs'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { type InteractiveRunOptions, stopOnSignal } from '../src/drive/interactive-run.ts'
import { readWaitedTime } from '../src/runs/read-run.ts'
import { awaitCompletion, handleAll, runUntilStopped, keepAlive } from '../src/terminal/wait.ts'

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

/** What happens at stop signals, without any being sent to the process. */
function stopping(actions: Partial<Pick<InteractiveRunOptions, 'drain' | 'cancel'>> = {}) {
  const said: string[] = []
  const exit = vi.spyOn(process, 'exit').mockImplementation(() => undefined as never)
  onTestFinished(() => exit.mockRestore())
  const drain = vi.fn<() => Promise<unknown>>().mockRejectedValue(new Error('told in the result'))
  const before = process.listeners('SIGINT').length
  const stop = stopOnSignal({ say: (line: string) => void said.push(line) } as never, { drain, ...actions })
  const receive = (signal: NodeJS.Signals): void => process.listeners(signal).at(-1)?.(signal)
  const listening = (): number => process.listeners('SIGINT').length - before
  return { said, exit, drain, stop, receive, listening }
}

describe('a stop signal', () => {
  it.each(['SIGINT', 'SIGTERM'] as const)(
    '%s brings the run to rest, and the second one ends the process',
    (signal) => {
      const { said, exit, drain, stop, receive, listening } = stopping()
      expect([stop.asked, listening()]).toEqual([false, 1])
      receive(signal)
      expect([stop.asked, drain.mock.calls.length, exit.mock.calls]).toEqual([true, 1, []])
      expect(said).toEqual([expect.stringMatching(/^\nStopping: /)])
      receive(signal)
      expect(exit.mock.calls).toEqual([[130]])
      stop.off()
      expect(listening()).toBe(0)
    },
  )

  it('of Ctrl-C ends a run that is to be cancelled, and others bring it to rest', () => {
    const cancel = vi.fn<() => Promise<unknown>>().mockResolvedValue(undefined)
    for (const [signal, cancelled] of [
      ['SIGINT', true],
      ['SIGTERM', false],
    ] as const) {
      const { said, drain, stop, receive } = stopping({ cancel })
      receive(signal)
      expect(said[0]).toMatch(cancelled ? /^\nCancelling: / : /^\nStopping: /)
      expect([cancel.mock.calls.length, drain.mock.calls.length]).toEqual([1, cancelled ? 0 : 1])
      stop.off()
    }
  })
})

/** How many timers keep this process alive. */
function timers(): number {
  return process.getActiveResourcesInfo().filter((type) => type === 'Timeout').length
}

/** The names of the warnings of this process, from now on. */
function warnings(): readonly string[] {
  const names: string[] = []
  const take = ({ name }: Error): void => void names.push(name)
  process.on('warning', take)
  onTestFinished(() => void process.off('warning', take))
  return names
}

describe('a process whose work waits for something outside', () => {
  it('is kept alive by one timer until the work has ended, or has failed', async () => {
    const before = timers()
    const { promise, resolve } = Promise.withResolvers<string>()
    const working = keepAlive(() => promise)
    expect(timers()).toBe(before + 1)
    resolve('done')
    expect(await working).toBe('done')
    expect(timers()).toBe(before)
    await expect(keepAlive(() => Promise.reject(new Error('lost')))).rejects.toThrow('lost')
    expect(timers()).toBe(before)
  })

  it('has a timer that goes off as seldom as any: of a longer time Node makes a millisecond, and warns', async () => {
    const names = warnings()
    await keepAlive(() => new Promise<void>((resolve) => void setImmediate(resolve)))
    expect(names).not.toContain('TimeoutOverflowWarning')
  })
})

const hour = 3_600_000
const monday = Date.UTC(2026, 10, 23)

it('a fork waited since it was forked: neither what it shares counts, nor the time until then', async () => {
  const ledger = memoryLedger()
  const buy = testTool({ name: 'buy', effect: 'write', check: () => ({ kind: 'ask' }) })
  const asking = { toolCalls: [{ name: 'buy', input: {} }] }
  const steps = [asking, asking, { text: 'Bought.' }]
  const at = (time: number) => {
    const clock = manualClock(time)
    const model = scriptedModel(steps)
    const agent = defineAgent({ name: 'buyer', instructions: 'Buy.', model, tools: [buy] })
    return { clock, agent, runtime: createRuntime({ ledger, agents: [agent], host: { clock } }) }
  }
  const waitedBy = async (runId: RunId, seq?: number): Promise<number> =>
    readWaitedTime(ledger, await foldTo(ledger, runId, seq))

  const { clock, agent, runtime } = at(monday)
  const run = runtime.run(agent, 'Buy tea.')
  const first = await run.result
  clock.advance(hour)
  await run.approve(first.pendingApprovals[0]!.toolCallId, { by: 'ann' })
  await run.result
  expect(await waitedBy(run.id)).toBe(hour)

  const next = at(monday + 24 * hour)
  const fork = next.runtime.fork(run.id, { atSeq: first.seq })
  const forked = await fork.result
  expect(await waitedBy(fork.id)).toBe(0)
  expect(await waitedBy(fork.id, first.seq)).toBe(0)
  next.clock.advance(2 * hour)
  await fork.approve(forked.pendingApprovals[0]!.toolCallId, { by: 'ann' })
  await fork.result
  expect(await waitedBy(fork.id)).toBe(2 * hour)

  const late = at(monday + 48 * hour)
  const again = late.runtime.fork(run.id, { atSeq: 2 })
  await again.result
  expect(await waitedBy(again.id)).toBe(0)
})
