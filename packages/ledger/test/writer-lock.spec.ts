import fs, { chmodSync, existsSync, realpathSync, statSync, unlinkSync, writeFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { LedgerUnavailableError } from '@tallystick/core'
import { everyFact, sampleRunId, stamped } from '@tallystick/core/testing'
import { hasWriter, sqliteLedger } from '@tallystick/ledger/sqlite'
import BetterSqlite3 from 'better-sqlite3'
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { WriterLock } from '../src/sqlite/connection/writer-lock.ts'
import { temporaryFile } from './support/temporary-folder.ts'

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] }))
afterEach(() => void vi.useRealTimers())

/** An empty file, and the locks of ledgers that have it open in this process. */
function locked() {
  const path = realpathSync(ledgerFile())
  const lock = (patienceMs?: number): WriterLock => {
    const made = new WriterLock(path, patienceMs)
    onTestFinished(() => made.leave())
    return made
  }
  return { path, lock }
}

function ledgerFile(): string {
  const path = temporaryFile()
  writeFileSync(path, '')
  return path
}

/** Another writer of the file, until the answer is called. `exclusive`: it is at the moment of signing. */
function occupied(path: string, how: 'immediate' | 'exclusive' = 'immediate'): () => void {
  const other = new BetterSqlite3(`${path}-writer`)
  other.exec(`begin ${how}`)
  const leave = (): void => void other.close()
  onTestFinished(leave)
  return leave
}

/** Drives a run by a write that is done at once. */
function drive(lock: WriterLock, runId: string, epoch = 1): Promise<string> {
  return lock.drive(runId, epoch, async () => 'written')
}

/** What has become of a promise by now. */
function followed(promise: Promise<unknown>): () => string {
  let state = 'waits'
  promise.then(
    (value) => (state = String(value)),
    (error: unknown) => (state = error instanceof LedgerUnavailableError ? 'refused' : String(error)),
  )
  return () => state
}

async function refuse(): Promise<never> {
  throw new Error('refused')
}

const rolesKey = Symbol.for('tallystick.ledger.sqlite-writer-roles.1')

/** Whether this process keeps anything of the role of a file. */
function isKept(path: string): boolean {
  return (globalThis as { [rolesKey]?: ReadonlyMap<string, unknown> })[rolesKey]?.has(path) ?? false
}

