import { rmSync, truncateSync, writeFileSync } from 'node:fs'
import { manualClock } from '@tallystick/testkit'
import type { Database } from 'better-sqlite3'
import { describe, expect, it } from 'vitest'
import { maxWalBytesUnlessGiven, WalCheckpointer } from '../src/sqlite/log.ts'
import { temporaryFile } from './support/temporary-folder.ts'

const leastBytes = 1_600

/** The attempt of a moment of rest, after which the log stays, to be written over from its start. */
const anew = 'restart 0'

/** A checkpointer on a connection that only keeps what is asked of it, and a log as long as a test makes it. */
function kept(maxBytes: number = leastBytes) {
  const path = temporaryFile()
  writeFileSync(path, '')
  const log = `${path}-wal`
  const answers = { inTransaction: false, isRead: false, fails: false }
  /** How long each attempt would have kept a writer waiting, in milliseconds; with the mode where the log stays. */
  const attempts: (number | string)[] = []
  let timeout = 5_000
  const attempted = (source: string): boolean => {
    const isCut = source === 'wal_checkpoint(truncate)'
    expect(['wal_checkpoint(truncate)', 'wal_checkpoint(restart)']).toContain(source)
    attempts.push(isCut ? timeout : `restart ${timeout}`)
    if (answers.fails) throw new Error('disk I/O error')
    if (isCut && !answers.isRead) truncateSync(log, 0)
    return !answers.isRead
  }
  const database = {
    get inTransaction() {
      return answers.inTransaction
    },
    pragma(source: string, { simple = false } = {}): unknown {
      if (source === 'busy_timeout') return simple ? timeout : [{ timeout }]
      const [, given] = /^busy_timeout = (\d+)$/.exec(source) ?? []
      if (given !== undefined) {
        timeout = Number(given)
        return []
      }
      return [{ busy: attempted(source) ? 0 : 1 }]
    },
  }
  const clock = manualClock()
  const keeper = new WalCheckpointer(database as unknown as Database, { path, maxBytes, clock })
  /** A commit after which the log is so long; returns the waits of the attempts that it makes. */
  const committed = (bytes: number): readonly (number | string)[] => {
    writeFileSync(log, Buffer.alloc(bytes))
    keeper.committed()
    return attempts.splice(0)
  }
  /** Time that passes; returns the waits of the attempts meanwhile. */
  const passed = (ms: number): readonly (number | string)[] => {
    clock.advance(ms)
    return attempts.splice(0)
  }
  return { log, answers, clock, keeper, committed, passed, timeout: () => timeout }
}

describe('a log that is too long', () => {
  it('is 64 MiB long, unless another size is given', () => {
    expect(maxWalBytesUnlessGiven).toBe(67_108_864)
  })

  it('keeps appends waiting again when it has grown by a quarter of its limit, and is tried at each sixteenth', () => {
    const { answers, committed, timeout } = kept()
    answers.isRead = true
    const sizes = [1_600, 1_601, 1_701, 1_702, 1_802, 2_001, 2_101, 2_102]
    expect(sizes.map((bytes) => committed(bytes))).toEqual([[], [100], [], [0], [], [0], [], [100]])
    expect(timeout()).toBe(5_000)
  })

  it('has its whole limit again once it was cut: after growth, and after a moment of rest', () => {
    const { answers, committed, passed } = kept()
    const grow = (): unknown => {
      answers.isRead = true
      return [committed(1_600), committed(1_601), committed(1_650)]
    }
    const afresh = [[], [100], []]
    expect(grow()).toEqual(afresh)
    answers.isRead = false
    expect(committed(1_702)).toEqual([0])
    expect(grow()).toEqual(afresh)
    answers.isRead = false
    expect(passed(60_000)).toEqual([0])
    expect(grow()).toEqual(afresh)
  })

  it.each<readonly [string, 'inTransaction' | 'fails', readonly number[]]>([
    ['while its connection has a transaction open', 'inTransaction', []],
    ['where the disk fails', 'fails', [100]],
  ])('stays as it is %s, fails no commit, and waits to grow further', (_name, answer, attempts) => {
    const { answers, committed, passed, timeout } = kept()
    answers[answer] = true
    expect([committed(1_601), committed(1_701)]).toEqual([attempts, []])
    answers[answer] = false
    expect(committed(1_702)).toEqual([0])
    expect(timeout()).toBe(5_000)
    answers[answer] = true
    committed(1)
    passed(60_000)
    answers[answer] = false
    expect(passed(60_000)).toEqual([anew])
  })
})

