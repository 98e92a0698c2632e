import { copyFileSync } from 'node:fs'
import { LedgerDamagedError, type RunId } from '@tallystick/core'
import { sampleFacts, stampFacts } from '@tallystick/testkit'
import type { BrokenPlace, RunVerdict } from '@tallystick/ledger'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import type { Database } from 'better-sqlite3'
import { beforeAll, describe, expect, it } from 'vitest'
import { sealRun, type RunCell } from '../src/format/chain.ts'
import { recordEverything } from './support/damaged-rows.ts'
import { relink } from './support/forged-ledger.ts'
import { makeFolder } from './support/temporary-folder.ts'
import { tamper, withRaw } from './support/raw-database.ts'
import { allVerified, lastSeq, recorded, verified, type Recorded } from './support/recorded.ts'
import { temporaryFile } from './support/temporary-folder.ts'

/** The event that most cases change. */
function inputSeq(database: Database, runId: RunId): number {
  const query = `select max(seq) as seq from event where run_id = ? and type = 'input_received'`
  return database.prepare<[string], { seq: number }>(query).get(runId)?.seq ?? 0
}

interface Change {
  /** The statement, on the event at `:seq` of `:run`. */
  readonly sql: string
  readonly what: string
  /** Where it is found, given the changed event's seq and the run's last; at the changed event where not given. */
  readonly foundAt?: (seq: number, last: number) => number
}

const atTheHead = (_seq: number, last: number): number => last
const ofEvent = 'where run_id = :run and seq = :seq'
const ofRun = 'where run_id = :run and :seq > 0'
const atHead = (sql: string, what: string): Change => ({ sql: `${sql} ${ofRun}`, what, foundAt: atTheHead })

/** One change for every column of the record. */
const columns: Readonly<Record<'event' | 'run', Readonly<Record<string, Change>>>> = {
  event: {
    pos: { sql: `update event set pos = 9999 ${ofEvent}`, what: 'pos', foundAt: (seq) => seq + 1 },
    run_id: { sql: `update event set run_id = 'elsewhere' ${ofEvent}`, what: 'seq' },
    seq: { sql: `update event set seq = 9999 ${ofEvent}`, what: 'seq' },
    type: { sql: `update event set type = 'tool_progress' ${ofEvent}`, what: 'hash' },
    turn: { sql: `update event set turn = 2 ${ofEvent}`, what: 'hash' },
    tool_call_id: { sql: `update event set tool_call_id = 'call_x' ${ofEvent}`, what: 'hash' },
    attempt: { sql: `update event set attempt = 1 ${ofEvent}`, what: 'hash' },
    at: { sql: `update event set at = at + 1 ${ofEvent}`, what: 'hash' },
    epoch: { sql: `update event set epoch = 2 ${ofEvent}`, what: 'hash' },
    v: { sql: `update event set v = 2 ${ofEvent}`, what: 'hash' },
    key_id: { sql: `update event set key_id = 'k' ${ofEvent}`, what: 'hash' },
    body: { sql: `update event set body = replace(body, 'warm', 'cold') ${ofEvent}`, what: 'hash' },
    salt: { sql: `update event set salt = 'AAAAAAAAAAAAAAAAAAAA' ${ofEvent}`, what: 'hash' },
    commitment: { sql: `update event set commitment = hash ${ofEvent}`, what: 'salt' },
    hash: { sql: `update event set hash = replace(hash, substr(hash, 9, 1), '-') ${ofEvent}`, what: 'hash' },
  },
  run: {
    pos: atHead('update run set pos = 9999', 'pos'),
    run_id: atHead(`update run set run_id = 'elsewhere'`, 'run'),
    head_seq: {
      sql: 'update run set head_seq = :seq where run_id = :run',
      what: 'head_seq',
      foundAt: atTheHead,
    },
    head_hash: atHead(`update run set head_hash = 'x'`, 'head_hash'),
    epoch: atHead('update run set epoch = 7', 'seal'),
    session_id: atHead(`update run set session_id = 'x', session_place = 1`, 'session'),
    session_place: atHead(`update run set session_id = 'x', session_place = 2`, 'session'),
    ended_at: atHead('update run set ended_at = ended_at + 1', 'ended_at'),
    history: atHead(`update run set history = 'x'`, 'history'),
    seal: atHead(`update run set seal = 'x'`, 'seal'),
  },
}

/** What is not part of the record: any process may take the lease of a run, or make it due. */
const unrecorded = ['lease_holder', 'lease_until', 'due_at']

