import { sql, type Compilable, type Kysely, type RawBuilder } from 'kysely'
import { refusalCode } from '../connection/postgres-failure.ts'

/** The first schema, in a schema that is empty. Frozen: what is to change goes into a later migration. */
export async function makeLedger(database: Kysely<unknown>, schema: string): Promise<void> {
  const builder = database.withSchema(schema)
  const built = [...tables(builder), ...indexes(builder)].map((statement) => statement.compile().sql)
  // As one message: each statement by itself would wait for the one before to be answered.
  await sql.raw([...built, ...triggerStatements(schema)].join(';\n')).execute(database)
}

/** Ids and keys are compared byte by byte: no locale makes two of them equal, or orders them anew. */
const bytewise: RawBuilder<string> = sql`text collate "C"`

function tables({ schema }: Kysely<unknown>): readonly Compilable[] {
  return [
    schema
      .createTable('ledger')
      .addColumn('application', 'text', (column) => column.primaryKey())
      .addColumn('version', 'int8', (column) => column.notNull()),
    schema
      .createTable('run')
      .addColumn('run_id', bytewise, (column) => column.primaryKey())
      .addColumn('pos', 'int8', (column) => column.notNull())
      .addColumn('head_seq', 'int8', (column) => column.notNull())
      .addColumn('head_hash', 'bytea', (column) => column.notNull())
      .addColumn('epoch', 'int8', (column) => column.notNull())
      .addColumn('seal', 'bytea', (column) => column.notNull())
      .addColumn('session_id', bytewise)
      .addColumn('session_place', 'int8')
      // Room for new versions of a row beside the old: appends touch no column that is indexed.
      .modifyEnd(sql`with (fillfactor = 70)`),
    schema
      .createTable('event')
      .addColumn('pos', 'int8', (column) => column.primaryKey())
      .addColumn('run_id', bytewise, (column) => column.notNull())
      .addColumn('seq', 'int8', (column) => column.notNull())
      .addColumn('epoch', 'int8', (column) => column.notNull())
      .addColumn('type', bytewise, (column) => column.notNull())
      .addColumn('v', 'int8', (column) => column.notNull())
      .addColumn('turn', 'int8', (column) => column.notNull())
      .addColumn('tool_call_id', bytewise)
      .addColumn('at', 'int8', (column) => column.notNull())
      .addColumn('once_key', bytewise)
      .addColumn('body_commit', 'bytea', (column) => column.notNull())
      .addColumn('hash', 'bytea', (column) => column.notNull()),
    schema
      .createTable('payload')
      .addColumn('pos', 'int8', (column) => column.primaryKey())
      .addColumn('salt', 'bytea', (column) => column.notNull())
      .addColumn('body', 'bytea', (column) => column.notNull()),
    schema
      .createTable('inbox')
      .addColumn('pos', 'int8', (column) => column.primaryKey().generatedAlwaysAsIdentity())
      .addColumn('run_id', bytewise, (column) => column.notNull())
      .addColumn('key', bytewise, (column) => column.notNull())
      .addColumn('kind', bytewise, (column) => column.notNull())
      .addColumn('body', 'bytea', (column) => column.notNull())
      .addColumn('at', 'int8', (column) => column.notNull())
      .addColumn('taken_seq', 'int8'),
  ]
}

function indexes({ schema }: Kysely<unknown>): readonly Compilable[] {
  return [
    schema.createIndex('run_pos').unique().on('run').column('pos'),
    schema
      .createIndex('run_session')
      .unique()
      .on('run')
      .columns(['session_id', 'session_place'])
      .where(sql.ref('session_id'), 'is not', null),
    schema.createIndex('event_seq').unique().on('event').columns(['run_id', 'seq']),
    schema
      .createIndex('event_once')
      .unique()
      .on('event')
      .columns(['run_id', 'once_key'])
      .where(sql.ref('once_key'), 'is not', null),
    schema.createIndex('event_turn').on('event').columns(['run_id', 'turn', 'seq']),
    schema.createIndex('event_type').on('event').columns(['run_id', 'type', 'seq']),
    schema
      .createIndex('event_tool_call')
      .on('event')
      .columns(['tool_call_id', 'seq'])
      .where(sql.ref('tool_call_id'), 'is not', null),
    schema.createIndex('event_at').on('event').column('at'),
    schema.createIndex('inbox_key').unique().on('inbox').columns(['run_id', 'key']),
    schema
      .createIndex('inbox_open')
      .on('inbox')
      .columns(['run_id', 'pos'])
      .where(sql.ref('taken_seq'), 'is', null),
  ]
}

