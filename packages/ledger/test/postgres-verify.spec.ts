import { LedgerDamagedError, type RuntimeEvent } from '@tallystick/core'
import { sampleRunId } from '@tallystick/testkit'
import type { BrokenPlace } from '@tallystick/ledger'
import type { Client } from 'pg'
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { sealRun, type RunCell } from '../src/format/chain.ts'
import { freshSchema, hasPostgres, openLedger, rowsOf } from './support/postgres-database.ts'
import {
  allVerifiedIn,
  recordedSchema,
  restoreIn,
  tamperIn,
  verifiedIn,
  type RecordedSchema,
} from './support/postgres-recorded.ts'

interface Change {
  /** The statement, on the event at `$2` of the run `$1`. */
  readonly sql: string
  readonly what: string
  /** Where it is found, given the changed event's seq and the run's last; at the changed event where not given. */
  readonly foundAt?: (seq: number, last: number) => number
}

const atTheHead = (_seq: number, last: number): number => last
const ofEvent = 'where run_id = $1 and seq = $2'
const ofRun = 'where run_id = $1 and $2::int8 > 0'

/** One change for every column of the tables that the chain covers, on rows that hold one event. */
/** One change for every column of the tables that the chain covers. */
const columns: Readonly<Record<'event' | 'run', Readonly<Record<string, Change>>>> = {
  event: {
    pos: { sql: `update event set pos = 9999 ${ofEvent}`, what: 'pos', foundAt: (seq) => seq + 1 },
    run_id: { sql: `update event set run_id = 'elsewhere' ${ofEvent}`, what: 'seq' },
    seq: { sql: `update event set seq = 9999 ${ofEvent}`, what: 'seq' },
    type: { sql: `update event set type = 'tool_progress' ${ofEvent}`, what: 'hash' },
    turn: { sql: `update event set turn = 2 ${ofEvent}`, what: 'hash' },
    tool_call_id: { sql: `update event set tool_call_id = 'call_x' ${ofEvent}`, what: 'hash' },
    attempt: { sql: `update event set attempt = 7 ${ofEvent}`, what: 'hash' },
    at: { sql: `update event set at = at + 1 ${ofEvent}`, what: 'hash' },
    epoch: { sql: `update event set epoch = 2 ${ofEvent}`, what: 'hash' },
    v: { sql: `update event set v = 2 ${ofEvent}`, what: 'hash' },
    key_id: { sql: `update event set key_id = 'k' ${ofEvent}`, what: 'hash' },
    body: { sql: `update event set body = replace(body, 'warm', 'cold') ${ofEvent}`, what: 'hash' },
    salt: { sql: `update event set salt = 'x' || substr(salt, 2) || 'y' ${ofEvent}`, what: 'hash' },
    commitment: { sql: `update event set commitment = hash, salt = null ${ofEvent}`, what: 'hash' },
    hash: { sql: `update event set hash = reverse(hash) ${ofEvent}`, what: 'hash' },
  },
  run: {
    pos: { sql: `update run set pos = 9999 ${ofRun}`, what: 'pos', foundAt: atTheHead },
    head_seq: { sql: 'update run set head_seq = $2 where run_id = $1', what: 'head_seq', foundAt: atTheHead },
    head_hash: {
      sql: `update run set head_hash = reverse(head_hash) ${ofRun}`,
      what: 'head_hash',
      foundAt: atTheHead,
    },
    epoch: { sql: `update run set epoch = 7 ${ofRun}`, what: 'seal', foundAt: atTheHead },
    seal: { sql: `update run set seal = reverse(seal) ${ofRun}`, what: 'seal', foundAt: atTheHead },
    session_id: {
      sql: `update run set session_id = 'x', session_place = 1 ${ofRun}`,
      what: 'session',
      foundAt: atTheHead,
    },
    session_place: {
      sql: `update run set session_id = 'x', session_place = 2 ${ofRun}`,
      what: 'session',
      foundAt: atTheHead,
    },
    ended_at: { sql: `update run set ended_at = 1 ${ofRun}`, what: 'ended_at', foundAt: atTheHead },
    history: { sql: `update run set seal = reverse(seal) ${ofRun}`, what: 'seal', foundAt: atTheHead },
  },
}

const changes = Object.entries(columns).flatMap(([table, changed]) =>
  Object.entries(changed).map(([column, change]) => [`${table}.${column}`, change] as const),
)

async function brokenBy(
  { schema, runId }: RecordedSchema,
  sql: string,
): Promise<{ broken: BrokenPlace | undefined; seq: number; last: number }> {
  let [seq, last] = [0, 0]
  await tamperIn(schema, async (client) => {
    ;[seq, last] = await placesIn(client, runId)
    // What refers to what is held by triggers of Postgres itself.
    await client.query('set session_replication_role = replica')
    expect((await client.query(sql, [runId, seq])).rowCount).toBe(1)
  })
  return { broken: (await verifiedIn(schema, runId)).broken, seq, last }
}

/** The event that most cases change, which has a row of its own, as the one before it; and the run's last. */
async function placesIn(client: Client, runId: string): Promise<[seq: number, last: number]> {
  const { rows } = await client.query<{ seq: number; last: number }>(
    `select max(seq) filter (where type = 'input_received')::int4 as seq, max(seq)::int4 as last from event where run_id = $1`,
    [runId],
  )
  return [rows[0]?.seq ?? 0, rows[0]?.last ?? 0]
}