describe('a run', () => {
  it('is under way from the first write of a writer until a writer of that epoch, or any, lets go of it', async () => {
    const { path, lock } = locked()
    const ledger = lock()
    expect([ledger.isDriven('a'), hasWriter(path)]).toEqual([false, undefined])
    expect(await drive(ledger, 'a', 0)).toBe('written')
    ledger.register('a', 5)
    ledger.register('a', 3)
    await drive(ledger, 'b')
    ledger.release('a', 4)
    ledger.release('c')
    ledger.release('c', 9)
    expect(['a', 'b', 'c'].map((runId) => ledger.isDriven(runId))).toEqual([true, true, false])
    ledger.release('a', 5)
    expect([ledger.isDriven('a'), ledger.has('a'), hasWriter(path)]).toEqual([false, false, true])
    ledger.release('b')
    expect([ledger.isDriven('b'), hasWriter(path)]).toEqual([false, false])
    expect(await drive(ledger, 'a')).toBe('written')
    expect(hasWriter(path)).toBe(true)
  })

  it('writes before those of runs that begin after it, also as the first of its process', async () => {
    const { lock } = locked()
    const ledger = lock()
    const written: string[] = []
    const write = (runId: string): Promise<number> => ledger.drive(runId, 1, async () => written.push(runId))
    await Promise.all(['a', 'b', 'c'].map(write))
    for (const runId of ['a', 'b', 'c']) ledger.release(runId)
    await Promise.all(['d', 'e'].map(write))
    expect(written).toEqual(['a', 'b', 'c', 'd', 'e'])
  })

  it('is not under way where its first write failed, and stays so where a later one does', async () => {
    const { path, lock } = locked()
    const ledger = lock()
    await expect(ledger.drive('a', 0, refuse)).rejects.toThrow('refused')
    expect([ledger.isDriven('a'), hasWriter(path)]).toEqual([false, false])
    await drive(ledger, 'a')
    await expect(ledger.drive('a', 1, refuse)).rejects.toThrow('refused')
    expect([ledger.isDriven('a'), hasWriter(path)]).toEqual([true, true])
  })

  it('is under way in whichever ledger of the process drives it', async () => {
    const { path, lock } = locked()
    const [one, two] = [lock(), lock()]
    await drive(two, 'a')
    expect([one.isDriven('a'), one.isDriven('b')]).toEqual([true, false])
    one.leave()
    expect([two.isDriven('a'), hasWriter(path)]).toEqual([true, true])
    const three = lock()
    await Promise.all([drive(two, 'b'), drive(three, 'c')])
    two.leave()
    expect([three.isDriven('a'), three.isDriven('c'), hasWriter(path)]).toEqual([false, true, true])
    three.leave()
    expect([existsSync(`${path}-writer`), isKept(path)]).toEqual([false, false])
  })

  it('may be under way in another process, which says only that it drives any, or keeps its file from being read', () => {
    const { path, lock } = locked()
    const ledger = lock()
    const leave = occupied(path)
    expect(ledger.isDriven('a')).toBeUndefined()
    leave()
    expect(ledger.isDriven('a')).toBe(false)
    writeFileSync(`${path}-writer`, 'x'.repeat(5_000))
    expect(ledger.isDriven('a')).toBeUndefined()
  })
})

/** Removes a file, as another process may, right after this one has looked at it for the first time. */
function removedOnceSeen(path: string): void {
  const replaceWith = (statSync: unknown): void => {
    Object.assign(fs, { statSync })
    syncBuiltinESMExports()
  }
  const original = fs.statSync
  onTestFinished(() => replaceWith(original))
  replaceWith((...parameters: Parameters<typeof original>) => {
    const stats = original(...parameters)
    if (parameters[0] === path) {
      replaceWith(original)
      unlinkSync(path)
    }
    return stats
  })
}

describe('the file beside a ledger', () => {
  it.each([0o600, 0o664])('has the permissions of the ledger: %o', async (mode) => {
    const { path, lock } = locked()
    chmodSync(path, mode)
    await drive(lock(), 'a')
    expect(statSync(`${path}-writer`).mode & 0o777).toBe(mode)
  })

  it('has them where another process removes it at the moment in which it is opened', async () => {
    const { path, lock } = locked()
    chmodSync(path, 0o600)
    writeFileSync(`${path}-writer`, '')
    removedOnceSeen(`${path}-writer`)
    expect(await drive(lock(), 'a')).toBe('written')
    expect(statSync(`${path}-writer`).mode & 0o777).toBe(0o600)
    expect(hasWriter(path)).toBe(true)
  })
})

