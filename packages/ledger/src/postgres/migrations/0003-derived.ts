import { sql, type Kysely } from 'kysely'

/** What follows from the events, and can be dropped at any time: snapshots, and projections of runs and totals. */
export async function addProjections(database: Kysely<unknown>, schema: string): Promise<void> {
  const place = `"${schema.replaceAll('"', '""')}"`
  await sql.raw([...tables(place), ...indexes(place), ...rows(place)].join(';\n')).execute(database)
}

/** Ids and keys are compared byte by byte: no locale makes two of them equal, or orders them anew. */
const bytewise = 'text collate "C"'

function tables(place: string): readonly string[] {
  return [
    `create table ${place}.snapshot (
      run_id ${bytewise}, reducer ${bytewise}, seq int8, state bytea not null, head_hash bytea not null,
      seal bytea not null, primary key (run_id, reducer, seq)
    )`,
    `create table ${place}.projection (
      name ${bytewise} primary key, version ${bytewise} not null, revision int8 not null, cursor ${bytewise} not null
    )`,
    `create table ${place}.run_summary (
      run_id ${bytewise} primary key, pos int8 not null, seq int8 not null, head_hash bytea not null,
      standing ${bytewise} not null, session_id ${bytewise}, started_at int8 not null, last_at int8 not null,
      shares ${bytewise} not null, summary ${bytewise}, notes ${bytewise}
    )`,
    `create table ${place}.run_agent (agent ${bytewise}, pos int8, primary key (agent, pos))`,
    `create table ${place}.session_summary (
      session_id ${bytewise} primary key, runs int8 not null, started_at int8 not null, last_at int8 not null,
      turns int8 not null, tool_calls int8 not null, ${amounts}
    )`,
    `create table ${place}.spending (
      hour int8, agent ${bytewise}, provider ${bytewise}, api ${bytewise}, model_id ${bytewise},
      calls int8 not null, ${amounts}, primary key (hour, agent, provider, api, model_id)
    )`,
  ]
}

const amounts = [
  'unpriced',
  'cost_nano',
  'input_tokens',
  'output_tokens',
  'cache_read_tokens',
  'cache_write_tokens',
  'reasoning_tokens',
  'cache_write_long_tokens',
  'web_searches',
  'cache_write_long_told',
  'web_searches_told',
  'input_told',
  'output_told',
  'cache_read_told',
  'cache_write_told',
  'reasoning_told',
]
  .map((column) => `${column} int8 not null`)
  .join(', ')

function indexes(place: string): readonly string[] {
  return [
    `create index run_agent_pos on ${place}.run_agent (pos)`,
    `create unique index run_summary_pos on ${place}.run_summary (pos)`,
    `create index run_summary_standing on ${place}.run_summary (standing, pos, last_at)`,
    `create index run_summary_last on ${place}.run_summary (last_at)`,
    `create index run_summary_session on ${place}.run_summary (session_id, pos) where session_id is not null`,
    `create index run_summary_stale on ${place}.run_summary (pos) where summary is null`,
    `create index session_summary_last on ${place}.session_summary (last_at, cost_nano)`,
  ]
}

function rows(place: string): readonly string[] {
  return [
    `insert into ${place}.projection (name, version, revision, cursor) values ('runs', '', 0, ''), ('snapshots', '', 0, '')`,
  ]
}
