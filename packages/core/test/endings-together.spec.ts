import { describe, expect, it } from 'vitest'
import { memoryLedger, type Ledger } from '@tallystick/core'
import { manualClock, testTool, type ManualClock } from '@tallystick/testkit'
import { checkedRun, stage } from './stage.ts'

/** A run of calls that run at once, as far as they may, and that the test ends. */
async function calls(count: number, { clock = manualClock(), maxConcurrency = count } = {}) {
  const memory = memoryLedger()
  /** Of each append with results, how many it holds. */
  const appends: number[] = []
  const append: Ledger['append'] = (runId, expected, events, options) => {
    const results = events.filter(({ type }) => type === 'tool_result').length
    if (results > 0) appends.push(results)
    return memory.append(runId, expected, events, options)
  }
  const ends: (() => void)[] = []
  const run = (): Promise<string> => new Promise((resolve) => void ends.push(() => resolve('seen')))
  const toolCalls = Array.from({ length: count }, (_, at) => ({ name: 'look', input: { at } }))
  const set = stage({
    ledger: { ...memory, append },
    clock,
    steps: [{ toolCalls }, { text: 'Done.' }],
    tools: [testTool({ name: 'look', effect: 'read', run })],
    limits: { maxConcurrency },
  })
  const running = set.start()
  const rest = async (): Promise<readonly number[]> => {
    for (let turn = 0; turn < 500; turn++) await Promise.resolve()
    return appends
  }
  /** So many calls end, and no time passes. */
  const end = (ended: number): Promise<readonly number[]> => {
    for (const each of ends.splice(0, ended)) each()
    return rest()
  }
  const pass = (ms: number): Promise<readonly number[]> => {
    clock.advance(ms)
    return rest()
  }
  while (ends.length < maxConcurrency) await Promise.resolve()
  await rest()
  return { set, running, end, pass, rest }
}

describe('the endings of many calls', () => {
  it('are recorded at once where they are the first, then together after a millisecond', async () => {
    const { set, running, end, pass } = await calls(40)
    expect(await end(1)).toEqual([1])
    expect(await end(1)).toEqual([1])
    expect(await end(2)).toEqual([1])
    expect(await pass(1)).toEqual([1, 3])
    // Nothing came meanwhile: the next one follows after a pause, and waits for nothing.
    await pass(1)
    expect(await end(1)).toEqual([1, 3, 1])
    expect(await end(4)).toEqual([1, 3, 1])
    expect(await pass(1)).toEqual([1, 3, 1, 4])
    // Fewer than many run now.
    expect(await end(1)).toEqual([1, 3, 1, 4, 1])
    expect(await end(1)).toEqual([1, 3, 1, 4, 1, 1])
    await end(40)
    expect(await set.waitUntilSettled(running.result)).toMatchObject({ reason: 'answered' })
    checkedRun(await set.eventsOf(running))
  })

  it('wait for nothing where few run, or others wait for their place', async () => {
    const many = await calls(33)
    await many.end(1)
    expect(await many.end(1)).toEqual([1])
    const few = await calls(32)
    await few.end(1)
    expect(await few.end(1)).toEqual([1, 1])
    const crowded = await calls(40, { maxConcurrency: 36 })
    await crowded.end(1)
    expect(await crowded.end(1)).toEqual([1, 1])
  })

  it('wait no longer than until all calls have ended, also where no time passes', async () => {
    const { set, running, end } = await calls(40)
    await end(1)
    expect(await end(38)).toEqual([1])
    expect(await end(1)).toEqual([1, 39])
    expect(await set.waitUntilSettled(running.result)).toMatchObject({ reason: 'answered' })
    checkedRun(await set.eventsOf(running))
  })

  it('wait no longer than for a command, and for a drain', async () => {
    const cancelled = await calls(40)
    await cancelled.end(1)
    await cancelled.end(1)
    const answer = cancelled.running.cancel('Enough.')
    expect((await cancelled.rest()).slice(0, 2)).toEqual([1, 1])
    expect(await answer).toEqual({ accepted: true })
    expect(await cancelled.set.waitUntilSettled(cancelled.running.result)).toMatchObject({
      reason: 'cancelled',
    })
    const drained = await calls(40)
    await drained.end(1)
    await drained.end(1)
    const drain = drained.set.runtime.drain(1_000)
    expect(await drained.rest()).toEqual([1, 1])
    await drained.set.waitUntilSettled(drain)
  })

  it('are recorded where the timer rings before the clock shows its time', async () => {
    const exact = manualClock()
    const early: ManualClock = Object.create(exact, {
      schedule: {
        value: (delayMs: number, callback: () => void) => exact.schedule(delayMs - 1, callback),
      },
    }) as ManualClock
    const { end, pass } = await calls(40, { clock: early })
    await end(1)
    expect(await end(2)).toEqual([1])
    expect(await pass(0)).toEqual([1, 2])
  })
})