describe('a ledger that waits for the role', () => {
  it('gives up after its patience, a second unless given, and asks fifty times in a second', async () => {
    const { path, lock } = locked()
    const leave = occupied(path)
    const ledger = lock()
    const refused = drive(ledger, 'a')
    const state = followed(refused)
    await vi.advanceTimersByTimeAsync(999)
    expect(state()).toBe('waits')
    await vi.advanceTimersByTimeAsync(1)
    expect(state()).toBe('refused')
    await expect(refused).rejects.toThrow(/is being written by another process, which has not said who it is/)
    expect(ledger.has('a')).toBe(false)
    const next = followed(drive(ledger, 'a'))
    await vi.advanceTimersByTimeAsync(39)
    leave()
    expect(next()).toBe('waits')
    await vi.advanceTimersByTimeAsync(1)
    expect([next(), hasWriter(path)]).toEqual(['written', true])
  })

  it('waits, too, while another process signs the file, which keeps it from being read', async () => {
    const { path, lock } = locked()
    const leave = occupied(path, 'exclusive')
    const ledger = lock()
    const state = followed(drive(ledger, 'a'))
    await vi.advanceTimersByTimeAsync(20)
    expect([state(), hasWriter(path)]).toEqual(['waits', true])
    leave()
    await vi.advanceTimersByTimeAsync(20)
    expect([state(), hasWriter(path)]).toEqual(['written', true])
  })

  it('asks once more at least, however little patience it has', async () => {
    const { path, lock } = locked()
    const leave = occupied(path)
    const ledger = lock(0)
    const first = followed(drive(ledger, 'a'))
    await vi.advanceTimersByTimeAsync(19)
    expect(first()).toBe('waits')
    await vi.advanceTimersByTimeAsync(1)
    expect(first()).toBe('refused')
    const second = followed(drive(ledger, 'a'))
    leave()
    await vi.advanceTimersByTimeAsync(20)
    expect(second()).toBe('written')
  })

  it('has it for all runs that wait, in all ledgers of the process', async () => {
    const { path, lock } = locked()
    const leave = occupied(path)
    const [one, two] = [lock(), lock()]
    const states = [drive(one, 'a'), drive(one, 'b'), drive(two, 'c')].map(followed)
    await vi.advanceTimersByTimeAsync(30)
    leave()
    await vi.advanceTimersByTimeAsync(10)
    expect(states.map((state) => state())).toEqual(['written', 'written', 'written'])
    expect(['a', 'b', 'c'].map((runId) => one.isDriven(runId))).toEqual([true, true, true])
    for (const runId of ['a', 'b']) one.release(runId)
    expect(hasWriter(path)).toBe(true)
    two.release('c')
    expect(hasWriter(path)).toBe(false)
  })

  it('leaves nothing of it where it is closed meanwhile', async () => {
    const { path, lock } = locked()
    const leave = occupied(path)
    const ledger = lock()
    const state = followed(drive(ledger, 'a'))
    await vi.advanceTimersByTimeAsync(10)
    ledger.leave()
    expect(isKept(path)).toBe(true)
    leave()
    await vi.advanceTimersByTimeAsync(10)
    expect([state(), existsSync(`${path}-writer`), isKept(path)]).toEqual(['written', false, false])
  })

  it('has it with a ledger that is opened after the first that waited is closed', async () => {
    const { path, lock } = locked()
    const leave = occupied(path)
    const [one] = [lock()]
    const first = followed(drive(one, 'a'))
    await vi.advanceTimersByTimeAsync(5)
    one.leave()
    const two = lock()
    const second = followed(drive(two, 'b'))
    leave()
    await vi.advanceTimersByTimeAsync(1_000)
    expect([first(), second(), two.isDriven('b'), hasWriter(path)]).toEqual([
      'written',
      'written',
      true,
      true,
    ])
  })
})

describe('sqliteLedger', () => {
  it('keeps no other process from writing where all that it did was refused', async () => {
    const path = temporaryFile()
    const ledger = sqliteLedger(path)
    onTestFinished(() => ledger.close())
    const runId = sampleRunId(1)
    await expect(ledger.acquire(runId)).rejects.toThrow(/is not in this ledger/)
    expect(hasWriter(path)).toBe(false)
    const next = stamped(runId, [everyFact(runId).cancel_requested], { afterSeq: 1 })
    const late = ledger.append(runId, { expectedSeq: 1, epoch: 1 }, next, { durability: 'lazy' })
    await expect(late).rejects.toThrow(/ends at seq 0/)
    expect([hasWriter(path), await ledger.isDriven?.(runId)]).toEqual([false, false])
    const start = stamped(runId, [everyFact(runId).run_started])
    await ledger.append(runId, { expectedSeq: 0, epoch: 1 }, start, { durability: 'lazy' })
    expect([hasWriter(path), await ledger.isDriven?.(runId)]).toEqual([true, true])
  })
})
