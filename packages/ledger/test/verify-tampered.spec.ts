import { LedgerDamagedError, type RunId } from '@tallystick/core'
import { everyFact, stamped } from '@tallystick/core/testing'
import type { BrokenPlace, RunVerdict } from '@tallystick/ledger'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import type { Database } from 'better-sqlite3'
import { describe, expect, it } from 'vitest'
import { commitmentOf, linkHash, rowDigest } from '../src/record/chain.ts'
import type { Envelope } from '../src/record/envelope.ts'
import { longRun } from './support/long-run.ts'
import { tamper, withRaw } from './support/raw-database.ts'
import { allVerified, lastSeq, recorded, verified, type Recorded } from './support/recorded.ts'
import { emptyLedgerFile } from './support/temporary-folder.ts'

/** The event that most cases change: it has a row of its own, and so has the one before it. */
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
const ofPayload = `where pos = (select pos from event ${ofEvent})`

/** One change for every column of the tables that the chain covers, on rows that hold one event. */
const columns: Readonly<Record<'event' | 'payload' | 'run', Readonly<Record<string, Change>>>> = {
  event: {
    pos: { sql: `update event set pos = 9999 ${ofEvent}`, what: 'payload' },
    run_id: { sql: `update event set run_id = 'elsewhere' ${ofEvent}`, what: 'seq' },
    first_seq: { sql: `update event set first_seq = seq - 1 ${ofEvent}`, what: 'seq' },
    seq: { sql: `update event set seq = 9999 ${ofEvent}`, what: 'seq' },
    epoch: { sql: `update event set epoch = 2 ${ofEvent}`, what: 'hash' },
    type: { sql: `update event set type = 'tool_progress' ${ofEvent}`, what: 'hash' },
    v: { sql: `update event set v = 2 ${ofEvent}`, what: 'hash' },
    turn: { sql: `update event set turn = 2 ${ofEvent}`, what: 'hash' },
    tool_call_id: { sql: `update event set tool_call_id = 'call_x' ${ofEvent}`, what: 'hash' },
    at: { sql: `update event set at = at + 1 ${ofEvent}`, what: 'hash' },
    once_key: { sql: `update event set once_key = 'twice' ${ofEvent}`, what: 'once_key' },
    body_commit: { sql: `update event set body_commit = zeroblob(32) ${ofEvent}`, what: 'payload' },
    hash: { sql: `update event set hash = zeroblob(32) ${ofEvent}`, what: 'hash' },
  },
  payload: {
    pos: { sql: `update payload set pos = 9999 ${ofPayload}`, what: 'payload' },
    salt: { sql: `update payload set salt = zeroblob(16) ${ofPayload}`, what: 'payload' },
    body: {
      sql: `update payload set body = cast(replace(cast(body as text), 'warm', 'cold') as blob) ${ofPayload}`,
      what: 'payload',
    },
  },
  run: {
    run_id: {
      sql: `update run set run_id = 'elsewhere' where run_id = :run and :seq > 0`,
      what: 'run',
      foundAt: atTheHead,
    },
    pos: {
      sql: 'update run set pos = 9999 where run_id = :run and :seq > 0',
      what: 'pos',
      foundAt: atTheHead,
    },
    head_seq: {
      sql: 'update run set head_seq = :seq where run_id = :run',
      what: 'head_seq',
      foundAt: atTheHead,
    },
    head_hash: {
      sql: 'update run set head_hash = zeroblob(32) where run_id = :run and :seq > 0',
      what: 'head_hash',
      foundAt: atTheHead,
    },
    epoch: {
      sql: 'update run set epoch = 7 where run_id = :run and :seq > 0',
      what: 'seal',
      foundAt: atTheHead,
    },
    seal: {
      sql: 'update run set seal = zeroblob(32) where run_id = :run and :seq > 0',
      what: 'seal',
      foundAt: atTheHead,
    },
    session_id: {
      sql: `update run set session_id = 'x', session_place = 1 where run_id = :run and :seq > 0`,
      what: 'session',
      foundAt: atTheHead,
    },
    session_place: {
      sql: `update run set session_id = 'x', session_place = 2 where run_id = :run and :seq > 0`,
      what: 'session',
      foundAt: atTheHead,
    },
  },
}

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
    )
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

  it('given a row of several events, when it claims to be recorded once, then verify finds it there', async () => {
    const path = emptyLedgerFile()
    const ledger = sqliteLedger(path)
    const runId = await longRun(ledger, 3)
    await ledger.close()
    expect((await verified(path, runId)).ok).toBe(true)
    let seq = 0
    tamper(path, (database) => {
      const query = 'update event set once_key = ? where pos in (PLACE) returning first_seq'
      const place = 'select pos from event where first_seq is not null order by pos limit 1'
      const changed = database.prepare<[string], { first_seq: number }>(query.replace('PLACE', place))
      seq = changed.get('twice')?.first_seq ?? 0
    })
    const { broken } = await verified(path, runId)
    expect(broken).toEqual({ runId, seq, what: 'once_key', expected: 'none', found: 'twice' })
  })

  it('says nothing of what an event says', async () => {
    const record = await recorded()
    const { broken } = await brokenBy(record, (database, seq) => {
      database
        .prepare(`update payload set body = cast('{"secret":"hunter2"}' as blob) ${ofPayload}`)
        .run({ run: record.runId, seq })
    })
    expect(JSON.stringify(broken)).not.toMatch(/secret|hunter2|Seoul/)
    expect(broken?.expected).toMatch(/^[0-9a-f]{64}$/)
  })

  const cuts: readonly (readonly [string, string, string, (seq: number, last: number) => number])[] = [
    ['an event that was removed', `delete from event ${ofEvent}`, 'seq', (seq) => seq],
    ['a payload that was removed', `delete from payload ${ofPayload}`, 'payload', (seq) => seq],
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

  it.each([
    ['event', 'hash', 'hash'],
    ['event', 'body_commit', 'payload'],
    ['payload', 'body', 'payload'],
    ['payload', 'salt', 'payload'],
  ])('finds two events whose %s.%s was swapped', async (table, column, what) => {
    const record = await recorded()
    const { broken, seq } = await brokenBy(record, (database, changed) => {
      const place = '(select pos from event where run_id = ? and seq = ?)'
      const value = database.prepare(`select ${column} from ${table} where pos = ${place}`).pluck()
      const write = database.prepare(`update ${table} set ${column} = ? where pos = ${place}`)
      const [left, right] = [value.get(record.runId, changed - 1), value.get(record.runId, changed)]
      write.run(right, record.runId, changed - 1)
      write.run(left, record.runId, changed)
    })
    expect(broken).toMatchObject({ seq: seq - 1, what })
  })

  it('finds a tail that was cut off', async () => {
    const record = await recorded()
    const { broken, seq } = await brokenBy(record, (database, from) => {
      database
        .prepare('delete from payload where pos in (select pos from event where run_id = ? and seq > ?)')
        .run(record.runId, from)
      database.prepare('delete from event where run_id = ? and seq > ?').run(record.runId, from)
    })
    expect(broken).toMatchObject({ seq, what: 'head_seq', expected: String(seq) })
  })

  it('finds a tail that was cut off with the head moved back, by the holes that it leaves', async () => {
    const record = await recorded()
    const { verdict } = await brokenBy(record, (database, seq) => {
      database
        .prepare('delete from payload where pos in (select pos from event where run_id = ? and seq > ?)')
        .run(record.runId, seq)
      database.prepare('delete from event where run_id = ? and seq > ?').run(record.runId, seq)
      database.prepare('delete from fact').run()
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
      database.prepare('delete from payload where pos in (select pos from event where run_id = ?)').run(runId)
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

  it.each([
    ['a rule that was removed', 'drop trigger event_stays', 'trigger event_stays', 'missing'],
    [
      'the rule about the end of an inbox, removed',
      'drop trigger run_ends_read',
      'trigger run_ends_read',
      'missing',
    ],
    ['a rule that was weakened', weakened(), 'trigger event_stays', 'another'],
    [
      'a rule that was added',
      'create trigger extra after insert on inbox begin select 1; end',
      'trigger extra',
      'one that was added',
    ],
    ['an index that was removed', 'drop index event_once', 'index event_once', 'missing'],
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
    rewriteSchema(path, 'event_follows', 'new.seq', 'new.sex')
    const { runs, store } = await allVerified(path)
    expect(runs.map(({ ok }) => ok)).toEqual([true, true])
    expect(store).toMatchObject({ ok: false, broken: { what: 'trigger event_follows', found: 'another' } })
    const ledger = sqliteLedger(path)
    const seq = (await ledger.head(runId))?.seq ?? 0
    const next = stamped(runId, [everyFact(runId).guardrail_tripped], { afterSeq: seq })
    const append = ledger.append(runId, { expectedSeq: seq, epoch: 1 }, next, { durability: 'barrier' })
    await expect(append).rejects.toThrow(LedgerDamagedError)
    expect(await ledger.head(runId)).toEqual({ seq, epoch: 1 })
    await ledger.close()
  })

  it('tells of a file whose tables are damaged in the verdict of the store', async () => {
    const { path } = await recorded()
    rewriteSchema(path, 'run', '"head_seq"', '"head_sex"')
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
      const seq = lastSeq(database, runId)
      const body = Buffer.from(
        String(
          database
            .prepare(`select cast(body as text) as body from payload ${ofPayload}`)
            .pluck()
            .get({ run: runId, seq }),
        ).replace('"reason":"answered"', '"reason":"refused"'),
      )
      const salt = Buffer.alloc(16, 7)
      const bodyCommit = commitmentOf(salt, body)
      const [before, row] = database
        .prepare<[string, number], Record<string, never>>(
          'select * from event where run_id = ? and seq >= ? order by seq',
        )
        .all(runId, seq - 1)
      const envelope = { ...row, runId } as unknown as Envelope
      const hash = linkHash(before?.hash as unknown as Buffer, envelope, bodyCommit)
      database
        .prepare(`update payload set salt = :salt, body = :body ${ofPayload}`)
        .run({ run: runId, seq, salt, body })
      database
        .prepare(`update event set body_commit = :bodyCommit, hash = :hash ${ofEvent}`)
        .run({ run: runId, seq, bodyCommit, hash })
      reseal(database, runId, seq)
    })
    const { runs, store } = await allVerified(path)
    expect(runs.map(({ ok }) => ok)).toEqual([true, true])
    expect(store.ok).toBe(true)
  })
})

function addedRow(seq: number): string {
  return `insert into event (run_id, seq, epoch, type, v, turn, tool_call_id, at, once_key, body_commit, hash)
    select run_id, ${seq}, epoch, type, v, turn, null, at, null, body_commit, hash from event ${ofEvent}`
}

function weakened(): string {
  return `drop trigger event_stays;
    create trigger event_stays before update on event when new.seq < 0 begin select raise(abort, 'tallystick: no'); end`
}

/** Makes the run's row agree with the event at which it is to end. */
function reseal(database: Database, runId: RunId, seq: number): void {
  const { pos, epoch } = database
    .prepare<[string], { pos: number; epoch: number }>('select pos, epoch from run where run_id = ?')
    .get(runId) ?? { pos: 0, epoch: 0 }
  const headHash = database
    .prepare('select hash from event where run_id = ? and seq = ?')
    .pluck()
    .get(runId, seq) as Buffer
  const seal = rowDigest({ runId, pos, headSeq: seq, headHash, epoch })
  database
    .prepare('update run set head_seq = ?, head_hash = ?, seal = ? where run_id = ?')
    .run(seq, headHash, seal, runId)
}
