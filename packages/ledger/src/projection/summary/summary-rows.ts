import type { RunId } from '@tallystick/core'
import { eventTraits } from '@tallystick/core/vocabulary'
import type { FoundRow } from '../../store/find-events.ts'
import { eventColumns } from '../../format/event-row.ts'
import type { ProjectionDatabase, ProjectionDialect } from '../tables/projection-database.ts'

/** The rows of a run, counted. */
export interface RunOutline {
  readonly run_id: string
  readonly events: number
  readonly last_seq: number
  /** Rows of types and versions that this release does not know. */
  readonly unknown: number
  /** Rows of the types that were asked about. */
  readonly counted: number
}

/** Every type in every version that this release knows. */
const knownVersions: string = JSON.stringify([
  ...Object.entries(eventTraits).flatMap(([type, { v }]) =>
    Array.from({ length: v }, (_, index) => `${type} ${index + 1}`),
  ),
])

/** Counts the rows of those of the runs that have ended. */
export function outlinesOf(
  database: ProjectionDatabase,
  runIds: readonly RunId[],
  types: readonly string[],
): Promise<readonly RunOutline[]> {
  const { table, texts, rareEvents } = database.dialect
  return database.ask<RunOutline>(
    `select run_id, count(*) as events, max(seq) as last_seq,
        count(*) filter (where type || ' ' || v not in (select value from ${texts('$3')})) as unknown,
        count(*) filter (where type in (select value from ${texts('$2')})) as counted
      from ${table('event')} as event where run_id in (
        select event.run_id from ${rareEvents}
        where event.type = 'run_finished' and event.run_id in (select value from ${texts('$1')}))
      group by run_id`,
    [JSON.stringify(runIds), JSON.stringify(types), knownVersions],
  )
}

/** Which rows of which runs. */
export interface RowRange {
  readonly runIds: readonly RunId[]
  readonly types: readonly string[]
  /** In each run, both ends included. */
  readonly fromSeq: number
  readonly toSeq: number
}

/** The rows of some types of some runs, each with the link before it, in no order. */
export function rowsOfTypes(
  database: ProjectionDatabase,
  { runIds, types, fromSeq, toSeq }: RowRange,
): Promise<readonly FoundRow[]> {
  const { table, texts } = database.dialect
  return database.ask<FoundRow>(
    `${linked(database.dialect, `${table('event')} as event`)}
      where event.run_id in (select value from ${texts('$1')})
        and event.type in (select value from ${texts('$2')}) and event.seq >= $3 and event.seq <= $4`,
    [JSON.stringify(runIds), JSON.stringify(types), fromSeq, toSeq],
  )
}

/** The rows of the first inputs of some runs, each with the link before it, in no order. */
export function firstInputRows(
  database: ProjectionDatabase,
  runIds: readonly RunId[],
): Promise<readonly FoundRow[]> {
  const { texts, rareEvents } = database.dialect
  const first = (of: string): string =>
    `select min(event.seq) from ${rareEvents} where event.run_id = ${of} and event.type = 'input_received'`
  return database.ask<FoundRow>(
    `${linked(database.dialect, `${texts('$1')} join ${rareEvents} on event.run_id = item.value`)}
      where event.type = 'input_received' and event.seq = (${first('item.value')})`,
    [JSON.stringify(runIds)],
  )
}

const columns = eventColumns.map((name) => `event.${name}`)

/** Rows of `event`, each with the link before it, before their conditions. */
function linked({ table }: ProjectionDialect, events: string): string {
  return `select ${columns.join(', ')},
      previous.pos as previous_pos, previous.epoch as previous_epoch, previous.hash as previous_hash
    from ${events} left join ${table('event')} as previous on previous.run_id = event.run_id and previous.seq = event.seq - 1`
}
