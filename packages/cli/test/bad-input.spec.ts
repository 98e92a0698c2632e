import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import type { RunId, RuntimeEvent } from '@tallystick/core'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import BetterSqlite3, { type Database } from 'better-sqlite3'
import { describe, expect, it } from 'vitest'
import { openShop, type Shop } from './kit/shop.ts'
import { tallystickHere, type Ending } from './kit/tallystick.ts'

const verbs = ['verify', 'list', 'show', 'export'] as const
type Verb = (typeof verbs)[number]

/** What a verb is asked about a ledger file, of its one run where it needs one. */
function wordsOf(verb: Verb, path: string): readonly string[] {
  return verb === 'show' ? [verb, path, 'latest'] : [verb, path]
}

/** Works on a file with a connection of its own, as any SQLite tool would. */
function changed(path: string, work: (database: Database) => void): void {
  const database = new BetterSqlite3(path)
  work(database)
  database.close()
}

async function cut(path: string, length: (bytes: Buffer) => number): Promise<void> {
  const bytes = await readFile(path)
  await writeFile(path, bytes.subarray(0, length(bytes)))
}

/** Adds an event of an unknown type, as a newer release would. */
async function addLater(path: string, runId: RunId, change: object): Promise<void> {
  const ledger = sqliteLedger(path)
  const { seq = 0, epoch = 1 } = (await ledger.head(runId)) ?? {}
  const event = { runId, seq: seq + 1, epoch, turn: 2, at: Date.UTC(2100, 0), v: 1, type: 'cancel_requested' }
  const later = { ...event, ...change } as unknown as RuntimeEvent
  await ledger.append(runId, { expectedSeq: seq, epoch }, [later], { durability: 'barrier' })
  await ledger.close()
}

interface BadFile {
  /** Makes the file bad that holds one run. */
  readonly spoil: (shop: Shop, runId: RunId) => Promise<void> | void
  readonly said: RegExp
  /** The exit codes, in the order of the verbs. */
  readonly codes: readonly [verify: number, list: number, show: number, exported: number]
}

/** Every verb that looks has to say what happened, and what to do. */
const badFiles: Readonly<Record<string, BadFile>> = {
  'a text file': {
    spoil: ({ ledgerPath }) => writeFile(ledgerPath, 'Milk, eggs, bread. '.repeat(300)),
    said: /not a SQLite database.*It was left as it is\. Name another file/,
    codes: [1, 1, 1, 1],
  },
  'a database of something else': {
    async spoil({ ledgerPath }) {
      await rm(ledgerPath)
      changed(ledgerPath, (database) => database.exec('create table customer (name text)'))
    },
    said: /a database of another application.*It was left as it is/,
    codes: [1, 1, 1, 1],
  },
  'a folder': {
    async spoil({ ledgerPath }) {
      await rm(ledgerPath)
      await mkdir(ledgerPath)
    },
    said: /a folder, and a ledger is one file\. Name the file/,
    codes: [1, 1, 1, 1],
  },
  'an empty file': {
    spoil: ({ ledgerPath }) => writeFile(ledgerPath, ''),
    said: /is empty, and opening it for reading does not create one\. Check the path/,
    codes: [1, 1, 1, 1],
  },
  'a ledger that is cut off within its header': {
    spoil: ({ ledgerPath }) => cut(ledgerPath, () => 60),
    said: /not a SQLite database/,
    codes: [1, 1, 1, 1],
  },
  'a ledger that is cut off between two pages': {
    spoil: ({ ledgerPath }) => cut(ledgerPath, ({ length }) => length - 4096 * 3),
    said: /is damaged.*restore a copy/,
    codes: [4, 4, 4, 4],
  },
  'a ledger that is cut off within a page': {
    spoil: ({ ledgerPath }) => cut(ledgerPath, ({ length }) => length - 4096 * 3 - 777),
    said: /is damaged.*restore a copy/,
    codes: [4, 4, 4, 4],
  },
  'a ledger of a newer schema': {
    spoil: ({ ledgerPath }) => changed(ledgerPath, (database) => void database.pragma('user_version = 99')),
    said: /schema version 99.*Update @tallystick\/ledger/,
    codes: [1, 1, 1, 1],
  },
  'a run with an event of an unknown type': {
    spoil: ({ ledgerPath }, runId) => addLater(ledgerPath, runId, { type: 'from_the_future' }),
    said: /from_the_future v1, which this release does not know.*A newer release wrote it/,
    codes: [4, 1, 1, 0],
  },
  'a run with an event of a newer version': {
    spoil: ({ ledgerPath }, runId) => addLater(ledgerPath, runId, { v: 9 }),
    said: /cancel_requested v9, which this release does not know.*A newer release wrote it/,
    codes: [4, 1, 1, 0],
  },
}

/** A user needs no stack trace to learn what to do. */
function hasTrace({ stdout, stderr }: Ending): boolean {
  return /^\s+at .*[(:]\d+/m.test(stdout + stderr)
}

describe('a file that is not a ledger, or damaged, or from the future', () => {
  it.each(Object.entries(badFiles))(
    'is reported by every verb, with its exit code: %s',
    async (_what, bad) => {
      await using shop = await openShop()
      const { runId } = await shop.start()
      await bad.spoil(shop, runId)
      const endings: Ending[] = []
      for (const verb of verbs) endings.push(await tallystickHere(...wordsOf(verb, shop.ledgerPath)))
      expect(endings.map(({ code }) => code)).toEqual(bad.codes)
      expect(endings.filter(hasTrace)).toEqual([])
      for (const { stdout, stderr } of endings.filter(({ code }) => code !== 0)) {
        expect(stdout + stderr).toMatch(bad.said)
      }
    },
  )

  it('ends a process of its own in the same way', async () => {
    await using shop = await openShop()
    await shop.start()
    await cut(shop.ledgerPath, ({ length }) => length - 4096 * 2)
    const ending = await tallystickHere('verify', shop.ledgerPath)
    expect({ code: ending.code, trace: hasTrace(ending) }).toEqual({ code: 4, trace: false })
    expect(ending.stderr).toContain(`The ledger ${shop.ledgerPath} is damaged`)
  })

  it('gives out by export what can be read of a run that a newer release has written', async () => {
    await using shop = await openShop()
    const { runId } = await shop.start()
    await addLater(shop.ledgerPath, runId, { type: 'from_the_future', mystery: [1] })
    const { code, stdout } = await tallystickHere('export', shop.ledgerPath)
    const lines = stdout.trimEnd().split('\n')
    expect(code).toBe(0)
    expect(JSON.parse(lines.at(-1) ?? '')).toMatchObject({ runId, type: 'from_the_future', mystery: [1] })
  })
})
