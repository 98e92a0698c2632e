import { describe, expect, it } from 'vitest'
import { runInLanes } from '../verify/run-in-lanes.ts'
import { steps } from '../verify/step.ts'

interface Step {
  readonly name: string
  readonly after?: readonly string[]
}

/** Runs steps that end one by one, the last that began first, and returns what happened. */
async function course(given: readonly Step[], lanes: number): Promise<readonly string[]> {
  const seen: string[] = []
  const open: (() => void)[] = []
  const all = runInLanes(given, lanes, async ({ name }) => {
    seen.push(`begin ${name}`)
    await new Promise<void>((resolve) => open.push(resolve))
    seen.push(`end ${name}`)
  })
  for (let ended = 0; ended < given.length; ended++) {
    open.pop()?.()
    await new Promise((resolve) => void setImmediate(resolve))
  }
  await all
  return seen
}

describe('runInLanes', () => {
  it('runs as many at a time as there are lanes, in their order', async () => {
    const seen = await course([{ name: 'a' }, { name: 'b' }, { name: 'c' }], 2)
    expect(seen).toEqual(['begin a', 'begin b', 'end b', 'begin c', 'end c', 'end a'])
  })

  it('lets a step wait for those that it names, and others go first', async () => {
    const seen = await course([{ name: 'a' }, { name: 'b', after: ['a'] }, { name: 'c' }], 2)
    expect(seen).toEqual(['begin a', 'begin c', 'end c', 'end a', 'begin b', 'end b'])
  })

  it('does not wait for a step that is left out', async () => {
    expect(await course([{ name: 'b', after: ['a'] }], 2)).toEqual(['begin b', 'end b'])
  })

  it('rejects where steps wait for each other, and where one throws', async () => {
    const circle = [
      { name: 'a', after: ['b'] },
      { name: 'b', after: ['a'] },
    ]
    await expect(runInLanes(circle, 2, async () => {})).rejects.toThrow('wait for each other: a, b')
    const failing = runInLanes([{ name: 'a' }, { name: 'b' }], 1, () => Promise.reject(new Error('no room')))
    await expect(failing).rejects.toThrow('no room')
  })
})

describe('the steps of verify', () => {
  it('wait for steps that there are', () => {
    const names = steps.map(({ name }) => name)
    expect(steps.flatMap(({ after = [] }) => after).filter((name) => !names.includes(name))).toEqual([])
  })
})
