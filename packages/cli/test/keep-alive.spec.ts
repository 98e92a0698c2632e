import { describe, expect, it, onTestFinished } from 'vitest'
import { keepAlive } from '../src/terminal/wait.ts'

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
