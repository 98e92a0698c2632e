import { createHash } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import type { Message, RunId, RuntimeEvent } from '@tallystick/core'
import { everyFact, sampleMessage, sampleRunId, stamped } from '@tallystick/core/testing'
import type { Fact } from '@tallystick/core/vocabulary'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import type { Database } from 'better-sqlite3'
import { describe, expect, it } from 'vitest'
import { auditSourceOf, type AuditSource } from '../src/record/audit-source.ts'
import type { Fault } from '../src/record/link-check.ts'
import { tamper } from './support/raw-database.ts'
import { emptyLedgerFile, temporaryFile } from './support/temporary-folder.ts'

const runs = [sampleRunId(1), sampleRunId(2)] as const
const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex')

/** The start of a run after some messages, a large result, and two facts that share a row. */
function eventsOf(runId: RunId, messages: readonly Message[]): readonly RuntimeEvent[] {
  const facts = everyFact(runId)
  const large = { ...facts.tool_progress, data: `${runId} ${'x'.repeat(20_000)}` }
  const said: readonly Fact[] = [
    ...[facts.run_started, { ...facts.history_carried, messages }, large],
    ...[facts.usage_updated, facts.tool_started],
  ]
  return stamped(runId, said).map((event) => ({ ...event, turn: 1 }))
}

/** The first test that asks has the file written; each gets a copy. */
let made: Promise<Buffer> | undefined

async function written(): Promise<string> {
  const path = temporaryFile()
  writeFileSync(path, await (made ??= make()))
  return path
}

/** A closed file of two runs of which the second begins with what the first began with, and more. */
async function make(): Promise<Buffer> {
  const path = emptyLedgerFile()
  const ledger = sqliteLedger(path)
  const messages = [sampleMessage('one'), sampleMessage('two')]
  for (const [index, runId] of runs.entries()) {
    const { sessionId: _session, sessionPlace: _place, ...start } = everyFact(runId).run_started
    const events = eventsOf(runId, messages.slice(0, index + 1)).map((event) =>
      event.type === 'run_started'
        ? { ...start, ...event, sessionId: undefined, sessionPlace: undefined }
        : event,
    )
    await ledger.append(runId, { expectedSeq: 0, epoch: 1 }, events as RuntimeEvent[], { durability: 'lazy' })
  }
  await ledger.close()
  return readFileSync(path)
}

async function audited<T>(path: string, ask: (source: AuditSource) => Promise<T>): Promise<T> {
  const ledger = sqliteLedger(path, { readOnly: true })
  try {
    return await ask(auditSourceOf(ledger) as AuditSource)
  } finally {
    await ledger.close()
  }
}

/** The fault of a file after each change of it. */
async function faultAfter(...changes: readonly string[]): Promise<Fault | undefined> {
  const path = await written()
  tamper(path, (database) => changes.forEach((change) => database.exec(change)))
  return await audited(path, (source) => source.fault())
}

const numbering = 'update sqlite_sequence set seq = seq + 1'
const strayPayload = `insert into payload values (9999, x'00', x'7b7d')`
const schema = 'drop index event_once'
const content = `update content set body = x'00' where rowid = (select max(rowid) from content)`
const history = `update history set body = x'00' where before is null`

