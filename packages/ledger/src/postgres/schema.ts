import { LedgerUnavailableError } from '@tallystick/core'
import type { ClientBase } from 'pg'
import { isRareText } from '../store/find-events.ts'
import {
  createClient,
  droppedCode,
  endedCode,
  isContention,
  type Pg,
  refusalCode,
  type Statement,
  unreadCode,
} from './connections.ts'
import type { DatabasePlace, PostgresLedgerOptions } from './options.ts'

/** The format of the record, which the comment on the table of runs tells. */
export const schemaVersion = 1

const text = 'text collate "C"'

/** The tables, as in a SQLite file, but that an event has the transaction that wrote it: see `tail.ts`. */
export const tables: Readonly<Record<string, string>> = {
  history: `digest ${text} primary key, before ${text} references @.history (digest), message text not null`,
  run: `pos bigint not null, run_id ${text} primary key, head_seq bigint not null, head_hash ${text} not null, epoch bigint not null,
    session_id ${text}, session_place bigint, ended_at bigint, history ${text} references @.history (digest), seal ${text} not null,
    lease_holder ${text}, lease_until bigint, due_at bigint`,
  event: `pos bigint primary key, xid xid8 not null default pg_current_xact_id(), run_id ${text} not null references @.run (run_id),
    seq bigint not null, type ${text} not null, turn bigint not null, tool_call_id ${text}, attempt bigint, at bigint not null,
    epoch bigint not null, v bigint not null, key_id ${text}, body text not null, salt ${text}, commitment ${text}, hash ${text} not null`,
  inbox: `pos bigint generated always as identity primary key, run_id ${text} not null references @.run (run_id), key ${text} not null,
    at bigint not null, command text not null, taken_seq bigint`,
  removal: `pos bigint primary key, run_id ${text} not null, seq bigint not null, kind ${text} not null, at bigint not null,
    by text not null, reason text, digest ${text} not null, hash ${text} not null`,
}

const derivedTables: Readonly<Record<string, string>> = {
  snapshot: `run_id ${text} not null, reducer ${text} not null, seq bigint not null, state text not null, head_hash ${text} not null,
    seal ${text} not null, primary key (run_id, reducer, seq)`,
  run_summary: `pos bigint primary key, run_id ${text} unique not null, seq bigint not null, head_hash ${text} not null,
    status ${text} not null, agent ${text} not null, session_id ${text}, subject ${text}, is_child bigint not null,
    started_at bigint not null, last_at bigint not null, reason ${text}, cost_nano bigint, tokens bigint not null,
    terms text not null, summary text not null, notes text`,
  run_term: `term ${text} not null, pos bigint not null, primary key (term, pos)`,
  projection: `name ${text} primary key, version ${text} not null, revision bigint not null, covered ${text}`,
}

export const indexes: readonly string[] = [
  'unique index run_pos on @.run (pos)',
  'unique index run_session on @.run (session_id, session_place) where session_id is not null',
  'index run_due on @.run (due_at, pos) where due_at is not null',
  'index run_history on @.run (history) where history is not null',
  'unique index event_seq on @.event (run_id, seq)',
  'unique index event_tail on @.event (xid, pos)',
  'unique index event_call on @.event (tool_call_id, run_id, type, attempt) where tool_call_id is not null',
  'index event_at on @.event (at)',
  `index event_rare on @.event (type, pos) where ${isRareText}`,
  'unique index inbox_key on @.inbox (run_id, key)',
  'index inbox_open on @.inbox (run_id, pos) where taken_seq is null',
  'index removal_event on @.removal (run_id, seq)',
  'index history_before on @.history (before) where before is not null',
  'index run_summary_status on @.run_summary (status, pos, last_at)',
  'index run_summary_last on @.run_summary (last_at)',
  'index run_summary_session on @.run_summary (session_id, pos) where session_id is not null',
  'unique index run_summary_head on @.run_summary (run_id, seq, head_hash)',
  'index run_summary_walk on @.run_summary (pos, last_at, started_at, is_child)',
  `index run_summary_stats on @.run_summary (started_at, is_child, status, reason, cost_nano, tokens, last_at, agent, session_id, subject, pos)`,
]

