/** The statements of a ledger, by name. Each is a transaction of its own. */
export interface StatementTexts {
  /** Groups of events behind the heads of their runs. */
  readonly append: Readonly<Record<'barrier' | 'lazy', string>>
  /** The same for groups in which an event refers to large contents. */
  readonly appendLarge: Readonly<Record<'barrier' | 'lazy', string>>
  /** Takes inbox entries for commands that were refused, where the head is as expected. */
  readonly settle: Readonly<Record<'barrier' | 'lazy', string>>
  readonly acquire: string
  readonly run: string
  readonly page: string
  /** The first event of a run that still has its payload. */
  readonly firstRow: string
  readonly put: string
  readonly inbox: string
  readonly onceKeys: string
  readonly marks: string
  /** Makes every commit before it durable. */
  readonly harden: string
  readonly tell: string
}

/** A page holds at most this many events, and ends with the first that takes its bodies over this many bytes. */
export const eventsPerPage = 256
export const bytesPerPage: number = 1024 * 1024

/**
 * Whether a commit waits for the disk is a setting of its transaction, which a statement can make for itself. What the
 * database or the role ask for beyond a sync, such as standbys, is left as it is.
 */
const durability = {
  lazy: `set_config('synchronous_commit', 'off', true)`,
  barrier: `set_config('synchronous_commit', case when current_setting('synchronous_commit') = 'off' then 'on' else current_setting('synchronous_commit') end, true)`,
} as const

/**
 * The commit of a transaction that has written nothing syncs nothing, so a barrier writes into the log what only a
 * logical decoder would read.
 */
const logEntry = `pg_logical_emit_message(true, 'tallystick', '')`

/** `sealOf` within the database, so that a take-over is one statement. Postgres spells a text as JSON as we do. */
function sealSql(row: Readonly<Record<keyof typeof sealed, string>>): string {
  const session = `case when ${row.session_id} is null then '' else ',"sessionId":' || to_json(${row.session_id})::text
    || ',"sessionPlace":' || ${row.session_place} end`
  return `sha256('\\x02'::bytea || convert_to('{"epoch":' || ${row.epoch} || ',"headHash":"' || encode(${row.head_hash}, 'hex')
    || '","headSeq":' || ${row.head_seq} || ',"pos":' || ${row.pos} || ',"runId":' || to_json(${row.run_id})::text
    || ${session} || '}', 'UTF8'))`
}

/** The columns that a seal covers. */
const sealed = {
  run_id: 'run_id',
  pos: 'pos',
  head_seq: 'head_seq',
  head_hash: 'head_hash',
  epoch: 'epoch',
  session_id: 'session_id',
  session_place: 'session_place',
} as const

/** The `n`-th of values of a fixed length that stand in one run of bytes. */
function nthOf(bytes: string, length: number, n: string): string {
  return `substring(${bytes} from (${n}::int - 1) * ${length} + 1 for ${length})`
}

/** Writes the statements for a schema, whose name is quoted already. */
export function statementTexts(schema: string): StatementTexts {
  const append = appendText(schema)
  const settle = settleText(schema)
  return {
    append: { barrier: append(durability.barrier, ''), lazy: append(durability.lazy, '') },
    appendLarge: {
      barrier: append(durability.barrier, contentsText(schema)),
      lazy: append(durability.lazy, contentsText(schema)),
    },
    settle: {
      barrier: settle(`${durability.barrier}, ${logEntry}`),
      lazy: settle(durability.lazy),
    },
    acquire: `update ${schema}.run set epoch = epoch + 1,
      seal = ${sealSql({ ...sealed, epoch: '(epoch + 1)' })}
      where run_id = $1 returning head_seq, head_hash, epoch, ${durability.barrier}`,
    run: `select head_seq, head_hash, epoch from ${schema}.run where run_id = $1`,
    page: pageText(schema),
    firstRow: `select event.*, salt, body from ${schema}.event join ${schema}.payload using (pos)
      where run_id = $1 order by seq limit 1`,
    put: `with known as (select run_id from ${schema}.run where run_id = $1),
      put as (
        insert into ${schema}.inbox (run_id, key, kind, body, at)
        select run_id, $2::text, $3::text, $4::bytea, $5::int8 from known on conflict (run_id, key) do nothing returning pos
      )
      select (select count(*) from known) as runs, (select count(*) from put) as entries, ${durability.barrier}`,
    inbox: `select key, body, at from ${schema}.inbox where run_id = $1 and taken_seq is null order by pos`,
    onceKeys: `select once_key from ${schema}.event where run_id = $1 and once_key = any ($2::text[]) limit 1`,
    marks: `select run_id, head_seq || ' ' || epoch || ' ' || coalesce(
        (select max(pos) from ${schema}.inbox where inbox.run_id = run.run_id and taken_seq is null), 0) as mark
      from ${schema}.run where run_id = any ($1::text[])`,
    harden: `select ${logEntry}, ${durability.barrier}`,
    tell: `select pg_notify($1::text, $2::text), ${durability.lazy}`,
  }
}

/**
 * The compare-and-swap of the heads and all that hangs on it. Hashes, salts and bodies come as one run of bytes each,
 * since an array of them would have to be spelled out as text.
 *
 * $1 to $8 are the runs: ids, expected seqs, epochs, new head seqs, sessions, places in them, hashes of the expected
 * and of the new heads. $9 to $22 are the events: whose (from 1, the place among the runs), seqs, types, versions,
 * turns, calls, times, once keys, commitments, hashes, salts, where bodies begin and how long they are, bodies. $23
 * and $24 are the inbox entries: whose, and keys; $25 says of each run whether it is sealed: a command that was taken
 * says nothing any more then.
 */
