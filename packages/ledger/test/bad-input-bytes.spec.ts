import { readFileSync, writeFileSync } from 'node:fs'
import { isDeepStrictEqual } from 'node:util'
import {
  createRuntime,
  defineAgent,
  TallystickError,
  type Ledger,
  type RunId,
  type RuntimeEvent,
} from '@tallystick/core'
import { scriptedModel, seededRandom, testTool } from '@tallystick/testkit'
import { verifyLedger, verifyRun, type RunVerdict, type StoreVerdict } from '@tallystick/ledger'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { beforeAll, describe, expect, it } from 'vitest'
import { effort } from '../../../scripts/testing/effort.ts'
import { makeFolder } from './support/temporary-folder.ts'
import { withRaw } from './support/raw-database.ts'
import { recordRun } from './support/record-run.ts'

const pageBytes = 4096

/** A page of the file, by what SQLite keeps in it. */
interface Page {
  readonly name: string
  readonly pageno: number
  readonly pagetype: 'internal' | 'leaf' | 'overflow'
}

interface Sound {
  readonly path: string
  readonly bytes: Buffer
  readonly runIds: readonly RunId[]
  readonly events: readonly (readonly RuntimeEvent[])[]
  readonly pages: readonly Page[]
}

/** A ledger with every kind of page: large contents, so that they overflow, and pages that are no longer in use. */
async function soundLedger(path: string): Promise<Sound> {
  const ledger = sqliteLedger(path)
  const runIds = [await recordRun(ledger, 1), await recordRun(ledger, 2), await largeRun(ledger)]
  const events = await Promise.all(runIds.map((runId) => Array.fromAsync(ledger.read(runId))))
  await ledger.close()
  const pages = withRaw(path, (database) => {
    database.exec('create table scrap (text text) strict')
    const insert = database.prepare('insert into scrap values (?)')
    for (let row = 0; row < 12; row++) insert.run('scrap '.repeat(600))
    database.exec('drop table scrap')
    return database.prepare<[], Page>('select name, pageno, pagetype from dbstat').all()
  })
  return { path, bytes: readFileSync(path), runIds, events, pages }
}

async function largeRun(ledger: Ledger): Promise<RunId> {
  const dump = testTool({ name: 'dump', run: () => 'a long answer. '.repeat(4_000) })
  const model = scriptedModel([{ toolCalls: [{ name: 'dump', input: {} }] }, { text: 'Done.' }])
  const agent = defineAgent({ name: 'large', instructions: 'Act.', model, tools: [dump] })
  const run = createRuntime({ ledger, agents: [agent] }).run(agent, 'Go.')
  await run.result
  return run.id
}

/** What becomes of a file with some bytes changed. Each finding names its place; the last kind must never occur. */
type Outcome = 'refused' | 'found' | 'unharmed' | 'changed unseen'

function isLocated(verdict: RunVerdict | StoreVerdict): boolean {
  const { broken } = verdict
  if (broken === undefined) return verdict.scope === 'store' && verdict.brokenRuns > 0
  return broken.what !== '' && broken.expected !== broken.found
}

async function outcomeOf(sound: Sound, at: number, bits: number): Promise<Outcome> {
  const bytes = Buffer.from(sound.bytes)
  bytes[at] = (bytes[at] ?? 0) ^ bits
  writeFileSync(sound.path, bytes)
  let ledger
  try {
    ledger = sqliteLedger(sound.path, { readOnly: true })
  } catch (error) {
    if (error instanceof TallystickError) return 'refused'
    throw error
  }
  try {
    const broken = (await Array.fromAsync(verifyLedger(ledger))).filter(({ ok }) => !ok)
    if (broken.length > 0) {
      if (!broken.every(isLocated)) throw new Error(`What is broken at ${at} is not located.`)
      return 'found'
    }
    const read = await Promise.all(sound.runIds.map((runId) => Array.fromAsync(ledger.read(runId))))
    return isDeepStrictEqual(read, sound.events) ? 'unharmed' : 'changed unseen'
  } finally {
    await ledger.close()
  }
}

/** Where the b-tree of a page begins, and where its cells lie: from the lowest of them to the page's end. */
function cellsOf({ bytes }: Sound, pageno: number): { readonly count: number; readonly from: number } {
  const start = (pageno - 1) * pageBytes + (pageno === 1 ? 100 : 0)
  return { count: bytes.readUInt16BE(start + 3), from: bytes.readUInt16BE(start + 5) || pageBytes }
}

/** Tables whose cells mean something that a run says, with their indexes. */
const chained = /^(run|event|history)$|^event_|^sqlite_autoindex_(run|event|history)_/

