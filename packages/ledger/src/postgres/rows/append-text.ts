import { eventParameters, spelledFor, type AppendParameter, type AppendShape } from './append-parameters.ts'
import { durabilityText, nowText, rowDigestColumns, rowDigestText } from './statement-parts.ts'

type Spelled = ReturnType<typeof spelledFor>

/**
 * The compare-and-swap of the heads and all that hangs on it, for a schema whose name is quoted already. It answers
 * `places`: for each run where it begins, and null where the head was not the expected one.
 */
export function appendText(schema: string, shape: AppendShape): string {
  const given = spelledFor(shape)
  const parts = shape.isAlone ? aloneParts(schema, shape, given) : groupParts(schema, shape, given)
  return `with ${parts.swapped}, placed as materialized (
    ${parts.placed}
  ), written as (
    insert into ${schema}.event (pos, run_id, first_seq, seq, epoch, type, v, turn, tool_call_id, at, once_key, body_commit, hash)
    select pos, run_id, nullif(first_seq, 0), seq, epoch, type, v, turn, tool_call_id, at, once_key, body_commit, hash from placed
  ), said as (
    insert into ${schema}.payload (pos, salt, body) select pos, salt, body from placed
  )${shape.states ? `, stated as (${parts.stated})` : ''}${shape.takes ? `, taken as (${parts.taken})` : ''}${shape.isLarge ? contentsText(schema, given) : ''}${shape.carries ? historiesText(schema, given) : ''}
  select ${parts.places} as places, ${durabilityText[shape.durability]} from swapped`
}

interface Parts {
  /** Ends with what has moved, as `swapped`. */
  readonly swapped: string
  /** Rows of runs whose heads have moved, each with its place, in their order. */
  readonly placed: string
  readonly stated: string
  readonly taken: string
  readonly places: string
}

const eventColumns =
  'first_seq, seq, type, v, turn, tool_call_id, at, once_key, body_commit, hash, salt, body'

function nextPos(schema: string): string {
  return `nextval('${schema.replaceAll("'", "''")}.event_pos')`
}

/** Each event takes a place, and a row has that of its last event. */
function lastOf(next: string): string {
  return `case when first_seq = 0 then ${next} else (select max(${next}) from generate_series(first_seq, seq)) end`
}

function aloneParts(schema: string, { begins, leases }: AppendShape, given: Spelled): Parts {
  const next = nextPos(schema)
  const movedRowDigest = rowDigestText({
    run_id: 'run.run_id',
    pos: 'run.pos',
    head_seq: given('headSeq'),
    head_hash: given('headHash'),
    epoch: 'run.epoch',
    session_id: 'run.session_id',
    session_place: 'run.session_place',
  })
  const moved = `update ${schema}.run set head_seq = ${given('headSeq')}, head_hash = ${given('headHash')}, seal = ${movedRowDigest}${leases ? movedLease(given('leaseHolder'), given('leaseForMs')) : ''}
    where run_id = ${given('runId')} and head_seq = ${given('expectedSeq')}
      and epoch = ${given('epoch')} and head_hash = ${given('previousHash')}
    returning pos`
  const made =
    (): string => `insert into ${schema}.run (run_id, pos, head_seq, head_hash, epoch, seal, session_id, session_place${leases ? leaseColumns : ''})
    select run_id, pos, head_seq, head_hash, epoch, ${rowDigestText(rowDigestColumns)}, session_id, session_place${leases ? newLease(given('leaseHolder'), given('leaseForMs')) : ''}
    from (
      select ${given('runId')} as run_id, ${next} as pos, ${given('headSeq')} as head_seq, ${given('headHash')} as head_hash,
        ${given('epoch')} as epoch, ${given('sessionId')} as session_id, ${given('sessionPlace')} as session_place
      where ${given('expectedSeq')} = 0 and ${given('epoch')} = 1
    ) as fresh
    on conflict (run_id) do nothing
    returning pos`
  return {
    swapped: `swapped as (${begins ? made() : moved})`,
    placed: `select ${begins ? `case when n = 1 then first_pos else ${lastOf(next)} end` : lastOf(next)} as pos,
      ${given('runId')} as run_id, ${given('epoch')} as epoch, ${eventColumns}, n
    from (
      select swapped.pos as first_pos, given.*
      from swapped cross join unnest(${eventParameters.map(given).join(', ')}) with ordinality as given (${eventColumns}, n)
      order by n
    ) as sorted`,
    stated: `insert into ${schema}.fact (run, number) select swapped.pos, given.number
    from swapped cross join unnest(${given('factNumber')}) as given (number)`,
    taken: `update ${schema}.inbox set taken_seq = ${given('headSeq')},
      body = case when ${given('isSealed')} then ''::bytea else inbox.body end
    from swapped
    where inbox.run_id = ${given('runId')} and inbox.key = any (${given('takenKey')}) and inbox.taken_seq is null`,
    places: 'array[pos]',
  }
}

