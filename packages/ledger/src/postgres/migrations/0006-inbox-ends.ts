import { sql, type Kysely } from 'kysely'
import { endedCode, unreadCode } from '../connection/postgres-failure.ts'

/**
 * Every inbox entry has an end: a run ends only with its inbox read, and takes no entry once it has ended. Both sides
 * hold the lock of the run's row, so that of the two one comes first, and each statement of a function sees what was
 * committed before it.
 */
export async function addInboxEnds(database: Kysely<unknown>, schema: string): Promise<void> {
  const place = `"${schema.replaceAll('"', '""')}"`
  const statements = [
    `create function ${place}.run_ends_read() returns trigger language plpgsql as $$
begin
  if exists (select from ${place}.inbox where inbox.run_id = new.run_id and inbox.taken_seq is null) then
    raise exception 'tallystick: a run ends with its inbox read' using errcode = '${unreadCode}';
  end if;
  return null;
end
$$`,
    `create trigger run_ends_read after insert on ${place}.event for each row when (new.once_key = 'run_finished')
      execute function ${place}.run_ends_read()`,
    `alter table ${place}.event enable always trigger run_ends_read`,
    `create function ${place}.inbox_is_open() returns trigger language plpgsql as $$
begin
  perform from ${place}.run where run.run_id = new.run_id for share;
  if exists (select from ${place}.event where event.run_id = new.run_id and event.once_key = 'run_finished') then
    raise exception 'tallystick: a run that has ended takes no command' using errcode = '${endedCode}';
  end if;
  return new;
end
$$`,
    `create trigger inbox_is_open before insert on ${place}.inbox for each row execute function ${place}.inbox_is_open()`,
    `alter table ${place}.inbox enable always trigger inbox_is_open`,
  ]
  await sql.raw(statements.join(';\n')).execute(database)
}
