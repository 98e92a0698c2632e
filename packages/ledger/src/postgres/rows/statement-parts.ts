/**
 * Whether a commit waits for the disk is a setting of its transaction, which a statement can make for itself. What the
 * database or the role ask for beyond a sync, such as standbys, is left as it is.
 */
export const durabilityText = {
  lazy: `set_config('synchronous_commit', 'off', true)`,
  barrier: `set_config('synchronous_commit', case when current_setting('synchronous_commit') = 'off' then 'on' else current_setting('synchronous_commit') end, true)`,
} as const

/** The columns that a row digest covers. */
export const rowDigestColumns = {
  run_id: 'run_id',
  pos: 'pos',
  head_seq: 'head_seq',
  head_hash: 'head_hash',
  epoch: 'epoch',
  session_id: 'session_id',
  session_place: 'session_place',
} as const

/** `rowDigest` within the database, so that a take-over is one statement. Postgres spells a text as JSON as we do. */
export function rowDigestText(row: Readonly<Record<keyof typeof rowDigestColumns, string>>): string {
  const session = `case when ${row.session_id} is null then '' else ',"sessionId":' || to_json(${row.session_id})::text
    || ',"sessionPlace":' || ${row.session_place} end`
  return `sha256('\\x02'::bytea || convert_to('{"epoch":' || ${row.epoch} || ',"headHash":"' || encode(${row.head_hash}, 'hex')
    || '","headSeq":' || ${row.head_seq} || ',"pos":' || ${row.pos} || ',"runId":' || to_json(${row.run_id})::text
    || ${session} || '}', 'UTF8'))`
}

/** The time of the server, in milliseconds since 1970 UTC. */
export const nowText = `(extract(epoch from clock_timestamp()) * 1000)::int8`
