import { createRuntime, defineAgent, type RunId, type RuntimeEvent } from '@tallystick/core'
import { verifyLedger } from '@tallystick/ledger'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { sampleFacts, sampleMessage, sampleRunId, scriptedModel, stampFacts } from '@tallystick/testkit'
import BetterSqlite3, { type Database } from 'better-sqlite3'
import { describe, expect, it, onTestFinished } from 'vitest'
import { GroupCommit, Transactions, type Write } from '../src/sqlite/commit.ts'
import { readHead } from '../src/store/records.ts'
import { openStore } from './support/open-store.ts'
import { emptyLedgerFile, temporaryFile } from './support/temporary-folder.ts'
import { commitsInLog } from './support/wal-commits.ts'

const barrier = { durability: 'barrier' } as const
const runIds = Array.from({ length: 64 }, (_, index) => sampleRunId(index + 1))

function started(runId: RunId): readonly RuntimeEvent[] {
  return stampFacts(runId, [sampleFacts(runId).run_started])
}

/** The second event of a run, as large as it is asked to be. */
function followed(runId: RunId, bytes = 1): readonly RuntimeEvent[] {
  const fact = { ...sampleFacts(runId).cancel_requested, reason: 'x'.repeat(bytes) }
  return stampFacts(runId, [fact], { afterSeq: 1 })
}

function ledgerIn(path: string): ReturnType<typeof sqliteLedger> {
  const ledger = sqliteLedger(path)
  onTestFinished(() => ledger.close())
  return ledger
}

/** Lets the database grow by so many pages and no further, as on a disk that is nearly full. */
function leaveRoomFor(database: Database, pages: number): void {
  const count = database.pragma('page_count', { simple: true }) as number
  database.pragma(`max_page_count = ${count + pages}`)
}

describe('what many runs write at once', () => {
  it('shares one commit: first events, later ones, take-overs and commands alike', async () => {
    const path = temporaryFile()
    const ledger = ledgerIn(path)
    await ledger.head(sampleRunId(1))
    const commitsOf = async (work: (runId: RunId) => Promise<unknown>): Promise<number> => {
      const before = commitsInLog(path)
      await Promise.all(runIds.map(work))
      return commitsInLog(path) - before
    }
    const command = { type: 'steer', message: sampleMessage('x'), receipt: 'r' } as const
    expect([
      await commitsOf((runId) => ledger.append(runId, { expectedSeq: 0, epoch: 1 }, started(runId), barrier)),
      await commitsOf((runId) =>
        ledger.append(runId, { expectedSeq: 1, epoch: 1 }, followed(runId), barrier),
      ),
      await commitsOf((runId) => ledger.put(runId, { key: 'k', command, at: 1 })),
      await commitsOf((runId) => ledger.acquire(runId)),
    ]).toEqual([1, 1, 1, 1])
    expect((await Array.fromAsync(ledger.runs())).map(({ head }) => head)).toEqual(
      runIds.map(() => ({ seq: 2, epoch: 2 })),
    )
  })

  it('is committed in a fraction of the syncs that the runs would need one by one', async () => {
    const appendsOf = async (together: boolean): Promise<readonly [appends: number, commits: number]> => {
      const path = temporaryFile()
      const ledger = ledgerIn(path)
      let appends = 0
      const counting = {
        ...ledger,
        append: (...call: Parameters<typeof ledger.append>) => {
          appends++
          return ledger.append(...call)
        },
      }
      const steps = Array.from({ length: 32 }, () => ({ text: 'Well.' }))
      const agent = defineAgent({ name: 'a', instructions: 'Answer.', model: scriptedModel(steps) })
      const runtime = createRuntime({ ledger: counting, agents: [agent] })
      const runs = Array.from({ length: 32 }, () => () => runtime.run(agent, 'Well?').result)
      if (together) await Promise.all(runs.map((run) => run()))
      else for (const run of runs) await run()
      expect((await Array.fromAsync(verifyLedger(ledger))).at(-1)).toMatchObject({ ok: true, runs: 32 })
      return [appends, commitsInLog(path)]
    }
    const [alone, commitsAlone] = await appendsOf(false)
    const [appends, commits] = await appendsOf(true)
    expect(commitsAlone).toBeGreaterThanOrEqual(alone)
    expect(appends).toBe(alone)
    expect(commits).toBeLessThan(appends / 4)
  })

  it('is carried out in the order in which it came, so that what follows in a run may follow at once', async () => {
    const ledger = ledgerIn(emptyLedgerFile())
    const ordinals = [1, 2, 3]
    for (const runId of ordinals.map((ordinal) => sampleRunId(ordinal))) {
      await ledger.append(runId, { expectedSeq: 0, epoch: 1 }, started(runId), barrier)
    }
    const acknowledged: string[] = []
    const appends = ordinals.flatMap((ordinal) => {
      const runId = sampleRunId(ordinal)
      const fact = sampleFacts(runId).cancel_requested
      return stampFacts(runId, [fact, fact, fact], { afterSeq: 1 }).map(async (event) => {
        await ledger.append(runId, { expectedSeq: event.seq - 1, epoch: 1 }, [event], barrier)
        acknowledged.push(`${ordinal}.${event.seq}`)
      })
    })
    await Promise.all(appends)
    expect(acknowledged).toEqual(['1.2', '1.3', '1.4', '2.2', '2.3', '2.4', '3.2', '3.3', '3.4'])
  })

  it('keeps its own verdict each: a conflict undoes only the append that meets it', async () => {
    const ledger = ledgerIn(emptyLedgerFile())
    const [one, two, three, four] = [1, 2, 3, 4].map((ordinal) => sampleRunId(ordinal)) as [
      RunId,
      RunId,
      RunId,
      RunId,
    ]
    await ledger.append(two, { expectedSeq: 0, epoch: 1 }, started(two), barrier)
    const expected = { expectedSeq: 0, epoch: 1 }
    const twice = { ...sampleFacts(three).tool_started }
    const second = [...started(three), ...stampFacts(three, [twice, twice], { afterSeq: 1 })]
    const endings = await Promise.allSettled([
      ledger.append(one, expected, started(one), barrier),
      ledger.append(two, { expectedSeq: 7, epoch: 1 }, stampFacts(two, [twice], { afterSeq: 7 }), barrier),
      ledger.append(three, expected, second, barrier),
      ledger.acquire(sampleRunId(9)),
      ledger.append(four, expected, started(four), barrier),
    ])
    expect(
      endings.map((ending) => (ending.status === 'fulfilled' ? ending.value : ending.reason.code)),
    ).toEqual([
      { seq: 1, epoch: 1 },
      'ledger_conflict',
      'ledger_conflict',
      'run_not_found',
      { seq: 1, epoch: 1 },
    ])
    const found = (await Array.fromAsync(ledger.runs())).map(({ runId, head }) => [runId, head.seq])
    expect(found.toReversed()).toEqual([two, one, four].map((runId) => [runId, 1]))
    expect((await Array.fromAsync(ledger.find())).map(({ runId }) => runId)).toEqual([two, one, four])
  })

  it('recognises a lost acknowledgement among the others', async () => {
    const path = temporaryFile()
    const ledger = ledgerIn(path)
    const [lost, other] = [sampleRunId(1), sampleRunId(2)]
    await ledger.append(lost, { expectedSeq: 0, epoch: 1 }, started(lost), { durability: 'lazy' })
    const heads = await Promise.all(
      [other, lost].map((runId) =>
        ledger.append(runId, { expectedSeq: 0, epoch: 1 }, started(runId), barrier),
      ),
    )
    expect(heads).toEqual([1, 1].map((seq) => ({ seq, epoch: 1 })))
    expect((await Array.fromAsync(ledger.find())).map(({ runId }) => runId)).toEqual([lost, other])
  })

  it('is written although a process does nothing but read until it is', async () => {
    const ledger = ledgerIn(emptyLedgerFile())
    const append = ledger.append(
      sampleRunId(1),
      { expectedSeq: 0, epoch: 1 },
      started(sampleRunId(1)),
      barrier,
    )
    let looks = 0
    while ((await ledger.head(sampleRunId(1))) === undefined) looks++
    expect(looks).toBeLessThan(10)
    await append
  })

  it('is written before the ledger closes, even if its group could still grow', async () => {
    const path = temporaryFile()
    const ledger = sqliteLedger(path)
    await ledger.head(sampleRunId(1))
    const append = ledger.append(
      sampleRunId(1),
      { expectedSeq: 0, epoch: 1 },
      started(sampleRunId(1)),
      barrier,
    )
    // The append has reached the store, and its turn of the event loop has not ended.
    for (let turn = 0; turn < 10; turn++) await Promise.resolve()
    await ledger.close()
    expect(await append).toEqual({ seq: 1, epoch: 1 })
    expect(await ledgerIn(path).head(sampleRunId(1))).toEqual({ seq: 1, epoch: 1 })
  })
})