function appendText(schema: string): (durable: string, more: string) => string {
  const movedSeal = sealSql({
    run_id: 'run.run_id',
    pos: 'run.pos',
    head_seq: 'head.head_seq',
    head_hash: 'head.head_hash',
    epoch: 'head.epoch',
    session_id: 'run.session_id',
    session_place: 'run.session_place',
  })
  const nextPos = `nextval('${schema.replaceAll("'", "''")}.event_pos')`
  return (durable, more) => `with head as materialized (
    select place, run_id, expected_seq, epoch, head_seq, session_id, session_place,
      ${nthOf('$7::bytea', 32, 'place')} as previous_hash, ${nthOf('$8::bytea', 32, 'place')} as head_hash
    from unnest($1::text[], $2::int8[], $3::int8[], $4::int8[], $5::text[], $6::int8[]) with ordinality
      as given (run_id, expected_seq, epoch, head_seq, session_id, session_place, place)
  ), moved as (
    update ${schema}.run set head_seq = head.head_seq, head_hash = head.head_hash, seal = ${movedSeal}
    from head
    where head.expected_seq > 0 and run.run_id = head.run_id and run.head_seq = head.expected_seq
      and run.epoch = head.epoch and run.head_hash = head.previous_hash
    returning run.run_id, run.pos
  ), made as (
    insert into ${schema}.run (run_id, pos, head_seq, head_hash, epoch, seal, session_id, session_place)
    select run_id, pos, head_seq, head_hash, epoch, ${sealSql(sealed)}, session_id, session_place
    from (select ${nextPos} as pos, head.* from head where expected_seq = 0 and epoch = 1) fresh
    on conflict (run_id) do nothing
    returning run_id, pos
  ), swapped as materialized (
    select array_agg(coalesce(moved.pos, made.pos) order by head.place) as places
    from head left join moved on moved.run_id = head.run_id left join made on made.run_id = head.run_id
  ), placed as materialized (
    select case when seq = 1 then first_pos else ${nextPos} end as pos, sorted.*
    from (
      select ($1::text[])[given.whose] as run_id, ($3::int8[])[given.whose] as epoch, places[given.whose] as first_pos, given.*
      from swapped cross join unnest($9::int4[], $10::int8[], $11::text[], $12::int8[], $13::int8[], $14::text[], $15::int8[], $16::text[], $20::int8[], $21::int8[])
        with ordinality as given (whose, seq, type, v, turn, tool_call_id, at, once_key, body_from, body_bytes, n)
      where places[given.whose] is not null order by n
    ) sorted
  ), written as (
    insert into ${schema}.event (pos, run_id, seq, epoch, type, v, turn, tool_call_id, at, once_key, body_commit, hash)
    select pos, run_id, seq, epoch, type, v, turn, tool_call_id, at, once_key,
      ${nthOf('$17::bytea', 32, 'n')}, ${nthOf('$18::bytea', 32, 'n')}
    from placed order by n
  ), said as (
    insert into ${schema}.payload (pos, salt, body)
    select pos, ${nthOf('$19::bytea', 16, 'n')}, substring($22::bytea from body_from::int for body_bytes::int)
    from placed order by n
  ), taken as (
    update ${schema}.inbox set taken_seq = ($4::int8[])[given.whose],
      body = case when ($25::bool[])[given.whose] then ''::bytea else inbox.body end
    from swapped cross join unnest($23::int4[], $24::text[]) as given (whose, taken_key)
    where places[given.whose] is not null
      and inbox.run_id = ($1::text[])[given.whose] and inbox.key = given.taken_key and inbox.taken_seq is null
  )${more}
  select places, ${durable} from swapped`
}

/**
 * Large contents, each once. $26 to $29 are the contents: digests, where they begin, how long they are, bytes; $30 and
 * $31 the uses: by which event (from 1), of which digest. Of an append that was refused nothing is kept.
 */
function contentsText(schema: string): string {
  return `, uses as materialized (
    select placed.pos, given.digest from unnest($30::int8[], $31::text[]) as given (n, digest)
    join placed on placed.n = given.n
  ), kept as (
    insert into ${schema}.content (digest, body)
    select digest, substring($29::bytea from body_from::int for body_bytes::int)
    from unnest($26::text[], $27::int8[], $28::int8[]) as given (digest, body_from, body_bytes)
    where digest in (select digest from uses)
    on conflict (digest) do nothing
  ), used as (
    insert into ${schema}.content_use (pos, digest) select distinct pos, digest from uses
  )`
}

function settleText(schema: string): (durable: string) => string {
  return (durable) => `with held as (
    select run_id from ${schema}.run where run_id = $1 and head_seq = $2 and epoch = $3 for no key update
  ), taken as (
    update ${schema}.inbox set taken_seq = $2, body = case when $5::bool then ''::bytea else inbox.body end from held
    where inbox.run_id = held.run_id and inbox.key = any ($4::text[]) and inbox.taken_seq is null
  )
  select (select count(*) from held) as runs, ${durable}`
}

/** Counts bytes while it goes, so that a page of large bodies ends early and is never read whole. */
function pageText(schema: string): string {
  return `select pos, run_id, seq, epoch, type, v, turn, tool_call_id, at, once_key, body_commit, hash, salt, body
    from (
      select event.pos, run_id, seq, epoch, type, v, turn, tool_call_id, at, once_key, body_commit, hash, salt, body,
        sum(octet_length(body)) over (order by seq rows between unbounded preceding and 1 preceding) as bytes_before
      from ${schema}.event left join ${schema}.payload on payload.pos = event.pos
      where run_id = $1 and seq >= $2 and seq <= $3
      order by seq limit ${eventsPerPage}
    ) as page
    where coalesce(bytes_before, 0) < ${bytesPerPage} order by seq`
}
