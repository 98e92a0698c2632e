import { LedgerConflictError, LedgerDamagedError, type RunId, type RuntimeEvent } from '@tallystick/core'
import { sampleFacts, sampleRunId, stampFacts } from '@tallystick/testkit'
import { verifyLedger } from '@tallystick/ledger'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { describe, expect, it, onTestFinished } from 'vitest'
import { withRaw } from './support/raw-database.ts'
import { emptyLedgerFile } from './support/temporary-folder.ts'

const barrier = { durability: 'barrier' } as const
const [run, other] = [sampleRunId(1), sampleRunId(2)]

interface After {
  readonly afterSeq: number
  readonly epoch?: number
  /** What tells the event from others at its place. */
  readonly reason?: string
}

function eventsOf(runId: RunId, { afterSeq, epoch = 1, reason = '' }: After): readonly RuntimeEvent[] {
  const { run_started, cancel_requested } = sampleFacts(runId)
  const fact = afterSeq === 0 ? run_started : { ...cancel_requested, turn: 0, reason }
  return stampFacts(runId, [fact], { afterSeq, epoch })
}

function opened(path: string = emptyLedgerFile()) {
  const ledger = sqliteLedger(path, {})
  onTestFinished(() => ledger.close())
  const append = (runId: RunId, after: After): Promise<unknown> => {
    const { afterSeq: expectedSeq, epoch = 1 } = after
    return ledger.append(runId, { expectedSeq, epoch }, eventsOf(runId, after), barrier)
  }
  /** What an audit finds wrong. */
  const damage = async (): Promise<readonly unknown[]> => {
    const verdicts = await Array.fromAsync(verifyLedger(ledger))
    return verdicts.filter(({ ok }) => !ok)
  }
  return { ledger, path, append, damage }
}

describe('an append after those of another connection', () => {
  it('follows the head that it finds, and gives out places that are free', async () => {
    const mine = opened()
    const theirs = opened(mine.path)
    await mine.append(run, { afterSeq: 0 })
    await theirs.append(run, { afterSeq: 1 })
    await theirs.append(other, { afterSeq: 0 })
    await expect(mine.append(run, { afterSeq: 1, reason: 'mine' })).rejects.toThrow(LedgerConflictError)
    await mine.append(run, { afterSeq: 2 })
    await mine.append(other, { afterSeq: 1 })
    await theirs.append(run, { afterSeq: 3 })
    expect(await mine.damage()).toEqual([])
  })

  it('is refused where the other one took the run over', async () => {
    const mine = opened()
    const theirs = opened(mine.path)
    await mine.append(run, { afterSeq: 0 })
    await theirs.ledger.acquire(run)
    await expect(mine.append(run, { afterSeq: 1 })).rejects.toMatchObject({ kind: 'epoch' })
  })

  it('meets a row that was damaged meanwhile', async () => {
    const { append, path } = opened()
    await append(run, { afterSeq: 0 })
    withRaw(path, (database) => {
      database.exec('drop trigger run_advances')
      database.prepare('update run set session_id = null').run()
    })
    await expect(append(run, { afterSeq: 1 })).rejects.toThrow(LedgerDamagedError)
  })
})

describe('an append after others of its own connection', () => {
  it('follows what is recorded, where one of the same commit was refused and undone', async () => {
    const { append, damage } = opened()
    await append(run, { afterSeq: 0 })
    const [first, second, refused] = await Promise.allSettled([
      append(run, { afterSeq: 1 }),
      append(other, { afterSeq: 0 }),
      append(run, { afterSeq: 1, reason: 'second' }),
    ])
    expect([first.status, second.status, refused.status]).toEqual(['fulfilled', 'fulfilled', 'rejected'])
    const results = await Promise.allSettled([
      append(run, { afterSeq: 2 }),
      append(other, { afterSeq: 5 }),
      append(other, { afterSeq: 1 }),
    ])
    expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
    await append(run, { afterSeq: 3 })
    await append(other, { afterSeq: 2 })
    expect(await damage()).toEqual([])
  })

  it('is signed with the epoch that was raised', async () => {
    const { ledger, append } = opened()
    await append(run, { afterSeq: 0 })
    const { epoch } = await ledger.acquire(run)
    await expect(append(run, { afterSeq: 1 })).rejects.toMatchObject({ kind: 'epoch' })
    await append(run, { afterSeq: 1, epoch })
    await expect(append(run, { afterSeq: 1 })).rejects.toMatchObject({ kind: 'epoch' })
  })
})
