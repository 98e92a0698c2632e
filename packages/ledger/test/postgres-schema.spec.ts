import { LedgerUnavailableError, type Ledger, LedgerDamagedError, type RuntimeEvent } from '@tallystick/core'
import { verifyLedger, verifyRun } from '@tallystick/ledger'
import { sampleFacts, sampleCallId, sampleRunId, stampFacts } from '@tallystick/testkit'
import { describe, expect, it } from 'vitest'
import { objectsAsMade, listSchemaObjects } from '../src/postgres/audit.ts'
import type { Statement } from '../src/postgres/connections.ts'
import { schemaVersion } from '../src/postgres/schema.ts'
import { readRows } from '../src/store/records.ts'
import { storeOf } from './support/lent-store.ts'
import {
  connectionString,
  freshSchema,
  hasPostgres,
  openLedger,
  rowsOf,
  withClient,
} from './support/postgres-database.ts'
import { allVerifiedIn, recordedSchema } from './support/postgres-recorded.ts'
import { recordTakenOverRun } from './support/taken-over-run.ts'

const run = sampleRunId(1)
const facts = sampleFacts(run)

async function ledgerSchema(schema = freshSchema()): Promise<string> {
  await recordTakenOverRun(openLedger(schema), run)
  return schema
}

/** Sends a statement as a user of an SQL shell does, who has named the schema before. */
function inSchema<T>(
  schema: string,
  work: (send: (text: string) => Promise<{ rows: unknown[]; rowCount: number | null }>) => Promise<T>,
): Promise<T> {
  return withClient(async (client) => {
    await client.query(`set search_path = "${schema.replaceAll('"', '""')}"`)
    return work((text) => client.query(text))
  })
}

const tables = ['run', 'event', 'inbox', 'history', 'removal']

