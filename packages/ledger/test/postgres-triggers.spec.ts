import { LedgerDamagedError, type RuntimeEvent } from '@tallystick/core'
import { sampleRunId } from '@tallystick/testkit'
import { verifyRun } from '@tallystick/ledger'
import { describe, expect, it } from 'vitest'
import { freshSchema, hasPostgres, openLedger, rowsOf, withClient } from './support/postgres-database.ts'
import { allVerifiedIn, recordedSchema } from './support/postgres-recorded.ts'

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
