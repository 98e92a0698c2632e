import { execFileSync } from 'node:child_process'
import { existsSync, renameSync, rmSync, statSync, truncateSync } from 'node:fs'
import { LedgerDamagedError, LedgerUnavailableError, type Ledger, type RuntimeEvent } from '@tallystick/core'
import { type Head } from '@tallystick/core/vocabulary'
import { sampleFacts, sampleMessage, sampleRunId, stampFacts } from '@tallystick/testkit'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { describe, expect, it, onTestFinished } from 'vitest'
import { auditStore } from '../src/verify/store-audit.ts'
import { storeOf } from './support/lent-store.ts'
import { openStore } from './support/open-store.ts'
import { ledgerChild } from './support/child-process.ts'
import { temporaryFile } from './support/temporary-folder.ts'

const run = sampleRunId(1)
const facts = sampleFacts(run)
const barrier = { durability: 'barrier' } as const

/** The event of the run after this many. */
function eventAt(seq: number, text = 'x'): readonly RuntimeEvent[] {
  const fact = seq === 0 ? facts.run_started : { ...facts.cancel_requested, reason: text }
  return stampFacts(run, [fact], { afterSeq: seq })
}

function appendAt(ledger: Ledger, seq: number, text?: string): Promise<Head> {
  return ledger.append(run, { expectedSeq: seq, epoch: 1 }, eventAt(seq, text), barrier)
}

async function started(path: string, events = 1): Promise<Ledger> {
  const ledger = sqliteLedger(path)
  onTestFinished(() => ledger.close().catch(() => undefined))
  for (let seq = 0; seq < events; seq++) await appendAt(ledger, seq)
  return ledger
}

function reopened(path: string): Ledger {
  const ledger = sqliteLedger(path)
  onTestFinished(() => ledger.close())
  return ledger
}

async function seqs(ledger: Ledger): Promise<readonly number[]> {
  return (await Array.fromAsync(ledger.read(run))).map(({ seq }) => seq)
}

/** The bytes of a file that other processes may have open. */
async function seqsInCopy(path: string): Promise<readonly number[]> {
  const copy = temporaryFile()
  // By another process, since closing the file in this one would drop the locks that SQLite has on it.
  execFileSync('cp', [path, copy])
  const ledger = sqliteLedger(copy)
  try {
    return await seqs(ledger)
  } finally {
    await ledger.close()
  }
}

describe('a disk that is full', () => {
  // Windows has no such limits.
  it.skipIf(process.platform === 'win32')(
    'refuses what does not fit, keeps what was acknowledged, and takes the rest when there is room',
    async () => {
      const path = temporaryFile()
      const said = await ledgerChild(['fill', path], { maxFileKiB: 4_096 }).ended()
      const refusals = said.filter((line) => typeof line === 'string')
      expect(refusals.length).toBeGreaterThan(0)
      for (const refusal of refusals) {
        expect(refusal).toMatch(
          /^LedgerUnavailableError: .*(The disk is full|The disk reports an error).*resume the run/,
        )
      }
      const heads = new Map<number, number>()
      for (const line of said as { readonly run?: number; readonly seq?: number }[]) {
        if (line.run !== undefined) heads.set(line.run, line.seq ?? 0)
      }
      const acknowledged = [...heads.values()].reduce((sum, seq) => sum + seq, 0)
      expect(acknowledged).toBeGreaterThan(100)
      // The process that met the full disk could read on, and closed its ledger.
      expect(said.at(-1)).toEqual({ read: acknowledged })
      const ledger = sqliteLedger(path)
      onTestFinished(() => ledger.close())
      for (const [ordinal, seq] of heads) {
        const runId = sampleRunId(ordinal)
        expect(await ledger.head(runId)).toEqual({ seq, epoch: 1 })
        const next = stampFacts(runId, [sampleFacts(runId).cancel_requested], { afterSeq: seq })
        await ledger.append(runId, { expectedSeq: seq, epoch: 1 }, next, barrier)
      }
      expect((await Array.fromAsync(ledger.find())).length).toBe(acknowledged + heads.size)
      expect((await auditStore(storeOf(ledger))).broken).toBeUndefined()
    },
  )
})

