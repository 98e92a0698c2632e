import { sql, type Kysely } from 'kysely'
import { refusalCode } from '../connection/postgres-failure.ts'

/** Neighbouring deltas share a row, and a view shows one row an event. Rows that stand already hold one event each. */
export async function addPackedRows(database: Kysely<unknown>, schema: string): Promise<void> {
  const place = `"${schema.replaceAll('"', '""')}"`
  const statements = [
    `alter table ${place}.event add column first_seq bigint`,
    followsFunction(place),
    remainsFunction(place),
    eachEvent(place),
  ]
  await sql.raw(statements.join(';\n')).execute(database)
}

/** The trigger of the schema before, in which a row may hold several events. */
function followsFunction(place: string): string {
  return `create or replace function ${place}.event_follows() returns trigger language plpgsql as $$
declare
  own xid8 := pg_current_xact_id();
  batch record;
  head record;
  previous xid8;
begin
  for batch in select run_id, min(coalesce(first_seq, seq)) as first, max(seq) as last,
      sum(1 + seq - coalesce(first_seq, seq)) as events, min(epoch) as lowest, max(epoch) as highest, bool_and(xid = own) as is_own,
      bool_or(seq - first_seq not between 1 and 255 or (first_seq is not null and once_key is not null)) as is_misshapen from added group by run_id
  loop
    select head_seq, epoch into head from ${place}.run where run.run_id = batch.run_id;
    select xid into previous from ${place}.event where event.run_id = batch.run_id and event.seq = batch.first - 1;
    if head.head_seq is distinct from batch.last or batch.last - batch.first + 1 <> batch.events
      or head.epoch is distinct from batch.lowest or batch.lowest <> batch.highest
      or (batch.first <> 1 and previous is null) or batch.is_misshapen
    then
      raise exception 'tallystick: an event follows the last one of its run without a gap' using errcode = '${refusalCode}';
    end if;
    if not batch.is_own or (previous > own and previous < pg_snapshot_xmax(pg_current_snapshot())) then
      raise exception 'tallystick: an event carries its own transaction, behind that of the event before it' using errcode = '${refusalCode}';
    end if;
  end loop;
  return null;
end
$$`
}

function remainsFunction(place: string): string {
  return `create or replace function ${place}.payload_remains() returns trigger language plpgsql as $$
begin
  if exists (select from gone join ${place}.event using (pos) where not exists (select from ${place}.removal where removal.run_id = event.run_id
      and removal.from_seq <= coalesce(event.first_seq, event.seq) and removal.to_seq >= event.seq)) then
    raise exception 'tallystick: a payload goes only when its removal is on record' using errcode = '${refusalCode}';
  end if;
  return null;
end
$$`
}

/** `body` is null where it was taken away or is sealed. */
function eachEvent(place: string): string {
  return `create view ${place}.each_event as
with said as (
  select event.*, payload.body,
    case when first_seq is not null and get_byte(payload.body, 0) = 123 then convert_from(payload.body, 'UTF8')::json end as packed
  from ${place}.event left join ${place}.payload using (pos)
)
select run_id, coalesce(first_seq, seq) + n as seq, epoch, turn, tool_call_id, type, v,
  at - coalesce((packed -> 'earlier' ->> n)::bigint, 0) as at,
  case
    when packed is not null then (
      select json_object_agg(field.key, field.value)::text
      from (select * from json_each(packed -> 'same') union all select 'text', packed -> 'text' -> n) as field
    )
    when first_seq is null and get_byte(body, 0) in (91, 123) then convert_from(body, 'UTF8')
  end as body
from said cross join lateral generate_series(0, (seq - coalesce(first_seq, seq))::int) as n`
}
