import type { SearchSource } from '../../read/event-search.ts'
import { bytesPerBatch, eventsPerBatch } from './statements.ts'

/** The statements of a search: what begins it, and a batch by each index. */
export interface SearchTexts {
  /** The runs of $1 (id), of $2 (session); either may be null. */
  readonly runs: string
  /** Those of them with events of the call $3, and the run $4, to which it belongs. */
  readonly runsOfCall: string
  readonly places: string
  /** Of events from $1 to $2. */
  readonly placesAt: string
  /**
   * $1 and $2 bound the time; $3 and $4 are turn and types, of which null lets every event pass; after $5, up to and
   * with $6; $7 and $8 are the run and the type or the call of the source, where it has them.
   */
  readonly batch: Readonly<Record<SearchSource['by'], string>>
}

/** The columns of an event that a search or a tail hands on. */
export const eventColumns: readonly string[] = [
  'pos',
  'run_id',
  'first_seq',
  'seq',
  'epoch',
  'type',
  'v',
  'turn',
  'tool_call_id',
  'at',
  'once_key',
  'body_commit',
  'hash',
].map((column) => `event.${column}`)

/** The index of each source. Either order is that of places. */
const bounds: Readonly<
  Record<SearchSource['by'], { readonly where: string; readonly order: 'seq' | 'pos' }>
> = {
  run: { where: 'event.run_id = $7', order: 'seq' },
  turn: { where: 'event.run_id = $7 and event.turn = $3', order: 'seq' },
  type: { where: 'event.run_id = $7 and event.type = $8', order: 'seq' },
  call: { where: `event.tool_call_id = $8 and event.run_id || '' = $7`, order: 'seq' },
  place: { where: 'true', order: 'pos' },
}

/** The filters that no source applies, in a form that tempts no planner to another index. */
const passes = `event.at + 0 >= $1 and event.at + 0 <= $2
  and ($3::int8 is null or event.turn + 0 = $3)
  and ($4::text[] is null or event.type || '' = any ($4))`

/** Writes the statements for a schema, whose name is quoted already. */
export function searchTexts(schema: string): SearchTexts {
  const sourceKinds = Object.keys(bounds) as readonly SearchSource['by'][]
  const named = 'where ($1::text is null or run.run_id = $1) and ($2::text is null or run.session_id = $2)'
  const listed = 'select run.run_id, run.pos, run.head_seq from'
  return {
    runs: `${listed} ${schema}.run ${named}`,
    runsOfCall: `with called as materialized (
        select run_id from ${schema}.event where tool_call_id = $3 union select $4::text
      ) ${listed} called join ${schema}.run on run.run_id = called.run_id ${named}`,
    places: `select min(pos) as "fromPos", max(pos) as "toPos" from ${schema}.event`,
    placesAt: `select min(pos) as "fromPos", max(pos) as "toPos" from (
        select pos + 0 as pos from ${schema}.event where at >= $1 and at <= $2
      ) as timed`,
    batch: Object.fromEntries(sourceKinds.map((by) => [by, batchText(schema, by)])) as SearchTexts['batch'],
  }
}

/**
 * The events first, so that however they are found and ordered, no more bodies are touched than a batch may hold; then
 * the bodies, counting bytes, so that a batch of large ones ends early and is never read whole.
 */
function batchText(schema: string, by: SearchSource['by']): string {
  const { where, order } = bounds[by]
  return `select event.*, previous.pos as previous_pos, previous.epoch as previous_epoch, previous.hash as previous_hash
    from (
      select chosen.*, salt, body,
        sum(octet_length(body)) over (order by chosen.${order} rows between unbounded preceding and 1 preceding) as bytes_before
      from (
        select ${eventColumns.join(', ')} from ${schema}.event
        where ${where} and event.${order} > $5::int8 and event.${order} <= $6::int8 and ${passes}
        order by event.${order} limit ${eventsPerBatch}
      ) as chosen left join ${schema}.payload on payload.pos = chosen.pos
    ) as event left join ${schema}.event as previous on previous.run_id = event.run_id
      and previous.seq = coalesce(event.first_seq, event.seq) - 1
    where coalesce(bytes_before, 0) < ${bytesPerBatch} order by event.${order}`
}
