import { sql, type Kysely } from 'kysely'
import { refusalCode } from '../connection/postgres-failure.ts'

/**
 * Neighbours of the types that come in every turn share a row, whose payload holds a segment for each. Rows that stand stay
 * as they are. Facts about calls that may be recorded once get a table of numbers, since such a row has no name of theirs.
 */
export async function addSharedRows(database: Kysely<unknown>, schema: string): Promise<void> {
  const place = `"${schema.replaceAll('"', '""')}"`
  const always = (table: string, trigger: string): string =>
    `alter table ${place}.${table} enable always trigger ${trigger}`
  const statements = [
    `create table ${place}.fact (run bigint not null, number bigint not null, constraint fact_key primary key (run, number))`,
    // A ledger in which two rows name one fact is damaged, and only one that can be opened can be verified.
    `${factsOf(`${place}.event`, place)} on conflict do nothing`,
    followsFunction(place),
    `create trigger fact_stays before update or truncate on ${place}.fact for each statement execute function ${place}.refuse('facts are never changed')`,
    always('fact', 'fact_stays'),
    factsRemain(place),
    `create trigger fact_remains after delete on ${place}.fact referencing old table as gone for each statement execute function ${place}.fact_remains()`,
    always('fact', 'fact_remains'),
    `drop trigger payload_stays on ${place}.payload`,
    `create trigger payload_stays before truncate on ${place}.payload for each statement execute function ${place}.refuse('payloads are never changed')`,
    always('payload', 'payload_stays'),
    segmentsStay(place),
    `create trigger segments_stay before update on ${place}.payload for each row execute function ${place}.segments_stay()`,
    always('payload', 'segments_stay'),
    payloadsRemain(place),
    `drop view ${place}.each_event`,
    eachEvent(place),
  ]
  await sql.raw(statements.join(';\n')).execute(database)
}

/** The numbers of `factNumberOf` for rows that name a fact about a call of their run. */
function factsOf(rows: string, place: string): string {
  const number = String.raw`(0|[1-9]\d{0,8})`
  const shape = `^tool_(?:started|result) call_([0-9a-f]{32})_${number}_${number}_${number}(?: ${number})?$`
  return `insert into ${place}.fact (run, number)
    select run, ((turn * 64 + attempt) * 4096 + ordinal) * 512 + coalesce(start, 511) from (
      select run.pos as run, run_id, said[1] as called, said[2]::int8 as turn, said[3]::int8 as attempt, said[4]::int8 as ordinal,
        said[5]::int8 as start
      from ${rows} join ${place}.run using (run_id) cross join lateral regexp_match(once_key, '${shape}') as said
      where once_key is not null and type in ('tool_started', 'tool_result') and said is not null
    ) as told
    where called = replace(run_id, '-', '') and turn < 16777216 and attempt < 64 and ordinal < 4096 and coalesce(start, 0) < 511`
}

/** The trigger of the schema before; and rows that name their fact state it by its number, whichever release writes them. */
function followsFunction(place: string): string {
  return `create or replace function ${place}.event_follows() returns trigger language plpgsql as $$
declare
  own xid8 := pg_current_xact_id();
  batch record;
  head record;
  previous xid8;
  states boolean := false;
begin
  for batch in select run_id, min(coalesce(first_seq, seq)) as first, max(seq) as last,
      sum(1 + seq - coalesce(first_seq, seq)) as events, min(epoch) as lowest, max(epoch) as highest, bool_and(xid = own) as is_own,
      bool_or(seq - first_seq not between 1 and 255 or (first_seq is not null and once_key is not null)) as is_misshapen,
      bool_or(once_key is not null) as states from added group by run_id
  loop
    states := states or batch.states;
    select head_seq, epoch into head from ${place}.run where run.run_id = batch.run_id;
    select xid into previous from ${place}.event where event.run_id = batch.run_id and event.seq = batch.first - 1;
    if head.head_seq is distinct from batch.last or batch.last - batch.first + 1 <> batch.events
      or head.epoch is distinct from batch.lowest or batch.lowest <> batch.highest
      or (batch.first <> 1 and previous is null) or batch.is_misshapen
    then
      ${raise('an event follows the last one of its run without a gap')};
    end if;
    if not batch.is_own or (previous > own and previous < pg_snapshot_xmax(pg_current_snapshot())) then
      ${raise('an event carries its own transaction, behind that of the event before it')};
    end if;
  end loop;
  if states then
    ${factsOf('added', place)};
  end if;
  return null;
end
$$`
}

function raise(why: string): string {
  return `raise exception 'tallystick: ${why}' using errcode = '${refusalCode}'`
}