// Only a platform without Postgres leaves them out, and the run says so.
describe.skipIf(!hasPostgres)('the schema of a ledger in Postgres', () => {
  it('is the one that verify knows, whatever the schema is called', async () => {
    for (const schema of [freshSchema(), `Odd "name's" ${process.pid}`, `run_${process.pid}.x`]) {
      await ledgerSchema(schema)
      const quotedSchema = `"${schema.replaceAll('"', '""')}"`
      const connections = {
        patiently: async <Row>({ text, values }: Statement): Promise<readonly Row[]> =>
          (await rowsOf(text, values)) as unknown as readonly Row[],
      }
      expect(await listSchemaObjects(connections, { schema, quotedSchema })).toEqual(objectsAsMade)
    }
  })

  // What no user may do, not even with an SQL shell.
  const forbidden = [
    `update event set at = 1 where seq = 2`,
    `update event set seq = 9 where seq = 4`,
    `delete from event where seq = 4`,
    `truncate event`,
    `truncate run, event, inbox`,
    `merge into event using (select 2 as seq) as other on event.seq = other.seq when matched then delete`,
    `insert into event select * from event where seq = 2 on conflict (pos) do update set at = 1`,
    `insert into event (pos, run_id, seq, type, turn, tool_call_id, attempt, at, epoch, v, key_id, body, salt, commitment, hash) select pos + 100, run_id, seq + 4, type, turn, null, attempt, at, epoch, v, key_id, body, salt, commitment, hash from event where seq = 3`,
    `insert into event (pos, run_id, seq, type, turn, tool_call_id, attempt, at, epoch, v, key_id, body, salt, commitment, hash) select pos + 100, run_id, 5, type, turn, null, attempt, at, 2, v, key_id, body, salt, commitment, hash from event where seq = 3`,
    `insert into event (pos, run_id, seq, type, turn, tool_call_id, attempt, at, epoch, v, key_id, body, salt, commitment, hash) select pos + 100, run_id, 0, type, turn, null, attempt, at, 2, v, key_id, body, salt, commitment, hash from event where seq = 3`,
    `with moved as (update run set head_seq = 6) insert into event (pos, run_id, seq, type, turn, tool_call_id, attempt, at, epoch, v, key_id, body, salt, commitment, hash) select pos + 100, run_id, 6, type, turn, null, attempt, at, 2, v, key_id, body, salt, commitment, hash from event where seq = 3`,
    `with moved as (update run set head_seq = 5) insert into event (pos, run_id, seq, type, turn, tool_call_id, attempt, at, epoch, v, key_id, body, salt, commitment, hash) select pos + 100, run_id, 5, type, turn, null, attempt, at, 1, v, key_id, body, salt, commitment, hash from event where seq = 3`,
    `update event set body = '{}' where seq = 2`,
    `update event set salt = null, commitment = hash where seq = 2`,
    `truncate run cascade`,
    `truncate history cascade`,
    `update run set head_seq = 3`,
    `update run set epoch = 1`,
    `update run set head_hash = ''`,
    `update run set run_id = 'other'`,
    `update run set pos = 9`,
    `update run set session_id = 'other'`,
    `update run set session_place = 7`,
    `delete from inbox`,
    `truncate inbox`,
    `update inbox set command = '{}' where key = 'k2'`,
    `update inbox set taken_seq = null where key = 'k1'`,
    `update inbox set taken_seq = 9 where key = 'k1'`,
  ]
  it('refuses what no user may do, also to a session that replicates', async () => {
    const schema = await ledgerSchema()
    await inSchema(schema, async (send) => {
      const contents = async (): Promise<readonly unknown[]> => {
        const all: unknown[] = []
        for (const table of tables) all.push((await send(`select * from ${table}`)).rows)
        return all
      }
      const before = await contents()
      for (const role of ['origin', 'replica']) {
        await send(`set session_replication_role = ${role}`)
        for (const statement of forbidden) {
          const said = await send(statement).then(() => 'nothing', String)
          expect(`${statement} → ${said}`).toMatch(/ → error: tallystick: /)
        }
      }
      expect(await contents()).toEqual(before)
    })
  })

  it.each([
    ['a second start of an attempt', 2],
    ['a second result of a call', 3],
  ])('keeps out %s by an index, whatever a writer believes', async (_name, seq) => {
    const schema = await ledgerSchema()
    await inSchema(schema, async (send) => {
      const second = `with moved as (update run set head_seq = 5)
        insert into event (pos, run_id, seq, type, turn, tool_call_id, attempt, at, epoch, v, key_id, body, salt, commitment, hash)
        select 99, run_id, 5, type, turn, tool_call_id, attempt, at, 2, v, key_id, body, salt, commitment, hash from event where seq = ${seq}`
      await expect(send(second)).rejects.toThrow(/"event_call"/)
    })
  })

  it('lets content go when its removal is on record, and a run that was dropped; neither comes back', async () => {
    const schema = await ledgerSchema()
    await inSchema(schema, async (send) => {
      const removal = (pos: number, seq: number, kind: string): string =>
        `insert into removal values (${pos}, '${run}', ${seq}, '${kind}', 1, 'me', null, '', '')`
      const blank = (seq: number): string =>
        `update event set body = '{}', salt = null, commitment = hash where seq = ${seq}`
      await expect(send(blank(2))).rejects.toThrow(/that is on record/)
      await send(removal(1, 2, 'redacted'))
      await expect(send(blank(3))).rejects.toThrow(/that is on record/)
      expect((await send(blank(2))).rowCount).toBe(1)
      await expect(send(blank(2))).rejects.toThrow(/loses its content once/)
      await expect(send('delete from event')).rejects.toThrow(/never removed/)
      await expect(send('delete from inbox')).rejects.toThrow(/known for ever/)
      await expect(send('delete from removal')).rejects.toThrow(/stay as they were written/)
      await expect(send(`update removal set by = 'you'`)).rejects.toThrow(/stay as they were written/)
      await send(removal(2, 4, 'dropped'))
      await send('create temp table kept as select * from run')
      for (const table of ['inbox', 'event', 'run']) await send(`delete from ${table}`)
      await expect(send('insert into run select * from kept')).rejects.toThrow(/does not come back/)
    })
  })
})