describe('a group that meets a full disk', () => {
  it.each([
    ['in a statement that is undone alone', 4],
    ['in one that ends the whole transaction', 1],
  ])('loses only the append that does not fit, %s', async (_where, events) => {
    const { database, store, append } = openStore()
    const [one, large, three] = [1, 2, 3].map((ordinal) => sampleRunId(ordinal)) as [RunId, RunId, RunId]
    for (const runId of [one, large, three]) {
      await append(runId, { expectedSeq: 0, epoch: 1 }, started(runId), barrier)
    }
    leaveRoomFor(database, 12)
    const fact = { ...sampleFacts(large).cancel_requested, reason: 'x'.repeat(100_000) }
    const tooLarge = stampFacts(
      large,
      Array.from({ length: events }, () => fact),
      { afterSeq: 1 },
    )
    const appendAll = (): Promise<PromiseSettledResult<unknown>[]> =>
      Promise.allSettled([
        append(one, { expectedSeq: 1, epoch: 1 }, followed(one), barrier),
        append(large, { expectedSeq: 1, epoch: 1 }, tooLarge, barrier),
        append(three, { expectedSeq: 1, epoch: 1 }, followed(three), barrier),
      ])
    const heads = async (): Promise<readonly unknown[]> =>
      Promise.all([one, large, three].map(async (runId) => (await readHead(store.database, runId))?.seq))
    expect((await appendAll()).map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
    expect(await heads()).toEqual([2, 1, 2])
    database.pragma('max_page_count = 1000000')
    // What stood already is recognised, and what did not fit now does.
    expect((await appendAll()).map(({ status }) => status)).toEqual(Array(3).fill('fulfilled'))
    expect(await heads()).toEqual([2, 1 + events, 2])
  })
})

/** Group commits in memory, and how many writes each commit held. */
function grouped() {
  const database = new BetterSqlite3(':memory:')
  onTestFinished(() => void database.close())
  const commits: number[] = []
  let writes = 0
  const group = new GroupCommit(
    new Transactions(database, {
      admit: () => {},
      committed: () => void commits.push(writes - commits.reduce((sum, count) => sum + count, 0)),
    }),
  )
  const submit = (asked: Partial<Write<unknown>> = {}): Promise<unknown> =>
    group.submit({ durability: 'lazy', events: 1, bytes: 1, work: () => ++writes, ...asked })
  return { database, group, commits, submit }
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