const changes = Object.entries(columns).flatMap(([table, changed]) =>
  Object.entries(changed).map(([column, change]) => [`${table}.${column}`, change] as const),
)

async function brokenBy(
  { path, runId }: Recorded,
  change: (database: Database, seq: number) => void,
): Promise<{ broken: BrokenPlace | undefined; seq: number; last: number; verdict: RunVerdict }> {
  let [seq, last] = [0, 0]
  tamper(path, (database) => {
    seq = inputSeq(database, runId)
    last = lastSeq(database, runId)
    change(database, seq)
  })
  const verdict = await verified(path, runId)
  return { broken: verdict.broken, seq, last, verdict }
}

describe('verify on a ledger that was tampered with', () => {
  it.each(Object.entries(columns))('knows every column of %s', async (table, changed) => {
    const { path } = await recorded()
    const names = withRaw(path, (database) =>
      (database.pragma(`table_info(${table})`) as readonly { name: string }[]).map(({ name }) => name),
    ).filter((name) => !unrecorded.includes(name))
    expect(Object.keys(changed).toSorted()).toEqual(names.toSorted())
  })

  it.each(changes)('finds a changed %s, and where', async (_column, { sql, what, foundAt }) => {
    const record = await recorded()
    const { broken, seq, last, verdict } = await brokenBy(record, (database, changed) => {
      expect(database.prepare(sql).run({ run: record.runId, seq: changed }).changes).toBe(1)
    })
    expect(verdict.ok).toBe(false)
    expect(broken).toMatchObject({ runId: record.runId, seq: foundAt ? foundAt(seq, last) : seq, what })
    expect(broken?.expected).not.toBe(broken?.found)
    const { runs, store } = await allVerified(record.path)
    expect(store.ok).toBe(false)
    expect(runs.find(({ runId }) => runId === record.otherId)?.ok).toBe(true)
  })

  it('says nothing of what an event says', async () => {
    const record = await recorded()
    const { broken } = await brokenBy(record, (database, seq) => {
      database
        .prepare(`update event set body = '{"secret":"hunter2"}' ${ofEvent}`)
        .run({ run: record.runId, seq })
    })
    expect(JSON.stringify(broken)).not.toMatch(/secret|hunter2|Seoul/)
    expect(broken?.expected).toMatch(/^[\w-]{43}$/)
  })

  const cuts: readonly (readonly [string, string, string, (seq: number, last: number) => number])[] = [
    ['an event that was removed', `delete from event ${ofEvent}`, 'seq', (seq) => seq],
    ['a body without its salt', `update event set salt = null ${ofEvent}`, 'salt', (seq) => seq],
    [
      'content that was removed without a record',
      `update event set salt = null, commitment = 'x' ${ofEvent}`,
      'hash',
      (seq) => seq,
    ],
    [
      'an event that another one replaced',
      `insert or replace into event select pos, run_id, seq, type, turn, tool_call_id, attempt, at + 1, epoch, v, key_id, body, salt,
        commitment, hash from event ${ofEvent}`,
      'hash',
      (seq) => seq,
    ],
    ['a row that was added before the first', addedRow(0), 'event rows', atTheHead],
    ['a row that was added after the last', addedRow(9999), 'seq', (_seq, last) => last + 1],
  ]
  it.each(cuts)('finds %s', async (_name, sql, what, foundAt) => {
    const record = await recorded()
    const { broken, seq, last } = await brokenBy(record, (database, changed) => {
      expect(database.prepare(sql).run({ run: record.runId, seq: changed }).changes).toBe(1)
    })
    expect(broken).toMatchObject({ seq: foundAt(seq, last), what })
  })

  it.each(['hash', 'body', 'salt'])('finds two events whose %s was swapped', async (column) => {
    const record = await recorded()
    const { broken, seq } = await brokenBy(record, (database, changed) => {
      const value = database.prepare(`select ${column} from event where run_id = ? and seq = ?`).pluck()
      const write = database.prepare(`update event set ${column} = ? where run_id = ? and seq = ?`)
      const [left, right] = [value.get(record.runId, changed - 1), value.get(record.runId, changed)]
      write.run(right, record.runId, changed - 1)
      write.run(left, record.runId, changed)
    })
    expect(broken).toMatchObject({ seq: seq - 1, what: 'hash' })
  })

  it('finds a tail that was cut off', async () => {
    const record = await recorded()
    const { broken, seq } = await brokenBy(record, (database, from) => {
      database.prepare('delete from event where run_id = ? and seq > ?').run(record.runId, from)
    })
    expect(broken).toMatchObject({ seq, what: 'head_seq', expected: String(seq) })
  })

  it('finds a tail that was cut off with the head moved back, by the holes that it leaves', async () => {
    const record = await recorded()
    const { verdict } = await brokenBy(record, (database, seq) => {
      database.prepare('delete from event where run_id = ? and seq > ?').run(record.runId, seq)
      reseal(database, record.runId, seq)
    })
    expect(verdict.ok).toBe(true)
    expect((await allVerified(record.path)).store).toMatchObject({
      ok: false,
      broken: { what: 'event rows' },
    })
  })

  it('finds a run whose row claims an older epoch than its events, though it is sealed', async () => {
    const record = await recorded()
    const ledger = sqliteLedger(record.path)
    const head = await ledger.acquire(record.otherId)
    await ledger.close()
    const { broken, last } = await brokenBy(record, (database) => {
      database.prepare('update run set epoch = 0 where run_id = ?').run(record.runId)
      reseal(database, record.runId, lastSeq(database, record.runId))
    })
    expect(broken).toMatchObject({ seq: last, what: 'epoch', expected: '1 or more', found: '0' })
    expect(head.epoch).toBe(2)
    expect(await verified(record.path, record.otherId)).toMatchObject({ ok: true })
  })

  it('finds a run that was removed without a trace, by the hole that it leaves', async () => {
    const { path, runId } = await recorded()
    tamper(path, (database) => {
      database.prepare('delete from event where run_id = ?').run(runId)
      database.prepare('delete from run where run_id = ?').run(runId)
    })
    const { runs, store } = await allVerified(path)
    expect(runs.map(({ ok }) => ok)).toEqual([true])
    expect(store).toMatchObject({ ok: false, brokenRuns: 0, broken: { what: 'event rows' } })
  })

  it('finds events whose run lost its row', async () => {
    const { path, runId, otherId } = await recorded()
    tamper(path, (database) => database.prepare('delete from run where run_id = ?').run(runId))
    const { runs, store } = await allVerified(path)
    expect(runs.map(({ runId: id, ok, broken }) => [id, ok, broken?.what])).toEqual([
      [otherId, true, undefined],
      [runId, false, 'run'],
    ])
    expect(store).toMatchObject({ ok: false, runs: 2, brokenRuns: 1 })
  })

  it.each(['9007199254740991', '9223372036854775807'])(
    'finds a run whose row was put at %s, where no list reaches it',
    async (place) => {
      const { path, runId, otherId } = await recorded()
      tamper(path, (database) => {
        database.prepare(`update run set pos = ${place} where run_id = ?`).run(runId)
        database.prepare(`update event set body = '{}' where run_id = ?`).run(runId)
      })
      const { runs, store } = await allVerified(path)
      expect(runs.map(({ runId: id, ok }) => [id, ok])).toEqual([
        [otherId, true],
        [runId, false],
      ])
      expect(store).toMatchObject({ ok: false, runs: 2, brokenRuns: 1 })
    },
  )

  describe('with a session of which something was redacted', () => {
    const path = makeFolder('runs.db')
    beforeAll(async () => {
      const ledger = sqliteLedger(path)
      await recordEverything(ledger)
      await ledger.close()
    })
    const changed = (sql: string): string => {
      const copy = temporaryFile()
      copyFileSync(path, copy)
      tamper(copy, (database) => expect(database.prepare(sql).run().changes).toBe(1))
      return copy
    }

    it('finds a removal that was put before the first one', async () => {
      const copy = changed('update removal set pos = -1 where pos = (select max(pos) from removal)')
      expect((await allVerified(copy)).store).toMatchObject({ ok: false })
    })

    it.each(['{"sealed":', '{"sealed":null}', '{"sealed":1,"sum":2}', ''])(
      'finds that a message a run begins with is %j',
      async (message) => {
        const copy = changed(
          `update history set message = '${message}' where digest = (select history from run where session_place = 3)`,
        )
        const { runs, store } = await allVerified(copy)
        expect(runs.filter(({ ok }) => !ok).length).toBe(1)
        expect(store).toMatchObject({ ok: false, broken: { what: 'history' } })
      },
    )
  })

  it.each([
    ['a rule that was removed', 'drop trigger event_stays', 'trigger event_stays', 'missing'],
    ['a rule that was weakened', weakened(), 'trigger event_stays', 'another'],
    [
      'a rule that was added',
      'create trigger extra after insert on inbox begin select 1; end',
      'trigger extra',
      'one that was added',
    ],
    ['an index that was removed', 'drop index event_call', 'index event_call', 'missing'],
  ])('finds %s', async (_name, sql, what, found) => {
    const { path } = await recorded()
    withRaw(path, (database) => database.exec(sql))
    const { runs, store } = await allVerified(path)
    expect(runs.map(({ ok }) => ok)).toEqual([true, true])
    expect(store).toMatchObject({ ok: false, brokenRuns: 0, broken: { what, found } })
  })

  /** Changes the text of a rule beneath SQLite, as a broken disk does. */
  function rewriteSchema(path: string, name: string, text: string, other: string): void {
    withRaw(path, (database) => {
      database.unsafeMode()
      database.pragma('writable_schema = on')
      const update = database.prepare('update sqlite_schema set sql = replace(sql, ?, ?) where name = ?')
      expect(update.run(text, other, name).changes).toBe(1)
    })
  }

  it('reads and verifies a file whose rules are damaged, and nothing is appended to it', async () => {
    const { path, runId } = await recorded()
    rewriteSchema(path, 'run_advances', 'new.epoch', 'new.epic')
    const { runs, store } = await allVerified(path)
    expect(runs.map(({ ok }) => ok)).toEqual([true, true])
    expect(store).toMatchObject({ ok: false, broken: { what: 'trigger run_advances', found: 'another' } })
    const ledger = sqliteLedger(path)
    const seq = (await ledger.head(runId))?.seq ?? 0
    const next = stampFacts(runId, [sampleFacts(runId).guardrail_tripped], { afterSeq: seq })
    const append = ledger.append(runId, { expectedSeq: seq, epoch: 1 }, next, { durability: 'barrier' })
    await expect(append).rejects.toThrow(LedgerDamagedError)
    expect(await ledger.head(runId)).toEqual({ seq, epoch: 1 })
    await ledger.close()
  })

  it('tells of a file whose tables are damaged in the verdict of the store', async () => {
    const { path } = await recorded()
    rewriteSchema(path, 'run', 'head_seq', 'head_sex')
    const { runs, store } = await allVerified(path)
    expect(runs).toEqual([])
    expect(store).toMatchObject({ ok: false, broken: { what: 'pages', expected: 'readable' } })
  })

  it('leaves indexes and views that others add in peace', async () => {
    const { path } = await recorded()
    withRaw(path, (database) => {
      database.exec('create view by_type as select type, count(*) as events from event group by type')
      database.exec('create index mine on event (at, type)')
    })
    expect((await allVerified(path)).store.ok).toBe(true)
  })

  it('cannot find a forgery whose maker computed every digest anew: only a checkpoint kept elsewhere can', async () => {
    const { path, runId } = await recorded()
    tamper(path, (database) => {
      relink(database, runId, (row) => ({
        ...row,
        body: row.body.replace('"reason":"answered"', '"reason":"refused"'),
      }))
    })
    const { runs, store } = await allVerified(path)
    expect(runs.map(({ ok }) => ok)).toEqual([true, true])
    expect(store.ok).toBe(true)
  })
})

function addedRow(seq: number): string {
  return `insert into event (run_id, seq, type, turn, at, epoch, v, body, salt, hash)
    select run_id, ${seq}, type, turn, at, epoch, v, body, salt, hash from event ${ofEvent}`
}

function weakened(): string {
  return `drop trigger event_stays;
    create trigger event_stays before update on event when new.seq < 0 begin select raise(abort, 'tallystick: no'); end`
}

/** Makes the run's row agree with the event at which it is to end. */
function reseal(database: Database, runId: RunId, seq: number): void {
  const run = database.prepare<[string], RunCell>('select * from run where run_id = ?').get(runId) as RunCell
  const { hash, type, at } = database
    .prepare<[string, number], { hash: string; type: string; at: number }>(
      'select hash, type, at from event where run_id = ? and seq = ?',
    )
    .get(runId, seq) as { hash: string; type: string; at: number }
  const cell = { ...run, head_seq: seq, head_hash: hash, ended_at: type === 'run_finished' ? at : null }
  database
    .prepare('update run set head_seq = ?, head_hash = ?, ended_at = ?, seal = ? where run_id = ?')
    .run(seq, hash, cell.ended_at, sealRun(cell), runId)
}