/** What the triggers refuse to every client of the database, this library included, until they are dropped. */
interface Refusal {
  readonly trigger: string
  readonly on: string
  /** Of the row before and the row after; where not given, the statement is refused whatever its rows. */
  readonly when?: string
  readonly why: string
}

const refusals: readonly Refusal[] = [
  {
    trigger: 'event_stays',
    on: 'update or delete or truncate on event',
    why: 'events stay as they were written',
  },
  { trigger: 'payload_stays', on: 'update or truncate on payload', why: 'payloads are never changed' },
  { trigger: 'run_remains', on: 'delete or truncate on run', why: 'runs are never removed' },
  {
    trigger: 'run_advances',
    on: 'update on run',
    when:
      'new.run_id <> old.run_id or new.pos <> old.pos or new.head_seq < old.head_seq or new.epoch < old.epoch ' +
      'or (new.head_seq = old.head_seq and new.head_hash <> old.head_hash) ' +
      'or new.session_id is distinct from old.session_id or new.session_place is distinct from old.session_place',
    why: 'the head and the epoch of a run never fall, and its place in a session stays',
  },
  { trigger: 'inbox_remains', on: 'delete or truncate on inbox', why: 'inbox keys are known for ever' },
  {
    trigger: 'inbox_is_taken_once',
    on: 'update on inbox',
    when:
      'old.taken_seq is not null or new.taken_seq is null or new.pos <> old.pos or new.run_id <> old.run_id ' +
      'or new.key <> old.key or new.kind <> old.kind or new.body <> old.body or new.at <> old.at',
    why: 'an inbox entry is taken once, and never changed',
  },
]

function triggerStatements(schema: string): readonly string[] {
  const place = `"${schema.replaceAll('"', '""')}"`
  const always = (table: string, trigger: string): string =>
    `alter table ${place}.${table} enable always trigger ${trigger}`
  return [
    `create sequence ${place}.event_pos`,
    `create function ${place}.refuse() returns trigger language plpgsql as $$
begin
  raise exception 'tallystick: %', tg_argv[0] using errcode = '${refusalCode}';
end
$$`,
    ...refusals.flatMap(({ trigger, on, when, why }) => {
      const [events = '', table = ''] = on.split(' on ')
      const each = when === undefined ? 'for each statement' : `for each row when (${when})`
      return [
        `create trigger ${trigger} before ${events} on ${place}.${table} ${each} execute function ${place}.refuse('${why}')`,
        always(table, trigger),
      ]
    }),
    followsFunction(place),
    `create trigger event_follows after insert on ${place}.event referencing new table as added
      for each statement execute function ${place}.event_follows()`,
    always('event', 'event_follows'),
  ]
}

/**
 * A run's events end at the head in the run's row, which the same statement has moved; so no client adds one beside
 * it.
 */
function followsFunction(place: string): string {
  return `create function ${place}.event_follows() returns trigger language plpgsql as $$
declare
  batch record;
  head record;
begin
  for batch in select run_id, min(seq) as first, max(seq) as last, count(*) as events, min(epoch) as lowest,
      max(epoch) as highest from added group by run_id
  loop
    select head_seq, epoch into head from ${place}.run where run.run_id = batch.run_id;
    if head.head_seq is distinct from batch.last or batch.last - batch.first + 1 <> batch.events
      or head.epoch is distinct from batch.lowest or batch.lowest <> batch.highest
      or (batch.first <> 1 and not exists (
        select from ${place}.event where event.run_id = batch.run_id and event.seq = batch.first - 1
      ))
    then
      raise exception 'tallystick: an event follows the last one of its run without a gap' using errcode = '${refusalCode}';
    end if;
  end loop;
  return null;
end
$$`
}
