import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import {
  LedgerDamagedError,
  LedgerUnavailableError,
  TallystickError,
  type Ledger,
  type RunId,
  type RuntimeEvent,
} from '@tallystick/core'
import { verifyCheckpoints, verifyLedger, writeCheckpoint } from '@tallystick/ledger'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import BetterSqlite3 from 'better-sqlite3'
import { beforeAll, describe, expect, it } from 'vitest'
import { origin, privateKey, publicKey } from './support/kept-ledger.ts'
import { recordRun } from './support/record-run.ts'
import { temporaryFile } from './support/temporary-folder.ts'
import { makeFolder } from './support/temporary-folder.ts'

const pageBytes = 4096

/** What opening a file answers, to read it and to write it; the file has to stay as it is. */
function refusalsOf(path: string): readonly TallystickError[] {
  const before = readFileSync(path)
  return [true, false].map((readOnly) => {
    try {
      void sqliteLedger(path, { readOnly }).close()
    } catch (error) {
      if (!readFileSync(path).equals(before))
        throw new Error('Opening has changed the file.', { cause: error })
      if (error instanceof TallystickError) return error
    }
    throw new Error(`${path} was opened, or refused without a reason.`)
  })
}

describe('a ledger file that is cut off', () => {
  const wholePath = makeFolder('runs.db')
  let whole: Buffer
  beforeAll(async () => {
    const ledger = sqliteLedger(wholePath)
    await recordRun(ledger, 1)
    await ledger.close()
    whole = readFileSync(wholePath)
  })

  function cut(length: number): string {
    const path = temporaryFile()
    writeFileSync(path, whole.subarray(0, length))
    return path
  }

  it.each([1, 15, 16, 17, 18, 56, 99, 100, 101, 511])(
    'within its first %i bytes is not a database, and left as it is',
    (length) => {
      const path = cut(length)
      for (const refusal of refusalsOf(path)) {
        expect(refusal).toBeInstanceOf(LedgerUnavailableError)
        expect(refusal.message).toContain(`${path} is not a SQLite database`)
        expect(refusal.message).toContain('It was left as it is.')
      }
    },
  )

  it('on or between its pages is damaged, says what to do, and left as it is', () => {
    const pages = whole.length / pageBytes
    expect(pages).toBeGreaterThan(20)
    const borders = Array.from({ length: pages - 2 }, (_, page) => (page + 1) * pageBytes)
    for (const length of [512, ...borders, ...borders.map((border) => border + 1_234)]) {
      const path = cut(length)
      for (const refusal of refusalsOf(path)) {
        expect(refusal).toBeInstanceOf(LedgerDamagedError)
        expect(refusal.message).toContain(`The ledger ${path} is damaged`)
        expect(refusal.message).toContain('restore a copy')
      }
    }
  })

  it.each([1, 100, pageBytes - 1])('within its last page, by %i bytes, is found broken', async (missing) => {
    const ledger = sqliteLedger(cut(whole.length - missing), { readOnly: true })
    const verdicts = await Array.fromAsync(verifyLedger(ledger))
    expect(verdicts.at(-1)).toMatchObject({ scope: 'store', ok: false })
    const broken = verdicts.flatMap((verdict) => (verdict.broken ? [verdict.broken.what] : []))
    expect(broken.length).toBeGreaterThan(0)
    await ledger.close()
  })

  it('to nothing is not taken for a ledger by a reader', () => {
    const path = cut(0)
    const read = (): Ledger => sqliteLedger(path, { readOnly: true })
    expect(read).toThrow(LedgerUnavailableError)
    expect(read).toThrow(/is empty, and opening it for reading does not create one/)
    expect(statSync(path).size).toBe(0)
  })
})

/** A ledger that its process left in the middle of work, with its second run in the log alone. */
interface Left {
  readonly file: Buffer
  readonly log: Buffer
  readonly runIds: readonly RunId[]
  readonly events: readonly (readonly RuntimeEvent[])[]
  readonly checkpoints: string
}