async function commentOf(schema: string): Promise<string | undefined> {
  const [row] = await rowsOf<{ comment: string }>(
    `select obj_description('${schema}.run'::regclass, 'pg_class') as comment`,
  )
  return row?.comment
}

/** What every use of a ledger is refused with. */
async function refusalOf(ledger: Ledger): Promise<string> {
  const start = stampFacts(run, [facts.run_started])
  const append = ledger.append(run, { expectedSeq: 0, epoch: 1 }, start, { durability: 'barrier' })
  await expect(append).rejects.toThrow(LedgerUnavailableError)
  return await append.then(String, String)
}

// Only a platform without Postgres leaves them out, and the run says so.
describe.skipIf(!hasPostgres)('a ledger that is not there yet', () => {
  it.each(['read committed', 'serializable'])(
    'is made once where many begin at once, also where transactions are %s',
    async (isolation) => {
      const url = new URL(connectionString)
      const option = isolation.replaceAll(' ', '\\ ')
      url.searchParams.set('options', `-c default_transaction_isolation=${option}`)
      for (let round = 0; round < 3; round++) {
        const schema = freshSchema()
        const ledgers = Array.from({ length: 8 }, () => openLedger(schema, { connectionString: url.href }))
        expect(await Promise.all(ledgers.map((ledger) => ledger.head(run)))).toEqual(
          ledgers.map(() => undefined),
        )
        expect(await commentOf(schema)).toBe(`tallystick ledger, format ${schemaVersion}`)
        for (const ledger of ledgers) await ledger.close()
      }
    },
  )

  it('is read in pages that end where their bodies grow large', async () => {
    const schema = freshSchema()
    const ledger = openLedger(schema)
    const data = Array.from({ length: 40 }, () => 'x'.repeat(10_000))
    const large = { ...facts.tool_progress, data }
    const events = stampFacts(run, [facts.run_started, ...Array.from({ length: 9 }, () => large)])
    await ledger.append(run, { expectedSeq: 0, epoch: 1 }, events, { durability: 'lazy' })
    const lengthFrom = async (fromSeq: number): Promise<number> =>
      (await readRows(storeOf(ledger).database, { runId: run, fromSeq, toSeq: 9_999 })).length
    expect([await lengthFrom(1), await lengthFrom(5), await lengthFrom(9)]).toEqual([4, 3, 2])
    expect(await Array.fromAsync(ledger.read(run))).toEqual(events)
    const many = stampFacts(
      run,
      Array.from({ length: 600 }, () => facts.cancel_requested),
      { afterSeq: 10 },
    )
    await ledger.append(run, { expectedSeq: 10, epoch: 1 }, many, { durability: 'lazy' })
    expect(await lengthFrom(11)).toBe(512)
    expect(await Array.fromAsync(ledger.read(run, { fromSeq: 11 }))).toEqual(many)
  })
})