describe('the audit of a ledger file as a whole', () => {
  it('finds nothing in a sound one', async () => {
    expect(await faultAfter()).toBeUndefined()
    expect(await audited(emptyLedgerFile(), (source) => source.fault())).toBeUndefined()
  })

  it.each<readonly [string, readonly string[], Fault]>([
    ['a place that was given to no event', [numbering], { what: 'event rows', expected: '11', found: '10' }],
    [
      'an event beyond the places given',
      ['update event set pos = 9999 where pos = 3', 'update payload set pos = 9999 where pos = 3'],
      { what: 'event rows within the places given', expected: '10', found: '9' },
    ],
    [
      'an event before the first place',
      ['update event set pos = 0 where pos = 3', 'update payload set pos = 0 where pos = 3'],
      { what: 'event rows within the places given', expected: '10', found: '9' },
    ],
    [
      'a payload without an event',
      [strayPayload],
      { what: 'payload rows without an event', expected: '0', found: '1' },
    ],
    [
      'facts of no run',
      ['insert into fact values (9999, 1), (9999, 2)'],
      { what: 'facts of no run', expected: '0', found: '2' },
    ],
    [
      'a content without a use',
      [`insert into content values ('d', x'00')`],
      { what: 'content rows and their uses', expected: 'one for the other', found: '1 without' },
    ],
    [
      'uses of contents that are not there',
      ['delete from content'],
      { what: 'content rows and their uses', expected: 'one for the other', found: '2 without' },
    ],
    [
      'a piece of history without a use',
      [`insert into history values ('d', null, 'd', x'00')`],
      { what: 'history rows and their uses', expected: 'one for the other', found: '1 without' },
    ],
    [
      'an index that is missing, beside others',
      [schema, 'create trigger a_first after insert on inbox begin select 1; end'],
      { what: 'index event_once', expected: 'as its migration makes it', found: 'missing' },
    ],
    [
      'the first of the triggers that were added',
      ['one', 'two'].map((name) => `create trigger ${name} after insert on inbox begin select 1; end`),
      { what: 'trigger one', expected: 'no such trigger', found: 'one that was added' },
    ],
  ])('finds %s', async (_what, changes, fault) => {
    expect(await faultAfter(...changes)).toEqual(fault)
  })

  it.each<readonly [string, string]>([
    ['content', 'select digest, body from content order by rowid'],
    ['history', 'select digest, body from history order by name'],
  ])('finds each %s that is another than its digest says', async (table, query) => {
    for (const place of [0, 1]) {
      const path = await written()
      let digest = ''
      tamper(path, (database: Database) => {
        const rows = database.prepare<[], { readonly digest: string; readonly body: Buffer }>(query).all()
        expect(rows).toHaveLength(2)
        digest = rows[place]?.digest ?? ''
        expect(sha256(rows[place]?.body ?? Buffer.alloc(0))).toBe(digest)
        database.prepare(`update ${table} set body = x'00' where digest = ?`).run(digest)
      })
      const fault = { what: table, expected: digest, found: sha256(Uint8Array.of(0)) }
      expect(await audited(path, (source) => source.fault())).toEqual(fault)
    }
  })

  it('finds a piece of history whose name is another than what it says', async () => {
    const bytes = Buffer.from(JSON.stringify(sampleMessage('forged')))
    const forged = `update history set body = x'${bytes.toString('hex')}', digest = '${sha256(bytes)}' where before is null`
    expect(await faultAfter(forged)).toEqual({
      what: 'history',
      expected: 'the name of what it says',
      found: expect.stringMatching(/^[0-9a-f]{64}$/) as string,
    })
  })

  it('names one fault of several: numbering, stray rows, schema, contents, histories', async () => {
    const changes = [numbering, strayPayload, schema, content, history]
    const named = await Promise.all(
      changes.map(async (_change, from) => (await faultAfter(...changes.slice(from)))?.what),
    )
    expect(named).toEqual([
      ...['event rows', 'payload rows without an event', 'index event_once', 'content', 'history'],
    ])
  })
})

describe('what a ledger file has of one run', () => {
  it('is its row, its events and its facts', async () => {
    const path = await written()
    const [first, second] = await audited(path, (source) =>
      Promise.all(runs.map((runId) => source.run(runId))),
    )
    expect(first).toMatchObject({
      events: 5,
      lastSeq: 5,
      row: { runId: runs[0], pos: 1, headSeq: 5, epoch: 1 },
    })
    expect(second).toMatchObject({ events: 5, lastSeq: 5, row: { runId: runs[1], pos: 6, headSeq: 5 } })
    expect([first?.facts.size, second?.facts.size]).toEqual([1, 1])
    expect(first?.row?.seal).toHaveLength(32)
    expect(await audited(path, (source) => source.run(sampleRunId(9)))).toBeUndefined()
  })

  it('is one of the two where the other is gone', async () => {
    const path = await written()
    tamper(path, (database) => {
      database.prepare('delete from run where run_id = ?').run(runs[0])
      database.prepare('delete from event where run_id = ?').run(runs[1])
    })
    await audited(path, async (source) => {
      expect(await source.run(runs[0])).toEqual({ events: 5, lastSeq: 5, facts: new Set() })
      expect(await source.run(runs[1])).toMatchObject({ events: 0, lastSeq: 0, row: { pos: 6 } })
      expect(await source.orphans()).toEqual([runs[0]])
    })
  })

  it('has no row under a thousand ids at most that are named', async () => {
    const path = await written()
    tamper(path, (database) => {
      const columns = 'first_seq, seq, epoch, type, v, turn, tool_call_id, at, body_commit, hash'
      database.exec(`with recursive n (i) as (select 1 union all select i + 1 from n where i < 1001)
        insert into event (pos, run_id, ${columns})
        select 100 + i, 'run ' || i, ${columns} from n join event on event.pos = 1`)
    })
    expect(new Set(await audited(path, (source) => source.orphans())).size).toBe(1_000)
  })

  it('is read from its first event up to the one that is asked for', async () => {
    const path = await written()
    const read = (toSeq: number): Promise<readonly number[]> =>
      audited(path, async (source) =>
        (await Array.fromAsync(source.events(runs[0], toSeq))).flat().map(({ seq }) => seq),
      )
    expect(await read(9)).toEqual([1, 2, 3, 5])
    expect(await read(2)).toEqual([1, 2])
  })
})