describe('a moment of rest', () => {
  it.each([1, 400, 59_999])('begins anew with a commit %d ms later, and comes once', (later) => {
    const { clock, committed, passed } = kept()
    committed(1)
    passed(later)
    committed(2)
    expect([passed(59_999), passed(1), passed(600_000)]).toEqual([[], [anew], []])
    expect(clock.pending).toBe(0)
  })

  it('comes again after each minute, as long as a reader prevents that the log begins anew', () => {
    const { answers, clock, committed, passed } = kept()
    answers.isRead = true
    committed(1)
    expect([passed(60_000), passed(59_999), passed(1), passed(59_999)]).toEqual([[anew], [], [anew], []])
    answers.isRead = false
    expect([passed(1), clock.pending]).toEqual([[anew], 0])
  })

  it.each<readonly [number, number, unknown]>([
    [1_600, 1_600, anew],
    [1_600, 1_601, 0],
    [maxWalBytesUnlessGiven, 8_388_608, anew],
    [maxWalBytesUnlessGiven, 8_388_609, 0],
  ])(
    'of a log that may have %d bytes and has %d lets it stay as it is, or cuts it',
    (limit, bytes, attempt) => {
      const { answers, committed, passed } = kept(limit)
      // It grew while it could not be cut.
      answers.inTransaction = true
      committed(bytes)
      answers.inTransaction = false
      expect(passed(60_000)).toEqual([attempt])
    },
  )

  it('asks nothing of a log that is empty, or not there', () => {
    const { log, clock, committed, keeper, passed } = kept()
    expect([committed(0), passed(60_000)]).toEqual([[], []])
    rmSync(log)
    keeper.committed()
    expect([passed(60_000), clock.pending]).toEqual([[], 0])
  })

  it('does not come after the checkpointer is closed, with or without a commit before', () => {
    const { clock, committed, keeper, passed } = kept()
    keeper.close()
    committed(1)
    keeper.close()
    expect([passed(300_000), clock.pending]).toEqual([[], 0])
  })
})

describe('a log that holds what was taken away', () => {
  it('is cut a second after the commit, also where a minute had begun, and then rests for minutes again', () => {
    const { committed, keeper, passed } = kept()
    committed(1)
    passed(500)
    keeper.tookAway()
    expect([committed(2), passed(999), passed(1)]).toEqual([[], [], [0]])
    expect([committed(1), passed(59_999), passed(1)]).toEqual([[], [], [anew]])
  })

  it('is tried again after each second, as long as a reader prevents the cut', () => {
    const { answers, clock, committed, keeper, passed } = kept()
    answers.isRead = true
    keeper.tookAway()
    committed(1)
    expect([passed(1_000), passed(999), passed(1)]).toEqual([[0], [], [0]])
    answers.isRead = false
    expect([passed(1_000), clock.pending]).toEqual([[0], 0])
  })

  it('is cut once, however much is taken away, and though the transaction that took it was undone', () => {
    const { log, clock, keeper, passed } = kept()
    writeFileSync(log, Buffer.alloc(1))
    keeper.tookAway()
    keeper.tookAway()
    expect([clock.pending, passed(1_000), clock.pending]).toEqual([1, [0], 0])
  })
})