// Only a platform without Postgres leaves them out, and the run says so.
describe.skipIf(!hasPostgres)('opening what is not a ledger', () => {
  it('refuses a schema in which tables of ours belong to another role, and leaves it as it is', async () => {
    for (const table of ['event (id int8)', 'run (account text, amount int8)']) {
      const schema = freshSchema()
      await rowsOf(`create schema ${schema}`)
      await rowsOf(`create table ${schema}.${table}`)
      for (const readOnly of [false, true]) {
        expect(await refusalOf(openLedger(schema, { readOnly }))).toMatch(
          /^LedgerUnavailableError: The schema at .* has tables of another application \((event|run)\).*left as it is/,
        )
      }
      expect(await rowsOf('select from pg_tables where schemaname = $1', [schema])).toHaveLength(1)
    }
  })

  it('works beside tables of others with other names', async () => {
    const schema = freshSchema()
    await rowsOf(`create schema ${schema}`)
    await rowsOf(`create table ${schema}.customer (name text)`)
    await ledgerSchema(schema)
    expect(await openLedger(schema).head(run)).toEqual({ seq: 4, epoch: 2 })
  })

  it('refuses a ledger of a newer version, and leaves it as it is', async () => {
    const schema = await ledgerSchema()
    await rowsOf(`comment on table ${schema}.run is 'tallystick ledger, format ${schemaVersion + 1}'`)
    for (const readOnly of [false, true]) {
      expect(await refusalOf(openLedger(schema, { readOnly }))).toMatch(
        new RegExp(
          `format ${schemaVersion + 1}, and this library knows formats up to ${schemaVersion}\\..*Update @tallystick/ledger`,
        ),
      )
    }
    expect(await commentOf(schema)).toBe(`tallystick ledger, format ${schemaVersion + 1}`)
  })

  it('makes nothing where it is to read only, and says what is missing', async () => {
    const schema = freshSchema()
    expect(await refusalOf(openLedger(schema, { readOnly: true }))).toMatch(
      /There is no ledger at .*does not create one/,
    )
    await expect(openLedger(schema, { readOnly: true }).head(run)).rejects.toMatchObject({ reason: 'absent' })
    expect(await rowsOf('select from pg_namespace where nspname = $1', [schema])).toEqual([])
  })

  it('refuses a database whose encoding cannot hold every text', async () => {
    const database = `ascii_${process.pid}`
    await rowsOf(`create database ${database} encoding 'SQL_ASCII' locale 'C' template template0`)
    const url = new URL(connectionString)
    url.pathname = database
    expect(await refusalOf(openLedger(freshSchema(), { connectionString: url.href }))).toMatch(
      /has the encoding SQL_ASCII, which cannot hold every text/,
    )
  })

  it('reads and writes with no more rights than the README lists', async () => {
    const schema = await ledgerSchema()
    const [writer, reader] = [`writer_${process.pid}`, `reader_${process.pid}`]
    await withClient(async (client) => {
      for (const role of [writer, reader]) await client.query(`create role ${role} login password 'secret'`)
      await client.query(`grant usage on schema ${schema} to ${writer}, ${reader}`)
      await client.query(`grant select on all tables in schema ${schema} to ${writer}, ${reader}`)
      await client.query(
        `grant insert on ${tables
          .slice(0, 4)
          .map((table) => `${schema}.${table}`)
          .join(', ')} to ${writer}`,
      )
      await client.query(`grant update on ${schema}.run, ${schema}.inbox to ${writer}`)
      await client.query(`grant usage on all sequences in schema ${schema} to ${writer}`)
    })
    const as = (role: string): string => {
      const url = new URL(connectionString)
      url.username = role
      url.password = 'secret'
      return url.href
    }
    const ledger = openLedger(schema, { connectionString: as(writer) })
    const head = await ledger.acquire(run)
    await ledger.put(run, { key: 'k9', command: { type: 'cancel' }, at: 1 })
    const started = { ...facts.tool_started, toolCallId: sampleCallId(run, 2) }
    const more = [facts.guardrail_tripped, facts.usage_updated, started]
    const next = stampFacts(run, more, { afterSeq: 4, epoch: head.epoch })
    await ledger.append(run, { expectedSeq: 4, epoch: head.epoch }, next, {
      durability: 'barrier',
      consumedInboxKeys: ['k9'],
    })
    await ledger.append(run, { expectedSeq: 7, epoch: head.epoch }, [], { durability: 'barrier' })
    const other = openLedger(schema, { connectionString: as(reader), readOnly: true })
    expect(await Array.fromAsync(other.read(run, { fromSeq: 5 }))).toEqual(next)
    expect((await Array.fromAsync(verifyLedger(other))).at(-1)).toMatchObject({ scope: 'store', runs: 1 })
    const refused = openLedger(schema, { connectionString: as(reader) }).acquire(run)
    await expect(refused).rejects.toThrow(/permission denied.*Grant it what the README lists/)
    await expect(other.acquire(run)).rejects.toThrow(/was opened with readOnly/)
  })
})

