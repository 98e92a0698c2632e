import { sql, type Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'

/**
 * Neighbours of the types that come in every turn share a row, whose payload holds a segment for each. Rows that stand stay
 * as they are. Facts about calls that may be recorded once get a table of numbers, since such a row has no name of theirs.
 */
export const sharedRowsMigration: Migration = {
  async up(database: Kysely<unknown>): Promise<void> {
    await createFacts(database)
    await sql.raw(fillFacts).execute(database)
    await sql.raw(statedFacts).execute(database)
    await database.schema.dropIndex('event_rare_type').execute()
    await sql
      .raw(`create index event_rare_type on event (run_id, type, seq) where ${rareType}`)
      .execute(database)
    for (const name of ['payload_stays', 'payload_remains']) {
      await sql.raw(`drop trigger ${name}`).execute(database)
    }
    for (const trigger of triggers) await sql.raw(trigger).execute(database)
    await sql.raw('drop view each_event').execute(database)
    await sql.raw(eachEvent).execute(database)
  },
}

async function createFacts({ schema }: Kysely<unknown>): Promise<void> {
  await schema
    .createTable('fact')
    .addColumn('run', 'integer', (column) => column.notNull())
    .addColumn('number', 'integer', (column) => column.notNull())
    .addPrimaryKeyConstraint('fact_key', ['run', 'number'])
    .modifyEnd(sql`strict, without rowid`)
    .execute()
}

/** The numbers of a call after its run's, and of the start, as JSON: `[turn, attempt, ordinal]`, or with the start. */
const numbersOf = (row: string): string =>
  `'[' || replace(replace(substr(${row}.once_key, instr(${row}.once_key, ' ') + 39), '_', ','), ' ', ',') || ']'`

/** The number of `factNumberOf` for a row that names a fact about a call of its run, as `number`; no row for others. */
const numbered = (row: string, from: string): string => `
  select run, ((turn * 64 + attempt) * 4096 + ordinal) * 512 + coalesce(start, 511) as number from (
    select run, json_extract(said, '$[0]') as turn, json_extract(said, '$[1]') as attempt, json_extract(said, '$[2]') as ordinal,
      json_extract(said, '$[3]') as start, json_array_length(said) as told,
      coalesce(json_type(said, '$[3]'), 'integer') as written
    from (select ${numbersOf(row)} as said, ${from}
        and substr(${row}.once_key, instr(${row}.once_key, ' ') + 1, 38) = 'call_' || replace(${row}.run_id, '-', '') || '_'
        and json_valid(${numbersOf(row)}))
  ) where told in (3, 4) and turn < 16777216 and attempt < 64 and ordinal < 4096
    and written = 'integer' and coalesce(start, 0) between 0 and 510`

const isOfCall = (row: string): string =>
  `${row}.once_key is not null and ${row}.type in ('tool_started', 'tool_result')`

/** A file in which two rows name one fact is damaged, and only one that can be opened can be verified. */
const fillFacts = `insert or ignore into fact (run, number) ${numbered('event', `run.pos as run from event join run using (run_id) where ${isOfCall('event')}`)}`

/** Rows that name their fact state it by its number as well, whichever release writes them. */
const statedFacts = `create trigger event_states after insert on event for each row when ${isOfCall('new')} begin
  insert into fact (run, number) ${numbered(
    'new',
    `first.pos - (first.seq - coalesce(first.first_seq, first.seq)) as run from (
        select pos, seq, first_seq from event where run_id = new.run_id order by seq limit 1) as first where true`,
  )};
end`

const notRareTypes: readonly string[] = [
  ...['model_call_started', 'assistant_started', 'assistant_text_delta', 'assistant_reasoning_delta'],
  ...['tool_input_delta', 'tool_request_ready', 'usage_updated', 'assistant_message_finished'],
  ...['tool_requests_collected', 'tool_started', 'tool_progress', 'tool_result', 'tool_results_injected'],
  'several',
]

/** The condition of the index. A query that is to use the index has to state the same. */
export const rareType: string = `type not in (${notRareTypes.map((type) => `'${type}'`).join(', ')})`

/** Whether the index of types has the events of this type. */
export function isRareType(type: string): boolean {
  return !notRareTypes.includes(type)
}

function refusal(name: string, on: string, when: string, why: string): string {
  const condition = when === '' ? '' : ` when ${when}`
  return `create trigger ${name} before ${on} for each row${condition} begin select raise(abort, 'tallystick: ${why}'); end`
}

const isOfSeveral = `event.type = 'several' and event.first_seq is not null`
const isOnRecord = 'removal.run_id = event.run_id and removal.from_seq <= event.seq'

const triggers: readonly string[] = [
  refusal(
    'payload_stays',
    'update on payload',
    `new.pos <> old.pos or new.salt <> zeroblob(16)
       or substr(new.body, 1, instr(new.body, x'0a')) <> substr(old.body, 1, instr(old.body, x'0a')) or not exists (
       select 1 from event join removal on ${isOnRecord} and removal.to_seq >= event.first_seq
       where event.pos = old.pos and ${isOfSeveral})`,
    'a payload loses segments only when their removal is on record',
  ),
  // A row of segments keeps what its chain needs of those that are gone, until its run is dropped.
  refusal(
    'payload_remains',
    'delete on payload',
    `exists (select 1 from event where event.pos = old.pos and not exists (select 1 from removal
       where ${isOnRecord} and removal.to_seq >= event.seq and removal.from_seq <= coalesce(event.first_seq, event.seq)
         and (removal.kind = 'dropped' or not (${isOfSeveral}))))`,
    'a payload goes only when its removal is on record',
  ),
  refusal('fact_stays', 'update on fact', '', 'facts are never changed'),
  refusal(
    'fact_remains',
    'delete on fact',
    `exists (select 1 from run where run.pos = old.run and not exists (
       select 1 from removal where removal.run_id = run.run_id and removal.kind = 'dropped'))`,
    'facts are never removed',
  ),
]

const eventsOfHead = `coalesce(case type when 'object' then value ->> '$.events' end, 1)`

/** `body` is null where it was taken away or is sealed. */
const eachEvent = `create view each_event as
with recursive place (n) as (select 0 union all select n + 1 from place where n < 255),
said as (
  select event.*, payload.body, event.type = 'several' and event.first_seq is not null as is_several
  from event left join payload using (pos)
),
segment as (
  select run_id, coalesce(first_seq, seq) as first, seq as last, epoch, turn, tool_call_id, type, v, at,
    case when substr(body, 1, 1) in (x'7b', x'5b') then cast(body as text) end as body
  from said where not is_several
  union all
  select run_id,
    seq + 1 - (select sum(${eventsOfHead}) from json_each(said.body, '$.heads') where key >= head.key),
    seq - (select coalesce(sum(${eventsOfHead}), 0) from json_each(said.body, '$.heads') where key > head.key), epoch, turn,
    'call_' || replace(run_id, '-', '') || '_'
      || case head.type when 'object' then head.value ->> '$.call' else nullif(substr(head.value, instr(head.value || ' ', ' ') + 1), '') end,
    case head.type when 'object' then head.value ->> '$.type' else substr(head.value, 1, instr(head.value || ' ', ' ') - 1) end,
    coalesce(case head.type when 'object' then head.value ->> '$.v' end, 1),
    at - coalesce(case head.type when 'object' then head.value ->> '$.earlier' end, 0),
    case when json_type(said.body, '$.segments[' || head.key || ']') = 'object'
      then json_extract(said.body, '$.segments[' || head.key || ']') end
  from (select run_id, seq, epoch, turn, at, cast(body as text) as body from said where is_several) as said,
    json_each(said.body, '$.heads') as head
)
select run_id, first + n as seq, epoch, turn, tool_call_id, type, v,
  at - case when last > first then coalesce(json_extract(body, '$.earlier[' || n || ']'), 0) else 0 end as at,
  case when last > first
    then json_set(json_extract(body, '$.same'), '$.text', body -> ('$.text[' || n || ']'))
    else body end as body
from segment join place on n <= last - first`