const isChanged = (columns: readonly string[]): string =>
  columns.map((column) => `new.${column} is distinct from old.${column}`).join(' or ')

/** Columns of an event that stay when it loses its content. */
const kept = isChanged([
  ...['pos', 'xid', 'run_id', 'seq', 'type', 'turn', 'tool_call_id', 'attempt', 'at', 'epoch', 'v', 'key_id'],
  'hash',
])

/** Functions of triggers that need more than a condition on a row. A trigger that SQLite has as well has its name. */
export const functions: Readonly<Record<string, string>> = {
  refuse: `begin
  raise exception 'tallystick: %', tg_argv[0] using errcode = '${refusalCode}';
end`,
  event_follows: `declare
  own xid8 := pg_current_xact_id();
  batch record;
  head record;
  previous xid8;
begin
  for batch in select run_id, min(seq) as first, max(seq) as last, count(*) as events, max(epoch) as epoch,
      bool_and(xid = own) as is_own, bool_or(type = 'run_finished') as ends from added group by run_id
  loop
    select head_seq, epoch into head from @.run where run.run_id = batch.run_id;
    select xid into previous from @.event where event.run_id = batch.run_id and event.seq = batch.first - 1;
    if head.head_seq is distinct from batch.last or head.epoch is distinct from batch.epoch
      or batch.last - batch.first + 1 <> batch.events or (batch.first <> 1 and previous is null)
    then
      raise exception 'tallystick: an event follows the last one of its run without a gap' using errcode = '${refusalCode}';
    end if;
    if not batch.is_own or (previous > own and previous < pg_snapshot_xmax(pg_current_snapshot())) then
      raise exception 'tallystick: an event carries its own transaction, after that of the event before it' using errcode = '${refusalCode}';
    end if;
    if batch.ends and exists (select from @.inbox where inbox.run_id = batch.run_id and inbox.taken_seq is null) then
      raise exception 'tallystick: a run ends with its inbox read' using errcode = '${unreadCode}';
    end if;
  end loop;
  return null;
end`,
  event_stays: `begin
  if ${kept} or old.commitment is not null or new.commitment is null or new.salt is not null
    or not exists (select from @.removal where removal.run_id = old.run_id and removal.seq = old.seq)
  then
    raise exception 'tallystick: an event loses its content once, and only when that is on record' using errcode = '${refusalCode}';
  end if;
  return new;
end`,
  only_dropped: `begin
  if exists (select from gone where not exists (
    select from @.removal where removal.run_id = gone.run_id and removal.kind = 'dropped'
  )) then
    raise exception 'tallystick: %', tg_argv[0] using errcode = '${refusalCode}';
  end if;
  return null;
end`,
  run_begins: `begin
  if exists (select from @.removal where removal.run_id = new.run_id and removal.kind = 'dropped') then
    raise exception 'tallystick: a run that was dropped does not come back' using errcode = '${droppedCode}';
  end if;
  return new;
end`,
  inbox_opens: `declare
  ended bigint;
begin
  -- In a statement of its own, which waits for an append that is under way and sees what it wrote.
  select ended_at into ended from @.run where run.run_id = new.run_id for share;
  if ended is not null then
    raise exception 'tallystick: a run that has ended takes no command' using errcode = '${endedCode}';
  end if;
  return new;
end`,
}

/**
 * Changes that no client of the database may make, this library included. A run that has events cannot be deleted, nor its table be
 * emptied, since they refer to it.
 */