async function leftLedger(path: string): Promise<Left> {
  const first = sqliteLedger(path)
  const runIds = [await recordRun(first, 1)]
  await first.close()
  const ledger = sqliteLedger(path)
  await ledger.head(runIds[0] as RunId)
  // A reader keeps the log from being written into the file.
  const reader = new BetterSqlite3(path, { readonly: true })
  reader.exec('begin')
  reader.prepare('select count(*) from run').get()
  runIds.push(await recordRun(ledger, 2))
  const checkpoints = join(path, '..', 'checkpoints')
  await writeCheckpoint(ledger, { file: checkpoints, key: privateKey, origin })
  const [file, log] = [readFileSync(path), readFileSync(`${path}-wal`)]
  const events = await Promise.all(runIds.map((runId) => Array.fromAsync(ledger.read(runId))))
  reader.close()
  await ledger.close()
  return { file, log, runIds, events, checkpoints }
}

describe('the log of a ledger file that is cut off or changed', () => {
  const leftPath = makeFolder('runs.db')
  let left: Left
  beforeAll(async () => {
    left = await leftLedger(leftPath)
  })

  /** What is left of the second run, by what opening, verifying and the checkpoint say; the first has to be whole. */
  async function eventsLeft(log: Buffer): Promise<number> {
    const path = temporaryFile()
    writeFileSync(path, left.file)
    writeFileSync(`${path}-wal`, log)
    const ledger = sqliteLedger(path)
    try {
      const verdicts = await Array.fromAsync(verifyLedger(ledger))
      expect(verdicts.filter(({ ok }) => !ok)).toEqual([])
      const [first, second] = left.runIds as readonly [RunId, RunId]
      expect(isDeepStrictEqual(await Array.fromAsync(ledger.read(first)), left.events[0])).toBe(true)
      const events = await Array.fromAsync(ledger.read(second))
      expect(isDeepStrictEqual(events, left.events[1]?.slice(0, events.length))).toBe(true)
      const { ok, broken } = await verifyCheckpoints(ledger, { file: left.checkpoints, publicKey })
      const isWhole = events.length === left.events[1]?.length
      expect([ok, ...broken.map(({ runId }) => runId)]).toEqual(isWhole ? [true] : [false, second])
      return events.length
    } finally {
      await ledger.close()
    }
  }

  const frameBytes = pageBytes + 24

  it('loses what stood after the place, never half an append, and a checkpoint finds which run', async () => {
    const frames = (left.log.length - 32) / frameBytes
    expect(frames).toBeGreaterThan(35)
    const borders = Array.from(
      { length: 16 },
      (_, part) => 32 + Math.floor((frames * part) / 16) * frameBytes,
    )
    const lengths = [0, 16, 31, ...borders, ...borders.map((border) => border + 2_000), left.log.length - 1]
    const found: number[] = []
    for (const length of lengths.toSorted((a, b) => a - b)) {
      found.push(await eventsLeft(left.log.subarray(0, length)))
    }
    expect(found).toEqual(found.toSorted((a, b) => a - b))
    expect(found[0]).toBe(0)
    expect(new Set(found).size).toBeGreaterThan(5)
    expect(await eventsLeft(left.log)).toBe(left.events[1]?.length)
  })

  it.each([
    ['its header', 5],
    ['the salts in its header', 18],
    ['the number of a page', 32 + 20 * frameBytes + 2],
    ['the size of a commit', 32 + 20 * frameBytes + 6],
    ['the salts of a frame', 32 + 20 * frameBytes + 9],
    ['the digest of a frame', 32 + 20 * frameBytes + 18],
    ['a page', 32 + 20 * frameBytes + 24 + 3_000],
  ])('is read up to where %s has changed, and a checkpoint finds which run', async (_what, at) => {
    const log = Buffer.from(left.log)
    log[at] = (log[at] ?? 0) ^ 0x10
    expect(await eventsLeft(log)).toBeLessThan(left.events[1]?.length ?? 0)
  })

  it('and is gone, leaves what the file itself holds', async () => {
    const path = temporaryFile()
    writeFileSync(path, left.file)
    const ledger = sqliteLedger(path)
    expect((await Array.fromAsync(ledger.runs())).map(({ runId }) => runId)).toEqual([left.runIds[0]])
    await ledger.close()
  })
})