// Only a platform without Postgres leaves them out, and the run says so.
describe.skipIf(!hasPostgres)('verify on a sound ledger in Postgres', () => {
  it('finds every run and the store sound, also after a take-over', async () => {
    const { schema, runId, otherId } = await recordedSchema()
    const ledger = openLedger(schema)
    await ledger.acquire(otherId)
    const { runs, store } = await allVerifiedIn(schema)
    expect(runs.map((run) => [run.runId, run.ok, run.broken])).toEqual([
      [otherId, true, undefined],
      [runId, true, undefined],
    ])
    const events = runs.reduce((sum, run) => sum + run.events, 0)
    expect(store).toEqual({ scope: 'store', ok: true, runs: 2, brokenRuns: 0, droppedRuns: 0, events })
    expect(events).toBeGreaterThan(40)
  })

  it('computes the same seal in the database as outside of it, whatever its session is called', async () => {
    const schema = freshSchema()
    const ledger = openLedger(schema)
    const odd =
      'quote " back \\ slash / tab \t feed \n bell \u0007 del \u007f line \u2028 \u00e9 \u{1f600} </script>'
    for (const [index, runId] of [sampleRunId(1), sampleRunId(2)].entries()) {
      const session = index === 0 ? { sessionId: `session ${odd}`, sessionPlace: 3 } : {}
      const started = { runId, seq: 1, epoch: 1, at: 1, v: 1, turn: 0, type: 'run_started', ...session }
      const next = { ...started, seq: 2, epoch: 2, type: 'cancel_requested' }
      const append = (event: unknown, epoch: number, expectedSeq: number): Promise<unknown> =>
        ledger.append(runId, { expectedSeq, epoch }, [event as RuntimeEvent], { durability: 'lazy' })
      await append(started, 1, 0)
      await ledger.acquire(runId)
      await append(next, 2, 1)
      const [row] = await rowsOf<Record<string, string | null>>(
        `select * from ${schema}.run where run_id = $1`,
        [runId],
      )
      const numbers = ['pos', 'head_seq', 'epoch', 'session_place', 'ended_at']
      const cell = Object.fromEntries(
        Object.entries(row ?? {}).map(([name, value]) => [
          name,
          value !== null && numbers.includes(name) ? Number(value) : value,
        ]),
      )
      expect(row?.['seal']).toBe(sealRun(cell as unknown as RunCell))
    }
  })
})

// Only a platform without Postgres leaves them out, and the run says so.
describe.skipIf(!hasPostgres)('verify on a ledger in Postgres that was tampered with', () => {
  let record: RecordedSchema
  beforeAll(async () => {
    record = await recordedSchema()
  })
  afterEach(() => restoreIn(record.schema))

  it('knows every column of the tables that the chain covers', async () => {
    const { schema } = record
    for (const [table, changed] of Object.entries(columns)) {
      const rows = await rowsOf<{ name: string }>(
        'select column_name::text as name from information_schema.columns where table_schema = $1 and table_name = $2',
        [schema, table],
      )
      // What a tail goes by is checked in the store as a whole.
      const covered = rows.filter(
        ({ name }) =>
          !['xid', 'lease_holder', 'lease_until', 'due_at'].includes(name) &&
          `${table}.${name}` !== 'run.run_id',
      )
      expect(Object.keys(changed).toSorted()).toEqual(covered.map(({ name }) => name).toSorted())
    }
  })

  it('finds an event whose transaction is older than that of the event before it, which a tail would yield first', async () => {
    const { schema, runId } = record
    await tamperIn(schema, async (client) => {
      await client.query(
        `update event set xid = '9' where run_id = $1 and seq = (select max(seq) from event where run_id = $1)`,
        [runId],
      )
    })
    const { runs, store } = await allVerifiedIn(schema)
    expect(runs.map(({ ok }) => ok)).toEqual([true, true])
    expect(store).toMatchObject({
      ok: false,
      brokenRuns: 0,
      broken: { what: 'events written before the one that they follow', found: '1' },
    })
  })

  it.each(changes)('finds a changed %s, and where', async (_column, { sql, what, foundAt }) => {
    const { broken, seq, last } = await brokenBy(record, sql)
    expect(broken).toMatchObject({ runId: record.runId, seq: foundAt ? foundAt(seq, last) : seq, what })
    expect(broken?.expected).not.toBe(broken?.found)
    const { runs, store } = await allVerifiedIn(record.schema)
    expect(store.ok).toBe(false)
    expect(runs.find(({ runId }) => runId === record.otherId)?.ok).toBe(true)
  })

  it.each([['an event that was removed', `delete from event ${ofEvent}`, 'seq']])(
    'finds %s, and reading stops before it',
    async (_name, sql, what) => {
      const { broken, seq } = await brokenBy(record, sql)
      expect(broken).toMatchObject({ seq, what })
      const ledger = openLedger(record.schema, { readOnly: true })
      const read: number[] = []
      const reading = async (): Promise<void> => {
        for await (const event of ledger.read(record.runId)) read.push(event.seq)
      }
      await expect(reading()).rejects.toThrow(LedgerDamagedError)
      expect(read).toEqual(Array.from({ length: seq - 1 }, (_, index) => index + 1))
    },
  )

  it('finds events whose run lost its row', async () => {
    const { schema, runId, otherId } = record
    await tamperIn(schema, async (client) => {
      await client.query('set session_replication_role = replica')
      await client.query('delete from run where run_id = $1', [runId])
    })
    const { runs, store } = await allVerifiedIn(schema)
    expect(runs.map(({ runId: id, ok, broken }) => [id, ok, broken?.what])).toEqual([
      [otherId, true, undefined],
      [runId, false, 'run'],
    ])
    expect(store).toMatchObject({ ok: false, runs: 2, brokenRuns: 1 })
  })
})
