import { LedgerConflictError, LedgerDamagedError, type RunId, type RuntimeEvent } from '@tallystick/core'
import { everyFact, sampleRunId, stamped } from '@tallystick/testkit'
import { verifyLedger } from '@tallystick/ledger'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { describe, expect, it, onTestFinished } from 'vitest'
import { genesisHash, type RunCell } from '../src/format/chain.ts'
import { KnownHeads } from '../src/sqlite/commit.ts'
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
  const { run_started, cancel_requested } = everyFact(runId)
  const fact = afterSeq === 0 ? run_started : { ...cancel_requested, turn: 0, reason }
  return stamped(runId, [fact], { afterSeq, epoch })
}

function cellOf(run_id: string, head_seq: number): RunCell {
  const rest = { session_id: null, session_place: null, ended_at: null, history: null }
  return { run_id, pos: 1, head_seq, head_hash: genesisHash, epoch: 1, ...rest }
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

describe('known heads', () => {
  it('are known until another version is found, or something was undone', () => {
    const known = new KnownHeads()
    known.begun(1)
    known.wrote(cellOf(run, 3), 8)
    known.begun(1)
    expect([known.get(run), known.lastPlace]).toEqual([cellOf(run, 3), 8])
    known.begun(2)
    expect([known.get(run), known.lastPlace]).toEqual([undefined, undefined])
    known.wrote(cellOf(run, 4), 9)
    known.undone()
    expect([known.get(run), known.lastPlace]).toEqual([undefined, undefined])
  })

  it('are forgotten of one run, and what is known of others stays', () => {
    const known = new KnownHeads()
    known.wrote(cellOf(run, 1), 1)
    known.wrote(cellOf(other, 2), 3)
    known.forget(run)
    expect([known.get(run), known.get(other)?.head_seq, known.lastPlace]).toEqual([undefined, 2, 3])
  })

  it('are those of the 4,096 runs that were written last', () => {
    const known = new KnownHeads()
    for (let index = 0; index < 4_096; index++) known.wrote(cellOf(`run ${index}`, 1), index)
    known.wrote(cellOf('run 0', 2), 4_096)
    known.wrote(cellOf('one more', 1), 4_097)
    expect(['run 0', 'run 1', 'run 2', 'one more'].map((name) => known.get(name)?.head_seq)).toEqual([
      2,
      undefined,
      1,
      1,
    ])
  })
})
