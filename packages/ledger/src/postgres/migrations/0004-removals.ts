import { sql, type Compilable, type Kysely, type RawBuilder } from 'kysely'
import { refusalCode } from '../connection/postgres-failure.ts'

/** Large contents, kept once; and removals, which alone let payloads, and runs that were dropped, go. */
export async function addRemovals(database: Kysely<unknown>, schema: string): Promise<void> {
  const builder = database.withSchema(schema)
  const built = [...tables(builder), ...indexes(builder)].map((statement) => statement.compile().sql)
  await sql.raw([...built, ...triggerStatements(schema)].join(';\n')).execute(database)
}

const bytewise: RawBuilder<string> = sql`text collate "C"`

function tables({ schema }: Kysely<unknown>): readonly Compilable[] {
  return [
    schema
      .createTable('content')
      .addColumn('digest', bytewise, (column) => column.primaryKey())
      .addColumn('body', 'bytea', (column) => column.notNull()),
    schema
      .createTable('content_use')
      .addColumn('pos', 'int8', (column) => column.notNull())
      .addColumn('digest', bytewise, (column) => column.notNull())
      .addPrimaryKeyConstraint('content_use_key', ['pos', 'digest']),
    schema
      .createTable('removal')
      .addColumn('pos', 'int8', (column) => column.primaryKey())
      .addColumn('run_id', bytewise, (column) => column.notNull())
      .addColumn('from_seq', 'int8', (column) => column.notNull())
      .addColumn('to_seq', 'int8', (column) => column.notNull())
      .addColumn('kind', bytewise, (column) => column.notNull())
      .addColumn('at', 'int8', (column) => column.notNull())
      .addColumn('by', bytewise, (column) => column.notNull())
      .addColumn('reason', bytewise)
      .addColumn('kept', bytewise)
      .addColumn('head_hash', bytewise)
      .addColumn('hash', 'bytea', (column) => column.notNull()),
  ]
}

function indexes({ schema }: Kysely<unknown>): readonly Compilable[] {
  return [
    schema.createIndex('content_use_digest').on('content_use').column('digest'),
    schema.createIndex('removal_run').on('removal').columns(['run_id', 'to_seq']),
  ]
}

/** What no client may do, whatever the rows. */
const refusals: readonly (readonly [trigger: string, on: string, why: string])[] = [
  ['event_stays', 'update or truncate on event', 'events stay as they were written'],
  ['run_stays', 'truncate on run', 'runs are never removed'],
  ['inbox_stays', 'truncate on inbox', 'inbox keys are known for ever'],
  ['removal_stays', 'update or delete or truncate on removal', 'removals stay as they were written'],
  ['content_stays', 'update or truncate on content', 'contents are never changed'],
  ['content_use_stays', 'update or truncate on content_use', 'uses of contents are never changed'],
]

/** What may be deleted, by the rows that went: each of these conditions would find one that had to stay. */
const leavings: readonly (readonly [trigger: string, on: string, wrong: string, why: string])[] = [
  [
    'payload_remains',
    'payload',
    `@.event using (pos) where not exists (select from @.removal where removal.run_id = event.run_id
      and removal.from_seq <= event.seq and removal.to_seq >= event.seq)`,
    'a payload goes only when its removal is on record',
  ],
  ['event_remains', 'event', '', 'events are never removed'],
  ['run_remains', 'run', '', 'runs are never removed'],
  ['inbox_remains', 'inbox', '', 'inbox keys are known for ever'],
  [
    'content_remains',
    'content',
    '@.content_use using (digest)',
    'a content stays as long as an event refers to it',
  ],
  [
    'content_use_remains',
    'content_use',
    '@.payload using (pos)',
    'a use of a content goes only with the payload',
  ],
]

const ofRunThatStays = `left join @.removal on removal.run_id = gone.run_id and removal.kind = 'dropped' where removal.pos is null`

function triggerStatements(schema: string): readonly string[] {
  const place = `"${schema.replaceAll('"', '""')}"`
  const always = (table: string, trigger: string): string =>
    `alter table ${place}.${table} enable always trigger ${trigger}`
  const raise = (why: string): string =>
    `raise exception 'tallystick: ${why}' using errcode = '${refusalCode}'`
  return [
    `drop trigger event_stays on ${place}.event`,
    `drop trigger run_remains on ${place}.run`,
    `drop trigger inbox_remains on ${place}.inbox`,
    `drop trigger inbox_is_taken_once on ${place}.inbox`,
    ...refusals.flatMap(([trigger, on, why]) => {
      const [events = '', table = ''] = on.split(' on ')
      return [
        `create trigger ${trigger} before ${events} on ${place}.${table} for each statement execute function ${place}.refuse('${why}')`,
        always(table, trigger),
      ]
    }),
    ...leavings.flatMap(([trigger, table, wrong, why]) => {
      const found = (wrong === '' ? ofRunThatStays : `join ${wrong}`).replaceAll('@', place)
      return [
        `create function ${place}.${trigger}() returns trigger language plpgsql as $$
begin
  if exists (select from gone ${found}) then
    ${raise(why)};
  end if;
  return null;
end
$$`,
        `create trigger ${trigger} after delete on ${place}.${table} referencing old table as gone
          for each statement execute function ${place}.${trigger}()`,
        always(table, trigger),
      ]
    }),
    `create function ${place}.run_returns() returns trigger language plpgsql as $$
begin
  if exists (select from ${place}.removal where removal.run_id = new.run_id and removal.kind = 'dropped') then
    ${raise('a run that was dropped does not come back')};
  end if;
  return new;
end
$$`,
    `create trigger run_returns before insert on ${place}.run for each row execute function ${place}.run_returns()`,
    always('run', 'run_returns'),
    `create trigger inbox_is_taken_once before update on ${place}.inbox for each row when (
      new.taken_seq is null or new.pos <> old.pos or new.run_id <> old.run_id or new.key <> old.key
      or new.kind <> old.kind or new.at <> old.at or (new.body <> old.body and length(new.body) > 0)
      or (old.taken_seq is not null and new.taken_seq <> old.taken_seq)
    ) execute function ${place}.refuse('an inbox entry is taken once, and never changed')`,
    always('inbox', 'inbox_is_taken_once'),
  ]
}
