import type { Database } from 'better-sqlite3'
import { isRareText } from '../store/find-events.ts'

/** The `application_id` of a ledger file: the letters TLSK. */
export const applicationId: number = 0x544c534b

/** The format of the record, which is the `user_version` of a file. */
export const schemaVersion = 1

/** The record: what cannot be made again. */
const recordTables: readonly string[] = [
  // One row a message of what runs begin with, so that a session's messages are kept once.
  `create table history (digest text primary key, before text references history (digest), message text not null) strict, without rowid`,
  // Where each run stands: appending is a compare-and-swap of this row. Its lease and when it is due are not part of the record.
  `create table run (pos integer primary key, run_id text not null unique, head_seq integer not null, head_hash text not null,
  epoch integer not null, session_id text, session_place integer, ended_at integer, history text references history (digest),
  seal text not null, lease_holder text, lease_until integer, due_at integer, unique (session_id, session_place)) strict`,
  // One event is one row.
  `create table event (pos integer primary key autoincrement, run_id text not null references run (run_id), seq integer not null,
  type text not null, turn integer not null, tool_call_id text, attempt integer, at integer not null, epoch integer not null,
  v integer not null, key_id text, body text not null, salt text, commitment text, hash text not null, unique (run_id, seq)) strict`,
  // Commands from outside. Rows stay when they are taken, so that a key is known for ever.
  `create table inbox (pos integer primary key, run_id text not null references run (run_id), key text not null, at integer not null,
  command text not null, taken_seq integer, unique (run_id, key)) strict`,
  // The removals, by whom and why: a separate chain, which outlives dropped runs.
  `create table removal (pos integer primary key, run_id text not null, seq integer not null, kind text not null, at integer not null,
  by text not null, reason text, digest text not null, hash text not null) strict`,
]

/** Derived from events; can be dropped at any time. */
const derivedTables: readonly string[] = [
  // States of runs after some of their events, from which a fold begins.
  `create table snapshot (run_id text not null, reducer text not null, seq integer not null, state text not null, head_hash text not null,
  seal text not null, primary key (run_id, reducer, seq)) strict`,
  // One row a run, for lists and stats.
  `create table run_summary (pos integer primary key, run_id text unique not null, seq integer not null, head_hash text not null,
  status text not null, agent text not null, session_id text, subject text, is_child integer not null, started_at integer not null,
  last_at integer not null, reason text, cost_nano integer, tokens integer not null, terms text not null, summary text not null,
  notes text) strict`,
  // What runs are found by: an agent, a tool, an outcome, a tag.
  'create table run_term (term text not null, pos integer not null, primary key (term, pos)) strict, without rowid',
  // Of which code the rows of runs are, how often rows were taken from the tables above, and which events the rows cover.
  `create table projection (name text primary key not null, version text not null, revision integer not null, covered text) strict, without rowid`,
  `insert into projection (name, version, revision) values ('runs', '', 0)`,
]

const indexes: readonly string[] = [
  // A start, a decision and a result of a call are recorded once; and events are found by their call.
  `create unique index event_call on event (tool_call_id, run_id, type, attempt) where tool_call_id is not null`,
  'create index event_at on event (at)',
  // Few events of a ledger, which are found among all of it: the schedules, and the calls that wait.
  `create index event_rare on event (type, pos) where ${isRareText}`,
  'create index inbox_open on inbox (run_id, pos) where taken_seq is null',
  // Finds runs that have something to do, however many wait.
  'create index run_due on run (due_at) where due_at is not null',
  'create index removal_event on removal (run_id, seq)',
  // Triggers ask it for each row of a run that is dropped, which may have had a removal for each event.
  `create index removal_dropped on removal (run_id) where kind = 'dropped'`,
  // For the foreign keys.
  'create index history_before on history (before) where before is not null',
  'create index run_history on run (history) where history is not null',
  'create index run_summary_status on run_summary (status, pos, last_at)',
  'create index run_summary_last on run_summary (last_at)',
  'create index run_summary_session on run_summary (session_id, pos) where session_id is not null',
  'create unique index run_summary_head on run_summary (run_id, seq, head_hash)',
  'create index run_summary_walk on run_summary (pos, last_at, started_at, is_child)',
  // All that stats read of a run.
  `create index run_summary_stats on run_summary (started_at, is_child, status, reason, cost_nano, tokens, last_at, agent, session_id, subject)`,
]

/** Refuses a statement if the condition holds. */
function refuseWhen(name: string, on: string, when: string, why: string): string {
  const condition = when === '' ? '' : `\n  when ${when}`
  return `create trigger ${name} before ${on}${condition}\n  begin select raise(abort, 'tallystick: ${why}'); end`
}

