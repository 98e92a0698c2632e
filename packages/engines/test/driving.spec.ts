import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, it } from 'vitest'
import { Driving } from '../src/driving.ts'

const never = new AbortController().signal

it('keeps nothing of a drive that has ended, as long as its worker lives', async () => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  setFlagsFromString('--no-expose-gc')
  const driving = new Driving()
  const run = async (): Promise<readonly WeakRef<object>[]> => {
    let seen: AbortSignal | undefined
    const result = await driving.run(new AbortController().signal, (signal) => {
      seen = signal
      return Promise.resolve({ status: 'done' })
    })
    return [new WeakRef(result), new WeakRef(seen!)]
  }
  const ended = await run()
  while (ended.some((each) => each.deref() !== undefined)) {
    await new Promise((resolve) => setImmediate(resolve))
    collect()
  }
  expect(driving.isStopping).toBe(false)
})

it('aborts each drive as the worker stops, and rejects it once the time for that is over', async () => {
  const driving = new Driving()
  const given = new AbortController()
  const signals: AbortSignal[] = []
  const drive = (signal: AbortSignal): Promise<never> => {
    signals.push(signal)
    return new Promise(() => {})
  }
  const one = driving.run(given.signal, drive)
  const other = driving.run(never, drive)
  given.abort()
  expect(signals.map(({ aborted }) => aborted)).toEqual([true, false])
  driving.stop()
  const late = driving.run(never, drive)
  expect(signals.map(({ aborted }) => aborted)).toEqual([true, true, true])
  driving.giveUp()
  const all = [one, other, late, driving.run(never, drive)]
  await Promise.all(all.map((each) => expect(each).rejects.toThrow('The time to stop is over.')))
  expect(signals).toHaveLength(3)
})
