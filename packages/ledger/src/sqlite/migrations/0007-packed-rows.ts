import { sql, type Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'

/** Neighbouring deltas share a row, and a view shows one row an event. Rows that stand already hold one event each. */
export const packedRowsMigration: Migration = {
  async up(database: Kysely<unknown>): Promise<void> {
    await database.schema.alterTable('event').addColumn('first_seq', 'integer').execute()
    for (const name of ['event_follows', 'payload_remains']) {
      await sql.raw(`drop trigger ${name}`).execute(database)
    }
    for (const trigger of triggers) await sql.raw(trigger).execute(database)
    await sql.raw(eachEvent).execute(database)
  },
}

function refusal(name: string, on: string, when: string, why: string): string {
  return `create trigger ${name} before ${on} for each row when ${when} begin select raise(abort, 'tallystick: ${why}'); end`
}

const triggers: readonly string[] = [
  refusal(
    'event_follows',
    'insert on event',
    'coalesce(new.first_seq, new.seq) <> 1 + coalesce((select max(seq) from event where run_id = new.run_id), 0) ' +
      'or new.seq - new.first_seq not between 1 and 255 or (new.first_seq is not null and new.once_key is not null) ' +
      'or exists (select 1 from event where pos = new.pos)',
    'an event follows the last one of its run without a gap',
  ),
  refusal(
    'payload_remains',
    'delete on payload',
    'exists (select 1 from event where event.pos = old.pos and not exists (select 1 from removal ' +
      'where removal.run_id = event.run_id and removal.to_seq >= event.seq ' +
      'and removal.from_seq <= coalesce(event.first_seq, event.seq)))',
    'a payload goes only when its removal is on record',
  ),
]

/** `body` is null where it was taken away or is sealed. */
const eachEvent = `create view each_event as
with recursive place (n) as (select 0 union all select n + 1 from place where n < 255),
said as (
  select event.*, payload.body,
    case when event.first_seq is not null and substr(payload.body, 1, 1) = x'7b' then cast(payload.body as text) end as packed
  from event left join payload using (pos)
)
select run_id, coalesce(first_seq, seq) + n as seq, epoch, turn, tool_call_id, type, v,
  at - coalesce(json_extract(packed, '$.earlier[' || n || ']'), 0) as at,
  case
    when packed is not null
      then json_set(json_extract(packed, '$.same'), '$.text', json_extract(packed, '$.text[' || n || ']'))
    when first_seq is null and substr(body, 1, 1) in (x'7b', x'5b') then cast(body as text)
  end as body
from said join place on n <= seq - coalesce(first_seq, seq)`