export const triggers: readonly (readonly [name: string, on: string, then: string])[] = [
  [
    'event_follows',
    'after insert on @.event referencing new table as added for each statement',
    'event_follows()',
  ],
  ['event_stays', 'before update on @.event for each row', 'event_stays()'],
  [
    'event_remains',
    'after delete on @.event referencing old table as gone for each statement',
    `only_dropped('events are never removed')`,
  ],
  ['event_is_kept', 'before truncate on @.event for each statement', `refuse('events are never removed')`],
  ['run_begins', 'before insert on @.run for each row', 'run_begins()'],
  [
    'run_advances',
    `before update on @.run for each row when (${isChanged(['pos', 'run_id', 'session_id', 'session_place'])}
    or new.head_seq < old.head_seq or new.epoch < old.epoch or (new.head_seq = old.head_seq and new.head_hash <> old.head_hash)
    or (old.ended_at is not null and new.ended_at is distinct from old.ended_at))`,
    `refuse('a run never goes back')`,
  ],
  ['inbox_opens', 'before insert on @.inbox for each row', 'inbox_opens()'],
  [
    'inbox_stays',
    `before update on @.inbox for each row when (${isChanged(['pos', 'run_id', 'key', 'at'])} or new.taken_seq is null
    or (new.command <> old.command and new.command <> '') or (old.taken_seq is not null and new.taken_seq <> old.taken_seq))`,
    `refuse('a command is taken once, and never changed')`,
  ],
  [
    'inbox_remains',
    'after delete on @.inbox referencing old table as gone for each statement',
    `only_dropped('keys of commands are known for ever')`,
  ],
  [
    'inbox_is_kept',
    'before truncate on @.inbox for each statement',
    `refuse('keys of commands are known for ever')`,
  ],
  [
    'removal_stays',
    'before delete or update or truncate on @.removal for each statement',
    `refuse('removals stay as they were written')`,
  ],
  [
    'history_stays',
    'before update or truncate on @.history for each statement',
    `refuse('messages are never changed')`,
  ],
]

const derivedFunctions: Readonly<Record<string, string>> = {
  run_summary_goes: `begin
  update @.projection set covered = null, revision = revision + 1 where name = 'runs';
  return null;
end`,
}

const derivedTriggers: typeof triggers = [
  // When a row of a run goes, or goes back, whoever does it, the rows no longer cover every event.
  ['run_summary_goes', 'after delete or truncate on @.run_summary for each statement', 'run_summary_goes()'],
  [
    'run_summary_goes_back',
    `after update on @.run_summary for each row when (new.pos <> old.pos or new.run_id <> old.run_id or new.seq < old.seq
    or (new.seq = old.seq and new.head_hash <> old.head_hash))`,
    'run_summary_goes()',
  ],
]

/** The statements that make the schema; `@` stands for its quoted name. */
const schema: readonly string[] = [
  'create sequence @.event_pos',
  ...[...Object.entries(tables), ...Object.entries(derivedTables)].map(
    ([name, columns]) => `create table @.${name} (${columns})`,
  ),
  `insert into @.projection (name, version, revision) values ('runs', '', 0)`,
  ...indexes.map((index) => `create ${index}`),
  ...Object.entries({ ...functions, ...derivedFunctions }).map(
    ([name, source]) => `create function @.${name}() returns trigger language plpgsql as $$\n${source}\n$$`,
  ),
  ...[...triggers, ...derivedTriggers].flatMap(([name, on, then]) => [
    `create trigger ${name} ${on} execute function @.${then}`,
    // Also where a session is set to apply what another server sends.
    `alter table @.${/on @\.(\w+)/.exec(on)?.[1]} enable always trigger ${name}`,
  ]),
  `comment on table @.run is 'tallystick ledger, format ${schemaVersion}'`,
]

const tableNames: readonly string[] = [...Object.keys(tables), ...Object.keys(derivedTables)]

/** A schema without our tables, or a ledger of some format. */
export type Found = { readonly kind: 'nothing' } | { readonly kind: 'ledger'; readonly version: number }

/** Sends a statement. */
export type Ask = <Row>(statement: Statement) => Promise<readonly Row[]>

/**
 * Looks at the tables of the schema without changing them, and refuses a schema that cannot be a ledger, or not one that
 * this library can use. Throws `LedgerUnavailableError`.
 */
