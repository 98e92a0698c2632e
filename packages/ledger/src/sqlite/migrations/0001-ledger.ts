import { sql, type Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'

/** The first schema. Frozen: what is to change goes into a later migration. */
export const ledgerMigration: Migration = {
  async up(database: Kysely<unknown>): Promise<void> {
    await createTables(database)
    await createIndexes(database)
    for (const trigger of triggers) await sql.raw(trigger).execute(database)
    await sql`insert into barrier (id, count) values (1, 0)`.execute(database)
  },
}

async function createTables({ schema }: Kysely<unknown>): Promise<void> {
  await schema
    .createTable('run')
    .addColumn('run_id', 'text', (column) => column.primaryKey().notNull())
    .addColumn('pos', 'integer', (column) => column.unique().notNull())
    .addColumn('head_seq', 'integer', (column) => column.notNull())
    .addColumn('head_hash', 'blob', (column) => column.notNull())
    .addColumn('epoch', 'integer', (column) => column.notNull())
    .addColumn('seal', 'blob', (column) => column.notNull())
    .addColumn('session_id', 'text')
    .addColumn('session_place', 'integer')
    .modifyEnd(sql`strict, without rowid`)
    .execute()
  await schema
    .createTable('event')
    .addColumn('pos', 'integer', (column) => column.primaryKey().autoIncrement())
    .addColumn('run_id', 'text', (column) => column.notNull())
    .addColumn('seq', 'integer', (column) => column.notNull())
    .addColumn('epoch', 'integer', (column) => column.notNull())
    .addColumn('type', 'text', (column) => column.notNull())
    .addColumn('v', 'integer', (column) => column.notNull())
    .addColumn('turn', 'integer', (column) => column.notNull())
    .addColumn('tool_call_id', 'text')
    .addColumn('at', 'integer', (column) => column.notNull())
    .addColumn('once_key', 'text')
    .addColumn('body_commit', 'blob', (column) => column.notNull())
    .addColumn('hash', 'blob', (column) => column.notNull())
    .addUniqueConstraint('event_seq', ['run_id', 'seq'])
    .modifyEnd(sql`strict`)
    .execute()
  await schema
    .createTable('payload')
    .addColumn('pos', 'integer', (column) => column.primaryKey())
    .addColumn('salt', 'blob', (column) => column.notNull())
    .addColumn('body', 'blob', (column) => column.notNull())
    .modifyEnd(sql`strict`)
    .execute()
  await schema
    .createTable('inbox')
    .addColumn('pos', 'integer', (column) => column.primaryKey().autoIncrement())
    .addColumn('run_id', 'text', (column) => column.notNull())
    .addColumn('key', 'text', (column) => column.notNull())
    .addColumn('kind', 'text', (column) => column.notNull())
    .addColumn('body', 'blob', (column) => column.notNull())
    .addColumn('at', 'integer', (column) => column.notNull())
    .addColumn('taken_seq', 'integer')
    .addUniqueConstraint('inbox_key', ['run_id', 'key'])
    .modifyEnd(sql`strict`)
    .execute()
  await schema
    .createTable('barrier')
    .addColumn('id', 'integer', (column) => column.primaryKey().check(sql`id = 1`))
    .addColumn('count', 'integer', (column) => column.notNull())
    .modifyEnd(sql`strict`)
    .execute()
}

async function createIndexes({ schema }: Kysely<unknown>): Promise<void> {
  await schema
    .createIndex('event_once')
    .unique()
    .on('event')
    .columns(['run_id', 'once_key'])
    .where(sql.ref('once_key'), 'is not', null)
    .execute()
  await schema
    .createIndex('run_session')
    .unique()
    .on('run')
    .columns(['session_id', 'session_place'])
    .where(sql.ref('session_id'), 'is not', null)
    .execute()
  await schema.createIndex('event_turn').on('event').columns(['run_id', 'turn', 'seq']).execute()
  await schema.createIndex('event_type').on('event').columns(['run_id', 'type', 'seq']).execute()
  await schema
    .createIndex('event_tool_call')
    .on('event')
    .columns(['tool_call_id', 'seq'])
    .where(sql.ref('tool_call_id'), 'is not', null)
    .execute()
  await schema.createIndex('event_at').on('event').column('at').execute()
  await schema
    .createIndex('inbox_open')
    .on('inbox')
    .columns(['run_id', 'pos'])
    .where(sql.ref('taken_seq'), 'is', null)
    .execute()
}

/** Refuses a statement where the condition holds. */
function refusal(name: string, on: string, when: string, why: string): string {
  const condition = when === '' ? '' : ` when ${when}`
  return `create trigger ${name} before ${on} for each row${condition} begin select raise(abort, 'tallystick: ${why}'); end`
}

/**
 * What no client of the file may do, this library included. They also keep out `insert or replace`, which would
 * remove rows without firing a trigger for it.
 */
const triggers: readonly string[] = [
  refusal(
    'event_follows',
    'insert on event',
    'new.seq <> 1 + coalesce((select max(seq) from event where run_id = new.run_id), 0) ' +
      'or exists (select 1 from event where pos = new.pos)',
    'an event follows the last one of its run without a gap',
  ),
  refusal('event_stays', 'update on event', '', 'events are never changed'),
  refusal('event_remains', 'delete on event', '', 'events are never removed'),
  refusal(
    'payload_once',
    'insert on payload',
    'exists (select 1 from payload where pos = new.pos)',
    'payloads are never changed',
  ),
  refusal('payload_stays', 'update on payload', '', 'payloads are never changed'),
  refusal('run_remains', 'delete on run', '', 'runs are never removed'),
  refusal(
    'run_once',
    'insert on run',
    'exists (select 1 from run where run_id = new.run_id or pos = new.pos ' +
      'or (session_id = new.session_id and session_place = new.session_place))',
    'runs are never replaced',
  ),
  refusal(
    'run_advances',
    'update on run',
    'new.run_id <> old.run_id or new.pos <> old.pos or new.head_seq < old.head_seq or new.epoch < old.epoch ' +
      'or (new.head_seq = old.head_seq and new.head_hash <> old.head_hash) ' +
      'or new.session_id is not old.session_id or new.session_place is not old.session_place',
    'the head and the epoch of a run never fall, and its place in a session stays',
  ),
  refusal('inbox_remains', 'delete on inbox', '', 'inbox keys are known for ever'),
  refusal(
    'inbox_once',
    'insert on inbox',
    'exists (select 1 from inbox where pos = new.pos or (run_id = new.run_id and key = new.key))',
    'inbox entries are never replaced',
  ),
  refusal(
    'inbox_is_taken_once',
    'update on inbox',
    'old.taken_seq is not null or new.taken_seq is null or new.pos <> old.pos or new.run_id <> old.run_id ' +
      'or new.key <> old.key or new.kind <> old.kind or new.body <> old.body or new.at <> old.at',
    'an inbox entry is taken once, and never changed',
  ),
]