describe('a ledger file of which one byte has changed', () => {
  const soundPath = makeFolder('runs.db')
  let sound: Sound
  beforeAll(async () => {
    sound = await soundLedger(soundPath)
  })
  /** One page of each kind: the middle one. */
  const kinds = (): readonly Page[] =>
    [...Map.groupBy(sound.pages, ({ name, pagetype }) => `${name} ${pagetype}`).values()].map(
      (pages) => pages[Math.floor(pages.length / 2)] as Page,
    )

  it('has every kind of page: tables, indexes, inner nodes, overflow, the schema, and unused ones', () => {
    const names = sound.pages.map(({ name, pagetype }) => `${name} ${pagetype}`)
    expect(names).toEqual(
      expect.arrayContaining([
        ...['event leaf', 'event internal', 'event overflow', 'run leaf', 'inbox leaf', 'history leaf'],
        ...['sqlite_schema leaf', 'sqlite_sequence leaf', 'event_call leaf', 'sqlite_schema internal'],
        'sqlite_autoindex_event_1 leaf',
      ]),
    )
    expect(sound.bytes.length / pageBytes).toBeGreaterThan(sound.pages.length + 5)
  })

  it('in the header of a page is found or refused, on every kind of page', async () => {
    const unseen: string[] = []
    for (const [index, { name, pageno, pagetype }] of kinds().entries()) {
      if (pagetype === 'overflow') continue
      const start = (pageno - 1) * pageBytes + (pageno === 1 ? 100 : 0)
      // Its type, the number of its cells, and where they lie; in a quick run, one of them on each page by turns.
      const fields: readonly (readonly [offset: number, bits: number])[] = [
        [0, 0x40],
        [4, 0x04],
        [5, 0x40],
      ]
      const first = index % fields.length
      for (const [offset, bits] of effort({ quick: fields.slice(first, first + 1), thorough: fields })) {
        const outcome = await outcomeOf(sound, start + offset, bits)
        if (outcome !== 'found' && outcome !== 'refused')
          unseen.push(`${name} ${pagetype} ${offset}: ${outcome}`)
      }
    }
    expect(unseen).toEqual([])
  }, 120_000)

  it('in what a chained table or its indexes hold is found or refused, wherever it lies', async () => {
    const random = seededRandom(4)
    const outcomes = new Map<string, Set<Outcome>>()
    const probes = effort({ quick: 2, thorough: 5 })
    for (const { name, pageno, pagetype } of kinds()) {
      const isOverflow = pagetype === 'overflow'
      const { count, from } = isOverflow ? { count: 1, from: 4 } : cellsOf(sound, pageno)
      if (!chained.test(name) || count === 0) continue
      const found = new Set<Outcome>()
      outcomes.set(`${name} ${pagetype}`, found)
      for (let probe = 0; probe < probes; probe++) {
        const at = (pageno - 1) * pageBytes + from + Math.floor(random() * (pageBytes - from))
        found.add(await outcomeOf(sound, at, 1 << Math.floor(random() * 8)))
      }
    }
    expect([...outcomes].filter(([, found]) => found.has('changed unseen'))).toEqual([])
    expect([...outcomes].filter(([, found]) => !found.has('found') && !found.has('refused'))).toEqual([])
    expect([...outcomes.keys()]).toContain('event overflow')
  }, 120_000)

  it('in the salt or the hash of an event is found at that event, of that run', async () => {
    const [runId] = sound.runIds as readonly [RunId]
    writeFileSync(sound.path, sound.bytes)
    const rows = withRaw(sound.path, (database) =>
      database
        .prepare<[string], { seq: number; salt: string; hash: string }>(
          'select seq, salt, hash from event where run_id = ? order by seq',
        )
        .all(runId),
    )
    expect(rows).toHaveLength(sound.events[0]?.length ?? 0)
    for (const { seq, ...columns } of rows) {
      for (const [column, value] of Object.entries(columns)) {
        const bytes = Buffer.from(sound.bytes)
        const at = bytes.indexOf(value)
        bytes[at + 7] = (bytes[at + 7] ?? 0) ^ 0x02
        writeFileSync(sound.path, bytes)
        const ledger = sqliteLedger(sound.path, { readOnly: true })
        const { broken } = await verifyRun(ledger, runId)
        await ledger.close()
        // The run's row holds the hash of the last event as well, and it may lie before the event in the file.
        const what: unknown = expect.stringMatching(/^(hash|head_hash)$/)
        expect({ column, ...broken }).toMatchObject({ column, runId, seq, what })
      }
    }
  }, 120_000)

  it.each([
    ['its magic text', 3, ['refused']],
    ['the size of its pages', 16, ['refused']],
    ['the payload fractions', 21, ['refused']],
    ['the first unused page', 35, ['found']],
    ['how many pages are unused', 39, ['found']],
    ['the largest root page, without a vacuum', 55, ['found', 'refused']],
    ['its schema version', 63, ['refused']],
    ['its application', 71, ['refused']],
    ['a counter of changes', 27, ['unharmed']],
    ['a counter of schemas', 43, ['unharmed']],
    ['the size of a cache', 51, ['unharmed']],
    ['what is reserved', 80, ['unharmed']],
    ['the version of SQLite that wrote it', 99, ['unharmed']],
  ])('in the header of the file, at %s, does what it can', async (_field, at, expected) => {
    expect(expected).toContain(await outcomeOf(sound, at, 0x08))
  })

  it('in an unused page says nothing, and changes nothing', async () => {
    const used = new Set(sound.pages.map(({ pageno }) => pageno))
    const all = Array.from({ length: sound.bytes.length / pageBytes }, (_, index) => index + 1)
    const trunk = sound.bytes.readUInt32BE(32)
    const unused = all.filter((pageno) => !used.has(pageno) && pageno !== trunk)
    expect(unused.length).toBeGreaterThan(3)
    for (const pageno of unused.slice(0, 4)) {
      expect(await outcomeOf(sound, (pageno - 1) * pageBytes + 900, 0x10)).toBe('unharmed')
    }
    // The list of such pages is a part of the file's books.
    expect(await outcomeOf(sound, (trunk - 1) * pageBytes + 7, 0x40)).toBe('found')
  })
})
