// `sqlQuery` on a real Postgres server, as a role that may read some tables and write none, and as one that may write.
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import type { Tool } from '@tallystick/core'
import { ConfigurationError } from '@tallystick/core'
import { type PostgresQueryOptions, sqlQuery } from '@tallystick/tools/sql-query'
import { Client, type QueryResultRow } from 'pg'
import { Subject } from 'rxjs'
import { afterAll, beforeAll, describe, expect, inject, it, onTestFinished } from 'vitest'
import { HeldTimers } from './built-in/held-timers.ts'
import { endingOf, signalsOf } from './one-call.ts'

const server = inject('postgres')
const admin = 'connectionString' in server ? server.connectionString : ''
const database = `shop_${process.pid}`

/** The database of these tests, as a role of theirs. */
function urlOf(role: string): string {
  const url = new URL(admin)
  if (role !== 'admin') [url.username, url.password] = [`shop_${role}_${process.pid}`, 'a secret']
  url.pathname = database
  return url.href
}

async function asAdmin<Row extends QueryResultRow>(
  text: string,
  url: string = urlOf('admin'),
): Promise<readonly Row[]> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    return (await client.query<Row>(text)).rows
  } finally {
    await client.end()
  }
}

const hasPostgres = admin !== ''

beforeAll(async () => {
  if (!hasPostgres) return
  const [reader, writer, chief] = ['reader', 'writer', 'chief'].map((role) => `shop_${role}_${process.pid}`)
  await asAdmin(`create database ${database}`, admin)
  await asAdmin(`
    create role ${reader} login password 'a secret';
    create role ${writer} login password 'a secret';
    create role ${chief} login password 'a secret' in role pg_execute_server_program;
    create table items (id int primary key, name text not null, price numeric, photo bytea, at timestamptz, tags text[], about jsonb);
    insert into items values
      (1, 'tent', 189.50, '\\x00ff10', '2026-11-20 10:00+00', '{a,b}', '{"n": 1e400}'), (2, 'stöve', null, null, null, null, null);
    create table hidden (secret text);
    create sequence numbers;
    create view names as select name from items;
    create function sneaks() returns int language sql as 'delete from items returning 1';
    grant select on items, names to ${reader};
    grant all on items, names, hidden to ${writer};
    grant all on sequence numbers to ${writer}`)
})
afterAll(async () => {
  if (!hasPostgres) return
  await asAdmin(`drop database ${database} with (force)`, admin)
  await asAdmin(
    ['reader', 'writer', 'chief'].map((role) => `drop role shop_${role}_${process.pid}`).join(';'),
    admin,
  )
})

/** A tool whose statements may take longer than a busy machine needs for any of these. */
const toolAs = (role: string, options: Partial<PostgresQueryOptions> = {}): Tool =>
  sqlQuery({ connectionString: urlOf(role), timeoutMs: 120_000, ...options })

async function answer(
  sql: string,
  parameters: readonly unknown[] = [],
  tool: Tool = toolAs('reader'),
): Promise<unknown> {
  const { outcome, text } = await endingOf(tool, { sql, parameters } as never)
  return outcome === 'success' ? JSON.parse(text) : `${outcome}: ${text}`
}

/** What runs for a role on the server. */
const runningOf = (role: string): Promise<readonly { event: string | null }[]> =>
  asAdmin(
    `select wait_event as event from pg_stat_activity where usename = 'shop_${role}_${process.pid}' and backend_type = 'client backend'`,
  )

/** Looks until nothing runs for a role; the time limit of the test fails it where something stays. */
async function nothingRuns(role: string): Promise<void> {
  while ((await runningOf(role)).length > 0) continue
}

/** Looks until a statement of a role sleeps. */
async function sleeps(role: string): Promise<void> {
  while (!(await runningOf(role)).some(({ event }) => event === 'PgSleep')) continue
}

/** Leads to a server, and holds back what it answers to the beginning of a transaction until there is another connection. */
async function holdBeginning(
  url: string,
): Promise<{ readonly connectionString: string; readonly beginning: Promise<void> }> {
  const to = new URL(url)
  const began = Promise.withResolvers<void>()
  const sockets: Socket[] = []
  let answer = (): void => {}
  const line = createServer((client) => {
    const server = connect(Number(to.port), to.hostname)
    sockets.push(client, server)
    answer()
    server.on('data', (bytes) => {
      const pass = (): void => void client.write(bytes)
      if (!bytes.includes('dangerous')) return pass()
      answer = pass
      began.resolve()
    })
    client.on('data', (bytes) => server.write(bytes)).on('close', () => server.destroy())
    server.on('close', () => client.destroy())
    for (const socket of [client, server]) socket.on('error', () => {})
  }).listen(0, '127.0.0.1')
  await once(line, 'listening')
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
    line.close()
  })
  const here = new URL(url)
  here.port = String((line.address() as AddressInfo).port)
  return { connectionString: here.href, beginning: began.promise }
}

