import { sql, type Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'

/** Large contents, kept once; and removals, which alone let payloads, and runs that were dropped, go. */
export const removalMigration: Migration = {
  async up(database: Kysely<unknown>): Promise<void> {
    await createTables(database)
    await createIndexes(database)
    for (const name of replaced) await sql.raw(`drop trigger ${name}`).execute(database)
    for (const trigger of triggers) await sql.raw(trigger).execute(database)
  },
}

async function createTables({ schema }: Kysely<unknown>): Promise<void> {
  await schema
    .createTable('content')
    .addColumn('digest', 'text', (column) => column.primaryKey().notNull())
    .addColumn('body', 'blob', (column) => column.notNull())
    .modifyEnd(sql`strict`)
    .execute()
  await schema
    .createTable('content_use')
    .addColumn('pos', 'integer', (column) => column.notNull())
    .addColumn('digest', 'text', (column) => column.notNull())
    .addPrimaryKeyConstraint('content_use_key', ['pos', 'digest'])
    .modifyEnd(sql`strict, without rowid`)
    .execute()
  await schema
    .createTable('removal')
    .addColumn('pos', 'integer', (column) => column.primaryKey().autoIncrement())
    .addColumn('run_id', 'text', (column) => column.notNull())
    .addColumn('from_seq', 'integer', (column) => column.notNull())
    .addColumn('to_seq', 'integer', (column) => column.notNull())
    .addColumn('kind', 'text', (column) => column.notNull())
    .addColumn('at', 'integer', (column) => column.notNull())
    .addColumn('by', 'text', (column) => column.notNull())
    .addColumn('reason', 'text')
    .addColumn('kept', 'text')
    .addColumn('head_hash', 'text')
    .addColumn('hash', 'blob', (column) => column.notNull())
    .modifyEnd(sql`strict`)
    .execute()
}

async function createIndexes({ schema }: Kysely<unknown>): Promise<void> {
  await schema.createIndex('content_use_digest').on('content_use').column('digest').execute()
  await schema.createIndex('removal_run').on('removal').columns(['run_id', 'to_seq']).execute()
}

/** Rules of the first schema that know of no removals. */
const replaced = ['event_remains', 'run_remains', 'inbox_remains', 'inbox_is_taken_once'] as const

function refusal(name: string, on: string, when: string, why: string): string {
  const condition = when === '' ? '' : ` when ${when}`
  return `create trigger ${name} before ${on} for each row${condition} begin select raise(abort, 'tallystick: ${why}'); end`
}

const isDropped = (runId: string): string =>
  `exists (select 1 from removal where run_id = ${runId} and kind = 'dropped')`

const triggers: readonly string[] = [
  refusal(
    'removal_follows',
    'insert on removal',
    'new.pos <> 1 + coalesce((select max(pos) from removal), 0)',
    'a removal follows the last one',
  ),
  refusal('removal_stays', 'update on removal', '', 'removals are never changed'),
  refusal('removal_remains', 'delete on removal', '', 'removals are never removed'),
  refusal(
    'payload_remains',
    'delete on payload',
    'exists (select 1 from event where event.pos = old.pos and not exists (select 1 from removal ' +
      'where removal.run_id = event.run_id and removal.to_seq >= event.seq and removal.from_seq <= event.seq))',
    'a payload goes only when its removal is on record',
  ),
  refusal('event_remains', 'delete on event', `not ${isDropped('old.run_id')}`, 'events are never removed'),
  refusal('run_remains', 'delete on run', `not ${isDropped('old.run_id')}`, 'runs are never removed'),
  refusal(
    'run_returns',
    'insert on run',
    isDropped('new.run_id'),
    'a run that was dropped does not come back',
  ),
  refusal(
    'inbox_remains',
    'delete on inbox',
    `not ${isDropped('old.run_id')}`,
    'inbox keys are known for ever',
  ),
  refusal(
    'inbox_is_taken_once',
    'update on inbox',
    'new.taken_seq is null or new.pos <> old.pos or new.run_id <> old.run_id or new.key <> old.key ' +
      'or new.kind <> old.kind or new.at <> old.at or (new.body <> old.body and length(new.body) > 0) ' +
      'or (old.taken_seq is not null and new.taken_seq <> old.taken_seq)',
    'an inbox entry is taken once, and never changed',
  ),
  refusal('content_stays', 'update on content', '', 'contents are never changed'),
  refusal(
    'content_once',
    'insert on content',
    'exists (select 1 from content where digest = new.digest)',
    'contents are never changed',
  ),
  refusal(
    'content_remains',
    'delete on content',
    'exists (select 1 from content_use where digest = old.digest)',
    'a content stays as long as an event refers to it',
  ),
  refusal('content_use_stays', 'update on content_use', '', 'uses of contents are never changed'),
  refusal(
    'content_use_remains',
    'delete on content_use',
    'exists (select 1 from payload where pos = old.pos)',
    'a use of a content goes only with the payload',
  ),
]
