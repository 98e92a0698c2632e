import { sql, type Kysely } from 'kysely'
import { refusalCode } from '../connection/postgres-failure.ts'

/**
 * What a tail over all runs goes by: the transaction of each event. Events that stand already get the lowest number
 * that a transaction can have, as a default that is kept beside the table, so that no row is written and no trigger is in
 * the way. Who appends by the first schema goes on: its events get their transaction by themselves.
 */
export async function addTail(database: Kysely<unknown>, schema: string): Promise<void> {
  const place = `"${schema.replaceAll('"', '""')}"`
  const statements = [
    `alter table ${place}.event add column xid xid8 not null default '3'`,
    `alter table ${place}.event alter column xid set default pg_current_xact_id()`,
    `create unique index event_tail on ${place}.event (xid, pos)`,
    followsFunction(place),
  ]
  await sql.raw(statements.join(';\n')).execute(database)
}

/**
 * The trigger of the first schema, and that events carry the transaction which writes them, and come after those of
 * their run in the order of transactions too: what has a number below all that are under way is all there is. Numbers
 * that the server has not reached came with a copy from another one, and order nothing.
 */
function followsFunction(place: string): string {
  return `create or replace function ${place}.event_follows() returns trigger language plpgsql as $$
declare
  own xid8 := pg_current_xact_id();
  batch record;
  head record;
  previous xid8;
begin
  for batch in select run_id, min(seq) as first, max(seq) as last, count(*) as events, min(epoch) as lowest,
      max(epoch) as highest, bool_and(xid = own) as is_own from added group by run_id
  loop
    select head_seq, epoch into head from ${place}.run where run.run_id = batch.run_id;
    select xid into previous from ${place}.event where event.run_id = batch.run_id and event.seq = batch.first - 1;
    if head.head_seq is distinct from batch.last or batch.last - batch.first + 1 <> batch.events
      or head.epoch is distinct from batch.lowest or batch.lowest <> batch.highest
      or (batch.first <> 1 and previous is null)
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