// Needs a server. Where this machine has none, the test run says why.
describe.skipIf(!hasPostgres)('sqlQuery on Postgres', () => {
  it('answers columns and rows, as exactly as JSON can', async () => {
    expect(
      await answer(
        `select id, name, price, photo, at at time zone 'UTC' as at, tags, about->'n' as n, 9007199254740993 as big, 7::bigint as small, 'nan'::float8 as nan, 0.1::float4 as f, true as yes from items order by id`,
      ),
    ).toEqual({
      columns: ['id', 'name', 'price', 'photo', 'at', 'tags', 'n', 'big', 'small', 'nan', 'f', 'yes'],
      rows: [
        [
          ...[1, 'tent', '189.50', { base64: 'AP8Q', bytes: 3 }, '2026-11-20 10:00:00', '{a,b}'],
          ...[expect.stringMatching(/^1000+$/) as unknown, '9007199254740993', 7, 'NaN', 0.1, true],
        ],
        [2, 'stöve', null, null, null, null, null, '9007199254740993', 7, 'NaN', 0.1, true],
      ],
    })
    await nothingRuns('reader')
  })

  it.each([
    ['with values in order', 'select $1::int + 1, $2, $3', [41, "'; drop table items; --", null], 42],
    ['VALUES', 'values (1)', [], 1],
    ['WITH', 'with a(x) as (select 3) select x from a', [], 3],
    ['TABLE', 'table names', [], 'tent'],
    ['in brackets', '(select 1) union all (select 2)', [], 1],
    ['between comments', '-- one\n/* /* two */ */ select 1 -- end', [], 1],
    ['with a semicolon', 'select 1;', [], 1],
    ['of no rows', 'select 1 where false', [], undefined],
  ])('runs a statement %s', async (_how, sql, parameters, first) => {
    const { rows } = (await answer(sql, parameters)) as { rows: unknown[][] }
    expect(rows[0]?.[0]).toBe(first)
  })

  it('explains how a statement would be answered', async () => {
    for (const sql of ['EXPLAIN select * from items where id = $1::int', 'explain analyze select $1::text']) {
      expect(await answer(sql, [1])).toMatchObject({ columns: ['QUERY PLAN'] })
    }
  })

  it('shows at most so many rows, and so many bytes', async () => {
    const few = toolAs('reader', { maxRows: 100, maxBytes: 5_000 })
    const numbers = 'select n from generate_series(1, 1000) n'
    expect(await answer(numbers, [], few)).toMatchObject({
      rows: Array.from({ length: 100 }, (_, index) => [index + 1]),
      note: expect.stringContaining('Only the first 100 rows are shown, there are more.') as string,
    })
    expect(await answer(`${numbers} limit 100`, [], few)).not.toHaveProperty('note')
    const long = (await answer(`select repeat('ü', 200) from generate_series(1, 90)`, [], few)) as {
      rows: unknown[]
    }
    expect(long).toMatchObject({ note: expect.stringContaining('more would be over 5000 bytes') as string })
    expect(Buffer.byteLength(JSON.stringify(long.rows))).toBeLessThanOrEqual(5_000)
  })

  it('stops a server that sends rows without measure', async () => {
    expect(await answer(`select repeat('x', 100000000)`)).toMatch(
      /^failed: The statement was stopped: its rows are far too large/,
    )
    expect(await answer(`select repeat('x', 500000) from generate_series(1, 100)`)).toMatchObject({
      rows: [],
      note: expect.stringContaining('No row is shown') as string,
    })
    await nothingRuns('reader')
  })

  it('names the tables that the role may read where a statement does not fit them', async () => {
    expect(await answer('select nam from items')).toBe(
      'failed: Postgres says: column "nam" does not exist. Perhaps you meant to reference the column "items.name".\nThe tables and views are:\n' +
        'items(id integer, name text, price numeric, photo bytea, at timestamp with time zone, tags text[], about jsonb)\nnames(name text)',
    )
    expect(await answer('select * from hidden')).toBe(
      'failed: Postgres says: permission denied for table hidden.',
    )
  })

  it.each([
    ['too few values', 'select $1::int, $2::int', [1], /supplies 1 parameters, but.* requires 2/],
    ['too many', 'select 1', [1], /supplies 1 parameters, but.* requires 0/],
    ['a value of another kind', 'select $1::int', ['x'], /invalid input syntax for type integer/],
    ['names', 'select 1', { a: 1 }, /parameters: expected array, received object/],
    ['a NUL character', 'select 1\0', [], /holds a NUL character/],
  ])('explains %s', async (_what, sql, parameters, text) => {
    expect(await answer(sql, parameters as never)).toMatch(text)
  })
})