function groupParts(schema: string, { begins, leases }: AppendShape, given: Spelled): Parts {
  const next = nextPos(schema)
  const nth = (name: AppendParameter): string => `(${given(name)})[given.whose]`
  const runs = ['runId', 'expectedSeq', 'epoch', 'headSeq', 'headHash', 'previousHash'] as const
  const sessions = begins ? (['sessionId', 'sessionPlace'] as const) : []
  const claims = leases ? (['leaseHolder', 'leaseForMs'] as const) : []
  const movedRowDigest = rowDigestText({
    run_id: 'run.run_id',
    pos: 'run.pos',
    head_seq: 'head.head_seq',
    head_hash: 'head.head_hash',
    epoch: 'head.epoch',
    session_id: 'run.session_id',
    session_place: 'run.session_place',
  })
  const made = (): string => `, made as (
    insert into ${schema}.run (run_id, pos, head_seq, head_hash, epoch, seal, session_id, session_place${leases ? leaseColumns : ''})
    select run_id, pos, head_seq, head_hash, epoch, ${rowDigestText(rowDigestColumns)}, session_id, session_place${leases ? newLease('lease_holder', 'lease_for_ms') : ''}
    from (select ${next} as pos, head.* from head where expected_seq = 0 and epoch = 1) as fresh
    on conflict (run_id) do nothing
    returning run_id, pos
  )`
  return {
    swapped: `head as materialized (
    select * from unnest(${[...runs, ...sessions, ...claims].map(given).join(', ')}) with ordinality
      as given (run_id, expected_seq, epoch, head_seq, head_hash, previous_hash, ${begins ? 'session_id, session_place, ' : ''}${leases ? 'lease_holder, lease_for_ms, ' : ''}place)
  ), moved as (
    update ${schema}.run set head_seq = head.head_seq, head_hash = head.head_hash, seal = ${movedRowDigest}${leases ? movedLease('head.lease_holder', 'head.lease_for_ms') : ''}
    from head
    where head.expected_seq > 0 and run.run_id = head.run_id and run.head_seq = head.expected_seq
      and run.epoch = head.epoch and run.head_hash = head.previous_hash
    returning run.run_id, run.pos
  )${begins ? made() : ''}, swapped as materialized (
    select array_agg(${begins ? 'coalesce(moved.pos, made.pos)' : 'moved.pos'} order by head.place) as places
    from head left join moved on moved.run_id = head.run_id${begins ? ' left join made on made.run_id = head.run_id' : ''}
  )`,
    placed: `select ${begins ? `case when seq = 1 then first_pos else ${lastOf(next)} end` : lastOf(next)} as pos, run_id, epoch, ${eventColumns}, n
    from (
      select ${nth('runId')} as run_id, ${nth('epoch')} as epoch, places[given.whose] as first_pos, given.*
      from swapped cross join unnest(${(['whose', ...eventParameters] as const).map(given).join(', ')})
        with ordinality as given (whose, ${eventColumns}, n)
      where places[given.whose] is not null order by n
    ) as sorted`,
    stated: `insert into ${schema}.fact (run, number) select places[given.whose], given.number
    from swapped cross join unnest(${given('statedBy')}, ${given('factNumber')}) as given (whose, number)
    where places[given.whose] is not null`,
    taken: `update ${schema}.inbox set taken_seq = ${nth('headSeq')},
      body = case when ${nth('isSealed')} then ''::bytea else inbox.body end
    from swapped cross join unnest(${given('takenBy')}, ${given('takenKey')}) as given (whose, taken_key)
    where places[given.whose] is not null
      and inbox.run_id = ${nth('runId')} and inbox.key = given.taken_key and inbox.taken_seq is null`,
    places: 'places',
  }
}

const leaseColumns = ', lease_holder, lease_until'

/** The lease of a run that begins: none where no holder is given, or an empty one. */
function newLease(holder: string, forMs: string): string {
  return `, nullif(${holder}, ''), case when ${holder} <> '' then ${nowText} + ${forMs} end`
}

function movedLease(holder: string, forMs: string): string {
  return `, lease_holder = case when ${holder} is null then run.lease_holder else nullif(${holder}, '') end,
      lease_until = case when ${holder} is null then run.lease_until when ${holder} <> '' then ${nowText} + ${forMs} end`
}

/** Large contents, each once. Of an append that was refused nothing is kept. */
function contentsText(schema: string, given: Spelled): string {
  return `, uses as materialized (
    select placed.pos, given.digest from unnest(${given('usedBy')}, ${given('usedDigest')}) as given (n, digest)
    join placed on placed.n = given.n
  ), kept as (
    insert into ${schema}.content (digest, body)
    select digest, body from unnest(${given('digest')}, ${given('content')}) as given (digest, body)
    where digest in (select digest from uses)
    on conflict (digest) do nothing
  ), used as (
    insert into ${schema}.content_use (pos, digest) select distinct pos, digest from uses
  )`
}

/** What runs begin with: pieces that are not there yet, and which event uses which. */
function historiesText(schema: string, given: Spelled): string {
  const pieces = (['historyName', 'historyBefore', 'historyDigest', 'historyBody'] as const).map(given)
  return `, begun as materialized (
    select placed.pos, given.name from unnest(${given('carriedBy')}, ${given('carriedName')}) as given (n, name)
    join placed on placed.n = given.n
  ), pieced as (
    insert into ${schema}.history (name, before, digest, body)
    select name, before, digest, body from unnest(${pieces.join(', ')}) as given (name, before, digest, body)
    where name in (select name from begun)
    on conflict (name) do nothing
  ), begun_with as (
    insert into ${schema}.history_use (pos, name) select pos, name from begun
  )`
}
