import BetterSqlite3 from 'better-sqlite3'
import { describe, expect, it, onTestFinished } from 'vitest'
import { GroupCommit, type Write } from '../src/sqlite/commit.ts'
import { Transactions } from '../src/sqlite/commit.ts'

/** Group commits in memory, and how many writes each commit held. */
function grouped() {
  const database = new BetterSqlite3(':memory:')
  onTestFinished(() => void database.close())
  const commits: number[] = []
  const written: number[] = []
  let writes = 0
  const group = new GroupCommit(
    new Transactions(database, {
      admit: () => {},
      committed(_durability, bytes) {
        commits.push(writes - commits.reduce((sum, count) => sum + count, 0))
        written.push(bytes)
      },
    }),
  )
  const submit = (asked: Partial<Write<unknown>> = {}): Promise<unknown> =>
    group.submit({ durability: 'lazy', events: 1, bytes: 1, work: () => ++writes, ...asked })
  return { database, group, commits, written, submit }
}

const mebibyte = 1024 * 1024
const times = <T>(count: number, value: T): readonly T[] => Array.from({ length: count }, () => value)

describe('one commit of what many runs write', () => {
  it.each<readonly [string, readonly Partial<Write<unknown>>[], readonly number[]]>([
    ['256 writes', times(256, {}), [256]],
    ['no more writes', times(513, {}), [256, 256, 1]],
    ['2048 events', times(2, { events: 1024 }), [2]],
    ['no more events', [{ events: 1024 }, { events: 1025 }, { events: 1023 }], [1, 2]],
    ['8 MiB', times(2, { bytes: 4 * mebibyte }), [2]],
    ['no more bytes', [{ bytes: 4 * mebibyte }, { bytes: 4 * mebibyte + 1 }, { bytes: 1 }], [1, 2]],
    ['one write that is larger, alone', [{}, { events: 5000, bytes: 9 * mebibyte }, {}], [1, 1, 1]],
  ])('holds %s', async (_name, asked, expected) => {
    const { group, commits, submit } = grouped()
    const writes = await Promise.all(asked.map(submit))
    expect(commits).toEqual(expected)
    expect(writes).toEqual(asked.map((_write, index) => index + 1))
    expect(group.turn).toBeUndefined()
  })

  it('is carried out at once where it is asked for, however many groups wait', async () => {
    const { group, commits, submit } = grouped()
    const writes = times(258, {}).map(submit)
    group.flush()
    expect(commits).toEqual([256, 2])
    const [next] = [submit()]
    group.flush()
    expect(commits).toEqual([256, 2, 1])
    await group.turn
    expect(commits).toEqual([256, 2, 1])
    expect(await Promise.all([...writes, next])).toHaveLength(259)
  })

  it.each([
    [['lazy', 'lazy'], 1],
    [['lazy', 'barrier', 'lazy'], 2],
    [['lazy'], 1],
    [['barrier'], 2],
  ] as const)('of writes that are %j has the level %d', async (durabilities, level) => {
    const { database, submit } = grouped()
    const work = (): unknown => database.pragma('synchronous', { simple: true })
    const seen = await Promise.all(durabilities.map((durability) => submit({ durability, work })))
    expect(seen).toEqual(durabilities.map(() => level))
  })

  it.each<readonly [string, readonly (number | undefined)[], number]>([
    ['what one write says', [100], 65_536 + 100],
    ['what all of them say', [100, 7, 0], 3 * 65_536 + 107],
    ['nothing where one does not say it', [100, undefined], Infinity],
    ['nothing where the only one does not say it', [undefined], Infinity],
  ])('writes at most %s, and some pages each', async (_name, most, expected) => {
    const { written, submit } = grouped()
    await Promise.all(most.map((mostBytes) => submit(mostBytes === undefined ? {} : { mostBytes })))
    expect(written).toEqual([expected])
  })

  it('is made for what a write refused alone, and for none that had no company', async () => {
    const { commits, submit } = grouped()
    const work = (): never => {
      throw new Error('refused')
    }
    await expect(submit({ work })).rejects.toThrow('refused')
    expect(commits).toEqual([])
    const endings = await Promise.allSettled([submit({ work }), submit(), submit({ work })])
    expect(endings.map(({ status }) => status)).toEqual(['rejected', 'fulfilled', 'rejected'])
    expect(commits).toEqual([1])
  })
})

describe('a transaction', () => {
  it('sets how it is synced only where that changes', () => {
    const { database } = grouped()
    const asked: string[] = []
    const transactions = new Transactions(
      new Proxy(database, {
        get(target, name) {
          if (name === 'exec') return (source: string) => (asked.push(source), target.exec(source))
          const value = Reflect.get(target, name, target) as unknown
          return typeof value === 'function' ? (value as () => unknown).bind(target) : value
        },
      }),
    )
    for (const durability of ['barrier', 'lazy', 'lazy', 'barrier', 'barrier'] as const) {
      transactions.transact(durability, () => undefined)
    }
    expect(asked).toEqual(['pragma synchronous = normal', 'pragma synchronous = full'])
  })
})