// Needs a server. Where this machine has none, the test run says why.
describe.skipIf(!hasPostgres)('the database', () => {
  it.each([
    `insert into items values (9, 'x')`,
    'delete from items',
    'with a as (delete from items returning id) select * from a',
    `with a as (insert into items values (9, 'x') returning id) select * from a`,
    'select * into copied from items',
    'create table t (a int)',
    'create temp table t (a int)',
    'truncate items',
    'drop table items',
    'select * from items for update',
    `select nextval('numbers')`,
    `select setval('numbers', 7)`,
    'select sneaks()',
    'select 1; delete from items',
    'select 1; commit; delete from items',
    'commit',
    'rollback',
    'set transaction read write',
    `set session characteristics as transaction read write`,
    `select set_config('transaction_read_only', 'off', false)`,
    `with a as (select set_config('transaction_read_only', 'off', true)) select sneaks() from a`,
    `do $$ begin delete from items; end $$`,
    `copy items to 'items.csv'`,
    `copy (select 1) to program 'true'`,
    `copy items from stdin`,
    'call sneaks()',
    'prepare a as delete from items',
    'explain analyze delete from items',
    'explain analyze select * into copied from items',
    'explain (analyze) delete from items',
    'explain analyze create table copied as select 1',
    'explain analyze with a as (delete from items returning 1) select * from a',
    'lock table items',
    'vacuum',
    'listen a',
    'select lo_create(7)',
    `refresh materialized view names`,
    'cursor for select 1',
    ') delete from items',
  ])('is not changed by %s', async (sql) => {
    expect(await answer(sql, [], toolAs('writer'))).toMatch(/^failed: Postgres says: /)
    expect(
      await asAdmin('select count(*)::int as items, (select last_value::int from numbers) from items'),
    ).toEqual([{ items: 2, last_value: 1 }])
    expect(await asAdmin(`select 1 from pg_class where relname in ('copied', 't')`)).toEqual([])
  })

  it('hears nothing of what a statement notifies, and keeps nothing that it locks or sets', async () => {
    const tool = toolAs('writer')
    await answer(
      `select pg_notify('a', 'b'), pg_advisory_lock(7), set_config('statement_timeout', '0', false)`,
      [],
      tool,
    )
    expect(await answer(`select current_setting('statement_timeout')`, [], tool)).toMatchObject({
      rows: [['2min']],
    })
    await nothingRuns('writer')
    // Tests of the ledger hold locks of their own in other databases of the server.
    expect(
      await asAdmin(
        `select 1 from pg_locks join pg_database on pg_database.oid = database where locktype = 'advisory' and datname = current_database()`,
      ),
    ).toEqual([])
  })

  it('is read as no role that may do more than read', async () => {
    for (const role of ['admin', 'chief']) {
      expect(await answer('select 1', [], toolAs(role))).toMatch(
        /^failed: The role that this tool connects as may do more than read/,
      )
      expect(await answer('select 1', [], toolAs(role, { allowPowerfulRole: true }))).toMatchObject({
        rows: [[1]],
      })
    }
  })
})

