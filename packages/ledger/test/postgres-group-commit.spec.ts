import { describe, expect, it } from 'vitest'
import { GroupCommit, type Queued } from '../src/postgres/append.ts'

interface Item extends Queued {
  readonly name: string
}

function item(
  name: string,
  runId = name,
  size: { readonly events?: number; readonly bytes?: number } = {},
): Item {
  return { name, runId, events: 1, bytes: 10, ...size }
}

/** A store whose commits end when the test says so. */
function store(lanes: number) {
  const groups: string[][] = []
  const ends: ((error?: Error) => void)[] = []
  const commit = new GroupCommit<Item, string>(lanes, (group) => {
    groups.push(group.map(({ name }) => name))
    return new Promise((resolve, reject) => {
      ends.push((error) => (error ? reject(error) : resolve(group.map(({ name }) => `${name} stands`))))
    })
  })
  /** Ends the commit of that place, and lets what follows begin. */
  const end = async (index: number, error?: Error): Promise<void> => {
    ends[index]?.(error)
    await new Promise((resolve) => void setImmediate(resolve))
  }
  return { groups, commit, end }
}

describe('appends that share commits', () => {
  it('go at once while a lane is free, and together when none was', async () => {
    const { groups, commit, end } = store(2)
    const results = ['a', 'b', 'c', 'd', 'e'].map((name) => commit.submit(item(name)))
    expect(groups).toEqual([['a'], ['b']])
    await end(0)
    expect(groups).toEqual([['a'], ['b'], ['c', 'd', 'e']])
    await end(1)
    await end(2)
    expect(await Promise.all(results)).toEqual(['a', 'b', 'c', 'd', 'e'].map((name) => `${name} stands`))
  })

  it('of one run go one after the other, in their order, while others pass', async () => {
    const { groups, commit, end } = store(2)
    const results = [
      ['a1', 'a'],
      ['a2', 'a'],
      ['a3', 'a'],
      ['b1', 'b'],
    ].map(([name = '', runId]) => commit.submit(item(name, runId)))
    expect(groups).toEqual([['a1'], ['b1']])
    await end(1)
    expect(groups).toEqual([['a1'], ['b1']])
    await end(0)
    expect(groups.slice(2)).toEqual([['a2']])
    await end(2)
    expect(groups.slice(3)).toEqual([['a3']])
    await end(3)
    expect(await Promise.all(results)).toEqual(['a1 stands', 'a2 stands', 'a3 stands', 'b1 stands'])
  })

  it('are no more to a group than it may hold, save one that is larger alone', async () => {
    const { groups, commit, end } = store(1)
    const sizes = [{}, { bytes: 100_000_000 }, { events: 1_000 }, { events: 20 }, { events: 20 }, {}]
    const results = sizes.map((size, index) => commit.submit(item(`${index}`, undefined, size)))
    await end(0)
    await end(1)
    await end(2)
    await end(3)
    expect(groups).toEqual([['0'], ['1'], ['2', '3', '5'], ['4']])
    expect(await Promise.all(results)).toHaveLength(sizes.length)
    const many = Array.from({ length: 100 }, (_, index) => commit.submit(item(`many ${index}`)))
    for (let index = 4; index < 8; index++) await end(index)
    expect(groups.slice(4).map((group) => group.length)).toEqual([1, 64, 35])
    await Promise.all(many)
  })

  it('are asked one by one where a group fails, so that only the one at fault hears of it', async () => {
    const { groups, commit, end } = store(1)
    const results = ['a', 'b', 'c', 'd'].map((name) => commit.submit(item(name)))
    const outcomes = Promise.allSettled(results)
    await end(0)
    await end(1, new Error('one of us'))
    await end(2)
    await end(3, new Error('it was c'))
    await end(4)
    expect(groups).toEqual([['a'], ['b', 'c', 'd'], ['b'], ['c'], ['d']])
    expect(
      (await outcomes).map((outcome) =>
        outcome.status === 'fulfilled' ? outcome.value : String(outcome.reason),
      ),
    ).toEqual(['a stands', 'b stands', 'Error: it was c', 'd stands'])
  })
})