// On Windows a file that a process has open cannot be removed.
describe.skipIf(process.platform === 'win32')('a file that is taken away while the ledger is open', () => {
  it('is missed at the next append, which is not acknowledged; what was can still be read', async () => {
    const path = temporaryFile()
    const ledger = await started(path, 3)
    rmSync(path)
    for (const attempt of [1, 2]) {
      const refused = await appendAt(ledger, 3, `attempt ${attempt}`).catch((error: unknown) => error)
      expect(refused).toBeInstanceOf(LedgerUnavailableError)
      expect(String(refused)).toMatch(/runs\.db was removed, moved or replaced.*export it.*open it again/)
    }
    expect(await seqs(ledger)).toEqual([1, 2, 3])
    await expect(ledger.acquire(run)).rejects.toThrow(/was removed, moved or replaced/)
    const entry = {
      key: 'k',
      at: 1,
      command: { type: 'steer', message: sampleMessage('x'), receipt: 'r' },
    } as const
    await expect(ledger.put(run, entry)).rejects.toThrow(/was removed, moved or replaced/)
  })

  it('is missed where it goes while an append is under way, which is recognised when the file is back', async () => {
    const elsewhere = temporaryFile()
    const { path, database, append } = openStore()
    const appendAt = (seq: number): Promise<Head> =>
      append(run, { expectedSeq: seq, epoch: 1 }, eventAt(seq), barrier)
    await appendAt(0)
    // It goes after the look before the transaction.
    database.function('move', () => renameSync(path, elsewhere))
    database.exec('create temp trigger moves after insert on main.event begin select move(); end')
    await expect(appendAt(1)).rejects.toThrow(/was removed, moved or replaced/)
    database.exec('drop trigger moves')
    renameSync(elsewhere, path)
    expect(await appendAt(1)).toEqual({ seq: 2, epoch: 1 })
  })

  it('is missed too where another is in its place, which stays as it is', async () => {
    const [path, other] = [temporaryFile(), temporaryFile()]
    await (await started(other, 2)).close()
    const ledger = await started(path, 1)
    renameSync(other, path)
    await expect(appendAt(ledger, 1)).rejects.toThrow(/was removed, moved or replaced/)
    await ledger.close().catch(() => undefined)
    const reopened = sqliteLedger(path)
    onTestFinished(() => reopened.close())
    expect(await seqs(reopened)).toEqual([1, 2])
  })

  it('takes no log away that another ledger has begun at its place: what was acknowledged there stays', async () => {
    const [path, moved] = [temporaryFile(), temporaryFile()]
    const ledger = await started(path, 1)
    for (const suffix of ['', '-wal', '-shm']) renameSync(`${path}${suffix}`, `${moved}${suffix}`)
    const other = await started(path, 2)
    await ledger.close()
    expect(existsSync(`${path}-wal`)).toBe(true)
    expect(await appendAt(other, 2)).toEqual({ seq: 3, epoch: 1 })
    await other.close()
    expect(await seqs(reopened(path))).toEqual([1, 2, 3])
    expect(await seqs(reopened(moved))).toEqual([1])
  })

  it('is brought up to date where it was its log: what was acknowledged is in the file', async () => {
    const path = temporaryFile()
    const ledger = await started(path, 5)
    rmSync(`${path}-wal`)
    await expect(appendAt(ledger, 5)).rejects.toThrow(/runs\.db-wal was removed, moved or replaced/)
    expect(await seqsInCopy(path)).toEqual([1, 2, 3, 4, 5])
    await ledger.close().catch(() => undefined)
    const reopened = sqliteLedger(path)
    onTestFinished(() => reopened.close())
    expect(await appendAt(reopened, 5)).toEqual({ seq: 6, epoch: 1 })
    expect(await seqs(reopened)).toEqual([1, 2, 3, 4, 5, 6])
  })
})

describe('a log that cannot be read', () => {
  it('is damage that is reported, to a reader that has not read it before', async () => {
    const path = temporaryFile()
    const ledger = await started(path, 40)
    truncateSync(`${path}-wal`, Math.floor(statSync(`${path}-wal`).size / 2))
    const reading = (async () => {
      const reader = sqliteLedger(path, { readOnly: true })
      onTestFinished(() => reader.close())
      return await seqs(reader)
    })()
    await expect(reading).rejects.toThrow(LedgerDamagedError)
    await expect(reading).rejects.toThrow(/damaged.*Run verify on it, and restore a copy/)
    await ledger.close().catch(() => undefined)
  })
})