// Needs a server. Where this machine has none, the test run says why.
describe.skipIf(!hasPostgres)('a statement that takes long', () => {
  it('is stopped on the server at its time', async () => {
    const timers = new HeldTimers()
    const ending = endingOf(toolAs('writer', { timers, timeoutMs: 70_000 }), {
      sql: 'select pg_sleep(1000)',
    })
    await sleeps('writer')
    await timers.fire(70_000)
    expect(await ending).toMatchObject({
      outcome: 'timed_out',
      text: expect.stringMatching(/^The statement was stopped: it had not finished after 70000 ms/) as string,
    })
    expect(timers.count).toBe(0)
    await nothingRuns('writer')
  })

  it('is stopped on the server when the call is cancelled', async () => {
    const timers = new HeldTimers()
    const cancelled$ = new Subject<string>()
    const tool = toolAs('writer', { timers, timeoutMs: 70_000 })
    const ending = endingOf(tool, { sql: 'select pg_sleep(1000)' }, { cancelled$ })
    await sleeps('writer')
    cancelled$.next('enough')
    expect(await ending).toEqual({ outcome: 'cancelled', text: 'The call was cancelled: enough.' })
    expect(timers.count).toBe(0)
    await nothingRuns('writer')
  })

  it('does not begin when the call was cancelled while its transaction began', async () => {
    const { connectionString, beginning } = await holdBeginning(urlOf('writer'))
    const timers = new HeldTimers()
    const cancelled$ = new Subject<string>()
    const tool = toolAs('writer', { timers, timeoutMs: 70_000, connectionString })
    const ending = endingOf(tool, { sql: 'select pg_sleep(1000)' }, { cancelled$ })
    await beginning
    cancelled$.next('enough')
    expect(await ending).toEqual({ outcome: 'cancelled', text: 'The call was cancelled: enough.' })
    expect(timers.count).toBe(0)
    await nothingRuns('writer')
  })

  it('is stopped by the server, too, where this process cannot', async () => {
    const tool = toolAs('writer', { timers: new HeldTimers(), timeoutMs: 50 })
    expect(await answer('select pg_sleep(1000)', [], tool)).toMatch(/^timed_out: The statement was stopped/)
    await nothingRuns('writer')
  })

  it('waits for a lock that another one holds no longer than lockTimeoutMs says, and did not run then', async () => {
    const holder = new Client({ connectionString: urlOf('admin') })
    await holder.connect()
    await holder.query('begin; lock table items in access exclusive mode')
    try {
      expect(await answer('select 1 from items', [], toolAs('writer', { lockTimeoutMs: 1 }))).toBe(
        'failed: The statement did not run: what it reads was locked for too long by another one. The statement is not the cause: make the same call again, or continue without it.',
      )
    } finally {
      await holder.end()
    }
  })

  it('waits for a free connection, and leaves the queue when it is cancelled', async () => {
    const cancelled$ = new Subject<string>()
    const tool = toolAs('writer', { timers: new HeldTimers(), timeoutMs: 70_000, maxConnections: 1 })
    const first = endingOf(tool, { sql: 'select pg_sleep(1000)' }, { cancelled$ })
    await sleeps('writer')
    const leaving$ = new Subject<string>()
    const second = signalsOf(tool, { sql: 'select 2' }, { cancelled$: leaving$ })
    const third = endingOf(tool, { sql: 'select 3' })
    expect(await runningOf('writer')).toHaveLength(1)
    leaving$.next('not needed')
    expect(await second).toMatchObject([{ outcome: 'cancelled' }])
    cancelled$.next('enough')
    expect(await first).toMatchObject({ outcome: 'cancelled' })
    expect(await third).toMatchObject({
      outcome: 'success',
      text: expect.stringContaining('[[3]]') as string,
    })
  })
})

describe('a database that is not there', () => {
  // Needs a server. Where this machine has none, the test run says why.
  it.skipIf(!hasPostgres)(
    'differs from one that does not let the tool in, without names and passwords',
    async () => {
      const closed = new URL(urlOf('reader'))
      closed.port = '1'
      expect(await answer('select 1', [], sqlQuery({ connectionString: closed.href }))).toBe(
        'failed: The database cannot be reached, or the connection to it was lost (ECONNREFUSED).',
      )
      const wrong = new URL(urlOf('reader'))
      wrong.password = 'another'
      expect(await answer('select 1', [], sqlQuery({ connectionString: wrong.href }))).toBe(
        'failed: The database does not let this tool in (28P01).',
      )
      const other = new URL(urlOf('reader'))
      other.pathname = 'none'
      expect(await answer('select 1', [], sqlQuery({ connectionString: other.href }))).toBe(
        'failed: The database does not let this tool in (3D000).',
      )
    },
  )

  it.each<[string, object, RegExp]>([
    ['no text', { connectionString: 7 }, /connectionString is 7/],
    ['no URL', { connectionString: 'host=a password=pw-7' }, /its connectionString cannot be read/],
    ['a URL of something else', { connectionString: 'mysql://me:pw-7@host/a' }, /cannot be read/],
    [
      'a file as well',
      { connectionString: 'postgres://me:pw-7@host/a', path: 'a.db' },
      /path is not an option/,
    ],
    ['an option of no tool', { connectionString: 'postgres://h/a', max: 5 }, /max is not an option/],
    ['no connections', { connectionString: 'postgres://h/a', maxConnections: 0 }, /maxConnections is 0/],
  ])('is refused where the tool is made with %s', (_what, options, message) => {
    const make = (): Tool => sqlQuery(options as never)
    expect(make).toThrow(ConfigurationError)
    expect(make).toThrow(message)
    expect(make).not.toThrow(/pw-7/)
  })
})