const isDropped = (runId: string): string =>
  `exists (select 1 from removal where run_id = ${runId} and kind = 'dropped')`
const isChanged = (columns: readonly string[]): string =>
  columns.map((column) => `new.${column} is not old.${column}`).join(' or ')

/**
 * Changes that no client of the file may make, this library included. For runs and commands they also keep out `insert or replace`,
 * which would remove rows without firing a trigger for that. Events have no trigger on insert, which would cost each of them: the chain
 * of hashes shows a row that was added or replaced.
 */
const triggers: readonly string[] = [
  refuseWhen(
    'event_stays',
    'update on event',
    `${isChanged([...['pos', 'run_id', 'seq', 'type', 'turn', 'tool_call_id', 'attempt', 'at'], ...['epoch', 'v', 'key_id', 'hash']])}
    or old.commitment is not null or new.commitment is null or new.salt is not null
    or not exists (select 1 from removal where run_id = old.run_id and seq = old.seq)`,
    'an event loses its content once, and only when that is on record',
  ),
  refuseWhen(
    'event_remains',
    'delete on event',
    `not ${isDropped('old.run_id')}`,
    'events are never removed',
  ),
  refuseWhen(
    'run_begins',
    'insert on run',
    `${isDropped('new.run_id')} or exists (select 1 from run where run_id = new.run_id or pos = new.pos
    or (session_id = new.session_id and session_place = new.session_place))`,
    'a run begins once, and one that was dropped does not come back',
  ),
  refuseWhen(
    'run_advances',
    'update on run',
    `${isChanged(['pos', 'run_id', 'session_id', 'session_place'])} or new.head_seq < old.head_seq or new.epoch < old.epoch
    or (new.head_seq = old.head_seq and new.head_hash <> old.head_hash) or (old.ended_at is not null and new.ended_at is not old.ended_at)
    or (old.ended_at is null and new.ended_at is not null and exists (select 1 from inbox where run_id = new.run_id and taken_seq is null))`,
    'a run never goes back, and ends only with its inbox read',
  ),
  refuseWhen('run_remains', 'delete on run', `not ${isDropped('old.run_id')}`, 'runs are never removed'),
  refuseWhen(
    'inbox_opens',
    'insert on inbox',
    `exists (select 1 from inbox where pos = new.pos or (run_id = new.run_id and key = new.key))
    or exists (select 1 from run where run_id = new.run_id and ended_at is not null)`,
    'a command is put once, and into a run that has not ended',
  ),
  refuseWhen(
    'inbox_stays',
    'update on inbox',
    `${isChanged(['pos', 'run_id', 'key', 'at'])} or new.taken_seq is null or (new.command <> old.command and new.command <> '')
    or (old.taken_seq is not null and new.taken_seq <> old.taken_seq)`,
    'a command is taken once, and never changed',
  ),
  refuseWhen(
    'inbox_remains',
    'delete on inbox',
    `not ${isDropped('old.run_id')}`,
    'keys of commands are known for ever',
  ),
  refuseWhen('removal_stays', 'update on removal', '', 'removals are never changed'),
  refuseWhen('removal_remains', 'delete on removal', '', 'removals are never removed'),
  refuseWhen('history_stays', 'update on history', '', 'messages are never changed'),
]

const uncover = `update projection set covered = null, revision = revision + 1 where name = 'runs'`
/** When a row of a run goes, or goes back, whoever does it, the rows no longer cover every event. */
const derivedTriggers: readonly string[] = [
  `create trigger run_summary_goes after delete on run_summary begin ${uncover}; end`,
  `create trigger run_summary_goes_back after update of pos, run_id, seq, head_hash on run_summary
  when new.pos <> old.pos or new.run_id <> old.run_id or new.seq < old.seq or (new.seq = old.seq and new.head_hash <> old.head_hash)
  begin ${uncover}; end`,
]

/** The statements that make the schema, in order. */
const schema: readonly string[] = [
  ...recordTables,
  ...derivedTables,
  ...indexes,
  ...triggers,
  ...derivedTriggers,
]

/** Objects of derived tables can be dropped at any time. */
export function isDerived(name: string): boolean {
  return /^(table|index|trigger) (snapshot|projection|run_summary|run_term)/.test(name)
}

/** Makes the schema, in one transaction, unless another process has made it. */
export function makeSchema(database: Database): void {
  database
    .transaction(() => {
      if (database.pragma('user_version', { simple: true }) === schemaVersion) return
      for (const statement of schema) database.exec(statement)
      database.pragma(`application_id = ${applicationId}`)
      database.pragma(`user_version = ${schemaVersion}`)
    })
    .immediate()
}