function factsRemain(place: string): string {
  return `create function ${place}.fact_remains() returns trigger language plpgsql as $$
begin
  if exists (select from gone join ${place}.run on run.pos = gone.run
      left join ${place}.removal on removal.run_id = run.run_id and removal.kind = 'dropped' where removal.pos is null) then
    ${raise('facts are never removed')};
  end if;
  return null;
end
$$`
}

function segmentsStay(place: string): string {
  const heads = (row: string): string =>
    String.raw`substring(${row}.body from 1 for position('\x0a'::bytea in ${row}.body))`
  return `create function ${place}.segments_stay() returns trigger language plpgsql as $$
begin
  if new.pos <> old.pos or new.salt <> decode(repeat('00', 16), 'hex') or ${heads('new')} <> ${heads('old')}
    or not exists (select from ${place}.event join ${place}.removal on removal.run_id = event.run_id
      and removal.from_seq <= event.seq and removal.to_seq >= event.first_seq where event.pos = old.pos and event.type = 'several')
  then
    ${raise('a payload loses segments only when their removal is on record')};
  end if;
  return new;
end
$$`
}

/** A row of segments keeps what its chain needs of those that are gone, until its run is dropped. */
function payloadsRemain(place: string): string {
  return `create or replace function ${place}.payload_remains() returns trigger language plpgsql as $$
begin
  if exists (select from gone join ${place}.event using (pos) where not exists (select from ${place}.removal where removal.run_id = event.run_id
      and removal.from_seq <= coalesce(event.first_seq, event.seq) and removal.to_seq >= event.seq
      and (removal.kind = 'dropped' or event.type <> 'several' or event.first_seq is null))) then
    ${raise('a payload goes only when its removal is on record')};
  end if;
  return null;
end
$$`
}

/**
 * `body` is null where it was taken away or is sealed. Functions of Postgres refuse JSON that has a NUL or half a surrogate pair in
 * a text. So segments are told apart by their lines, and of packed deltas every escape by number is read as a plain text, and
 * written as it was again.
 */
function eachEvent(place: string): string {
  const safe = String.raw`replace(replace(body, '\\', '\/'), '\u', '\u005cu')::json`
  const restored = (text: string): string =>
    String.raw`replace(replace(${text}, '\u005cu', '\u'), '\/', '\\')`
  return `create view ${place}.each_event as
with said as (
  select event.*, payload.body, event.type = 'several' and event.first_seq is not null as is_several
  from ${place}.event left join ${place}.payload using (pos)
), segment as (
  select run_id, coalesce(first_seq, seq) as first, seq as last, epoch, turn, tool_call_id, type, v, at,
    case when get_byte(body, 0) in (91, 123) then convert_from(body, 'UTF8') end as body
  from said where not is_several
  union all
  select run_id, first_seq + through - events, first_seq + through - 1, epoch, turn,
    'call_' || replace(run_id, '-', '') || '_' || call, told, coalesce(version, 1), at - coalesce(earlier, 0),
    case when saying like '{%' then rtrim(saying, ',') end
  from said cross join lateral (
    select saying, events, (sum(events) over (order by place))::bigint as through, told, call, version, earlier
    from (
      select saying, place, coalesce((head ->> 'events')::bigint, 1) as events,
        coalesce(head ->> 'type', split_part(words, ' ', 1)) as told,
        coalesce(head ->> 'call', nullif(split_part(words, ' ', 2), '')) as call,
        (head ->> 'v')::bigint as version, (head ->> 'earlier')::bigint as earlier
      from (
        select saying, place, case json_typeof(written) when 'object' then written end as head,
          case json_typeof(written) when 'string' then written #>> '{}' end as words
        from string_to_array(convert_from(body, 'UTF8'), chr(10)) as lines cross join lateral rows from (
          json_array_elements((lines[1] || ']}')::json -> 'heads'), unnest(lines[2:])
        ) with ordinality as given (written, saying, place)
        where written is not null
      ) as each
    ) as counted
  ) as part
  where is_several
)
select run_id, first + n as seq, epoch, turn, tool_call_id, type, v,
  at - coalesce((packed -> 'earlier' ->> n)::bigint, 0) as at,
  case
    when packed is not null then (
      select ${restored('json_object_agg(field.key, field.value)::text')}
      from (select * from json_each(packed -> 'same') union all select 'text', packed -> 'text' -> n) as field
    )
    else body
  end as body
from segment cross join lateral (select case when last > first then ${safe} end as packed) as spread
  cross join lateral generate_series(0, (last - first)::int) as n`
}