export async function inspectSchema(ask: Ask, place: DatabasePlace, readOnly: boolean): Promise<Found> {
  const [{ tables: present, encoding, comment } = { tables: [], encoding: '', comment: null }] = await ask<{
    readonly tables: readonly string[]
    readonly encoding: string
    readonly comment: string | null
  }>({
    text: `with found as (
        select pg_class.oid, relname::text from pg_catalog.pg_class join pg_catalog.pg_namespace on pg_namespace.oid = relnamespace
        where nspname = $1 and relname = any ($2::text[])
      )
      select current_setting('server_encoding') as encoding, array(select relname from found) as tables,
        (select obj_description(oid, 'pg_class') from found where relname = 'run') as comment`,
    values: [place.schema, tableNames],
  })
  if (encoding !== 'UTF8') {
    throw new LedgerUnavailableError(
      `The database of the ledger at ${place.description} has the encoding ${encoding}, which cannot hold every text. ` +
        'Create a database with the encoding UTF8, and name that one.',
    )
  }
  if (present.length === 0) {
    if (!readOnly) return { kind: 'nothing' }
    throw new LedgerUnavailableError(
      `There is no ledger at ${place.description}, and opening it for reading does not create one. Check the connection string and the schema.`,
      { reason: 'absent' },
    )
  }
  const version = Number(/^tallystick ledger, format (\d+)$/.exec(comment ?? '')?.[1] ?? 0)
  if (version === schemaVersion) return { kind: 'ledger', version }
  if (version > schemaVersion) {
    throw new LedgerUnavailableError(
      `The ledger at ${place.description} has format ${version}, and this library knows formats up to ${schemaVersion}. ` +
        'Writing to it could lose what the newer version keeps. Update @tallystick/ledger.',
    )
  }
  throw new LedgerUnavailableError(
    `The schema at ${place.description} has tables of another application (${[...present].toSorted().join(', ')}), and is ` +
      'not a Tallystick ledger. It was left as it is. Name another schema; one that does not exist is created.',
  )
}

/** How often the schema is made again where Postgres undid that for the sake of others. */
const maxTries = 20

/**
 * Makes the schema in one transaction, so that a crash leaves nothing or all of it. Processes that do it at once wait for
 * the first of them, over a connection that has all the time it takes.
 */
export async function makeSchema(
  options: PostgresLedgerOptions,
  place: DatabasePlace,
  pg: Pg,
): Promise<void> {
  const client = createClient(options, pg)
  try {
    await client.connect()
    for (let tries = 1; ; tries++) {
      try {
        return await makeWithin(client, place)
      } catch (error) {
        await client.query('rollback')
        if (!isContention(error) || tries === maxTries) throw error
      }
    }
  } finally {
    await client.end().catch(() => undefined)
  }
}

async function makeWithin(client: ClientBase, place: DatabasePlace): Promise<void> {
  // Read committed, to see the changes of the process that held the lock.
  await client.query('begin isolation level read committed')
  // A process that is stopped half-way must not keep the others waiting for ever.
  await client.query(`select set_config('statement_timeout', '0', true),
    set_config('idle_in_transaction_session_timeout', '60000', true), ${durabilityText.barrier}`)
  await client.query('select pg_advisory_xact_lock(hashtextextended($1, 0))', [`tallystick ${place.schema}`])
  const ask = async <Row>({ text, values }: Statement): Promise<readonly Row[]> =>
    (await client.query(text, [...values])).rows as readonly Row[]
  const found = await inspectSchema(ask, place, false)
  if (found.kind === 'nothing') {
    // Asking for a schema that is there needs a right that using it does not.
    const there = await ask({
      text: 'select from pg_catalog.pg_namespace where nspname = $1',
      values: [place.schema],
    })
    if (there.length === 0) await client.query(`create schema ${place.quotedSchema}`)
    for (const statement of schema) await client.query(placeInSchema(statement, place.quotedSchema))
  }
  await client.query('commit')
}

/** Replaces `@` in a statement by the quoted name of the schema. */
export function placeInSchema(statement: string, quotedSchema: string): string {
  const literal = quotedSchema.replaceAll("'", "''")
  return statement.replaceAll("'@.", () => `'${literal}.`).replaceAll('@.', () => `${quotedSchema}.`)
}

/**
 * A statement can set for its own transaction if the commit waits for the disk. What the database or the role ask for
 * beyond a sync, such as standbys, is left as it is.
 */
export const durabilityText = {
  lazy: `set_config('synchronous_commit', 'off', true)`,
  barrier: `set_config('synchronous_commit', case when current_setting('synchronous_commit') = 'off' then 'on' else current_setting('synchronous_commit') end, true)`,
} as const

/** The time of the server, in milliseconds since 1970 UTC. */
export const nowText = '(extract(epoch from clock_timestamp()) * 1000)::int8'
