import Database from 'better-sqlite3'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { GroupCommit, Transactions, type AroundCommits } from '../src/sqlite/commit.ts'

/** A database with one table, and the numbers that are in it. */
function opened(around?: AroundCommits) {
  const database = new Database(':memory:')
  onTestFinished(() => void database.close())
  database.exec('create table numbers (n integer)')
  const insert = database.prepare<[number]>('insert into numbers values (?)')
  const add = (n: number) => (): string => {
    insert.run(n)
    return `added ${n}`
  }
  const numbers = (): readonly number[] =>
    database.prepare<[], number>('select n from numbers order by n').pluck().all()
  const synchronous = (): unknown => database.pragma('synchronous', { simple: true })
  const transactions = new Transactions(database, around)
  const group = new GroupCommit(transactions)
  /** What works come to that are done at once: their values, or the messages of their errors. */
  const together = async (...works: readonly (() => unknown)[]): Promise<readonly unknown[]> => {
    const writes = works.map((work) => group.submit({ durability: 'barrier', events: 1, bytes: 1, work }))
    const endings = await Promise.allSettled(writes)
    return endings.map((ending) => (ending.status === 'fulfilled' ? ending.value : ending.reason.message))
  }
  return { database, add, numbers, synchronous, transactions, together }
}

/** Does some work, and fails. */
const failing =
  (work: () => unknown, error = new Error('refused')) =>
  (): never => {
    work()
    throw error
  }

describe('works in one transaction', () => {
  it('are committed but for those that fail, whose writes are undone', async () => {
    const { together, add, numbers, database } = opened()
    expect(await together(add(1), failing(add(2)), add(3))).toEqual(['added 1', 'refused', 'added 3'])
    expect([numbers(), database.inTransaction]).toEqual([[1, 3], false])
  })

  it('are done again without one whose failure ends the transaction, as a full disk does', async () => {
    const { together, add, numbers, database } = opened()
    let tries = 0
    const ending = (): void => {
      if (++tries > 5) throw new Error('It is tried again and again.')
      database.exec('rollback')
    }
    const full = failing(ending, new Error('The disk is full.'))
    expect(await together(add(1), full, add(3))).toEqual(['added 1', 'The disk is full.', 'added 3'])
    // Once with the others, and once alone.
    expect([numbers(), tries]).toEqual([[1, 3], 2])
  })

  it('are each done once where none fails, and again where another one has failed', async () => {
    const { together, add, numbers } = opened()
    const called: number[] = []
    const counted = (n: number) => (): string => {
      called.push(n)
      return add(n)()
    }
    await together(counted(1), counted(2))
    expect([numbers(), called]).toEqual([
      [1, 2],
      [1, 2],
    ])
    called.length = 0
    await together(counted(3), failing(counted(4)), counted(5))
    expect([numbers(), called]).toEqual([
      [1, 2, 3, 5],
      [3, 4, 3, 4, 5],
    ])
  })

  it('are not done again where the commit itself fails', async () => {
    const { together, add, numbers, database } = opened()
    database.exec('create table held (n integer references numbers (n) deferrable initially deferred)')
    database.exec('create unique index numbers_n on numbers (n)')
    let times = 0
    const stray = (): void => {
      times++
      database.exec('insert into held values (9)')
    }
    expect(await together(add(1), stray)).toEqual(Array(2).fill('FOREIGN KEY constraint failed'))
    expect([numbers(), times]).toEqual([[], 1])
  })

  it('are not done where the hook before them throws', async () => {
    const { together, add, numbers } = opened({
      admit: () => {
        throw new Error('not the writer')
      },
      committed: () => {},
    })
    expect(await together(add(1))).toEqual(['not the writer'])
    expect(numbers()).toEqual([])
  })
})

describe('a transaction', () => {
  it('is undone where its work throws, and the next one begins anew', () => {
    const { transactions, add, numbers, database } = opened()
    expect(() => transactions.transact('barrier', failing(add(1)))).toThrow('refused')
    expect(() =>
      transactions.transact(
        'barrier',
        failing(() => database.exec('rollback')),
      ),
    ).toThrow('refused')
    expect(transactions.transact('barrier', add(2))).toBe('added 2')
    expect([numbers(), database.inTransaction]).toEqual([[2], false])
  })

  it('calls the hooks before it and after its commit, and throws where the later one does', () => {
    const calls: string[] = []
    const { transactions, add, numbers } = opened({
      admit: () => calls.push('admit'),
      committed: () => {
        calls.push('committed')
        if (calls.length > 2) throw new Error('relieved')
      },
    })
    transactions.transact('lazy', add(1))
    expect(() => transactions.transact('lazy', add(2))).toThrow('relieved')
    expect(() => transactions.transact('lazy', failing(add(3)))).toThrow('refused')
    expect(calls).toEqual(['admit', 'committed', 'admit', 'committed', 'admit'])
    expect(numbers()).toEqual([1, 2])
  })

  it('is synced by a barrier, which hardens the lazy ones before it', () => {
    const { transactions, add, synchronous, database } = opened()
    const exec = vi.spyOn(database, 'exec')
    const [full, normal] = [2, 1]
    const after = (durability: 'barrier' | 'lazy', work: () => unknown): readonly unknown[] => {
      transactions.transact(durability, work)
      return [synchronous(), transactions.hasUnsynced]
    }
    expect(transactions.hasUnsynced).toBe(false)
    expect(after('lazy', add(1))).toEqual([normal, true])
    expect(after('lazy', () => {})).toEqual([normal, true])
    // A commit that writes nothing would sync nothing, so a barrier writes the first page again.
    expect(after('barrier', () => {})).toEqual([full, false])
    expect(after('lazy', add(3))).toEqual([normal, true])
    expect(after('barrier', add(2))).toEqual([full, false])
    expect(after('barrier', () => {})).toEqual([full, false])
    // That it wrote nothing is not looked at: the next barrier that writes hardens what there is.
    expect(after('lazy', () => {})).toEqual([normal, true])
    // The setting is made where it changes, and not for each transaction.
    const made = exec.mock.calls.map(([text]) => text).filter((text) => text.startsWith('pragma'))
    const levels = ['normal', 'full', 'normal', 'full', 'normal']
    expect(made).toEqual(levels.map((level) => `pragma synchronous = ${level}`))
  })
})