// Only a platform without Postgres leaves them out, and the run says so.
describe.skipIf(!hasPostgres)('verify on a schema in Postgres whose rules were changed', () => {
  const rules: readonly (readonly [string, string, string, string])[] = [
    ['a rule that was removed', 'drop trigger event_stays on event', 'trigger event.event_stays', 'missing'],
    [
      'a rule that was put to sleep',
      'alter table run disable trigger run_advances',
      'trigger run.run_advances',
      'another',
    ],
    [
      'a rule that sleeps while a session replicates',
      'alter table run enable trigger run_advances',
      'trigger run.run_advances',
      'another',
    ],
    [
      'a rule that was weakened',
      `create or replace function refuse() returns trigger language plpgsql as $$ begin return new; end $$`,
      'function refuse',
      'another',
    ],
    [
      'a trigger that was added',
      `create trigger extra before insert on event for each row execute function refuse('x')`,
      'trigger event.extra',
      'one that was added',
    ],
    [
      'a rewriting rule that was added',
      'create rule quiet as on insert to inbox do instead nothing',
      'rewrite inbox.quiet',
      'one that was added',
    ],
    ['an index that was removed', 'drop index event_call', 'index event_call', 'missing'],
    [
      'rows that are hidden from some',
      'alter table event enable row level security',
      'table event',
      'another',
    ],
    ['a table that a crash empties', 'alter table inbox set unlogged', 'table inbox', 'another'],
    [
      'a column that takes nothing for a value',
      'alter table run alter seal drop not null',
      'column run.seal',
      'another',
    ],
  ]
  it.each(rules)('finds %s', async (_name, sql, what, found) => {
    const schema = freshSchema()
    await openLedger(schema).head(sampleRunId(1))
    await withClient(async (client) => {
      await client.query(`set search_path = ${schema}`)
      await client.query(sql)
    })
    const { store } = await allVerifiedIn(schema)
    expect(store).toMatchObject({ ok: false, brokenRuns: 0, broken: { what, found } })
  })

  it('leaves columns, indexes and views that others add in peace', async () => {
    const { schema } = await recordedSchema()
    await withClient(async (client) => {
      await client.query(`set search_path = ${schema}`)
      await client.query('create view by_type as select type, count(*) as events from event group by type')
      await client.query('create index mine on event (at, type)')
      await client.query('alter table run add column note text')
    })
    expect((await allVerifiedIn(schema)).store.ok).toBe(true)
  })

  it('appends nothing where a rule stops what the head allows, and says that the ledger is damaged', async () => {
    const { schema, runId } = await recordedSchema()
    const ledger = openLedger(schema)
    const head = await ledger.acquire(runId)
    await rowsOf(`create or replace function ${schema}.event_follows() returns trigger language plpgsql as
      $$ begin raise exception 'tallystick: no' using errcode = 'TL001'; end $$`)
    const event = {
      runId,
      seq: head.seq + 1,
      epoch: head.epoch,
      at: 1,
      v: 1,
      turn: 1,
      type: 'cancel_requested',
    }
    const append = ledger.append(
      runId,
      { expectedSeq: head.seq, epoch: head.epoch },
      [event as RuntimeEvent],
      {
        durability: 'barrier',
      },
    )
    await expect(append).rejects.toThrow(LedgerDamagedError)
    await expect(append).rejects.toThrow(/tallystick: no.*Run verify on it/)
    expect(await ledger.head(runId)).toEqual(head)
    expect((await verifyRun(ledger, runId)).ok).toBe(true)
  })
})
