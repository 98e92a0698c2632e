import { isRunId } from '../format/event-row.ts'
import type { AliasedRawBuilder, Sql } from 'kysely'
import type { StoreDatabase } from '../store/database.ts'
import { foldVersion } from '@tallystick/core/machine'
import { amountColumns } from './run-accumulator.ts'
import type { RunStatus } from './run-summary.ts'
import type { RunPlace, SessionTimes, StoredRunRow, SessionChange, SpendingChange } from './stored-run.ts'

/**
 * Rises whenever a summary of any run, or a total, changes in value or in its stored form. The golden ledgers hold
 * the result of each version, and fail when the result changes and the version does not.
 */
const version = 3

/** The version that a row of `projection` names: projections of another version are made anew. */
export const projectionVersion: string = `projection ${version}, fold ${foldVersion}`

/** How far the projections of runs are. */
export interface ProjectionState {
  /** Of the code that made them; another text while they are being dropped. */
  readonly version: string
  /** Rises with every change. */
  readonly revision: number
  /** Events up to here are in them. */
  readonly cursor: string
}

/** Selects the rows of a batch, the newest run first. All filters must match. */
export interface RowQuery {
  readonly status?: RunStatus
  /** Runs in which this agent had the conversation, as a key. */
  readonly agent?: string
  /** With an event then or later, in milliseconds since 1970 UTC. */
  readonly since?: number
  readonly beforePos: number
  readonly limit: number
}

/** Model calls of one agent and model within a day, which counts from 1970 UTC. */
export type SpendingRow = Omit<SpendingChange, 'hour'> & { readonly day: number }

/** The columns of a run's row, named so that a table that lacks one is refused. */
export const summaryColumns: readonly (keyof StoredRunRow)[] = [
  ...(['run_id', 'pos', 'seq', 'head_hash', 'status', 'session_id', 'started_at', 'last_at'] as const),
  ...(['agents', 'shares', 'summary', 'notes'] as const),
]

/** The columns of a session's totals. */
export const sessionColumns: readonly (keyof SessionChange)[] = [
  ...(['session_id', 'runs', 'started_at', 'last_at', 'turns', 'tool_calls'] as const),
  ...amountColumns,
]

/** Reads what is projected of runs, sessions and totals. */
export class ProjectionTables {
  readonly database: StoreDatabase

  constructor(database: StoreDatabase) {
    this.database = database
  }

  async state(): Promise<ProjectionState> {
    const [row] = await this.database.query(({ db }) =>
      db.selectFrom('projection').select(['version', 'revision', 'cursor']).where('name', '=', 'runs'),
    )
    return row ?? { version: '', revision: 0, cursor: '' }
  }

  /** Up to where the rows tell of every event; `undefined` where they are of another version. */
  async cursorOfThisCode(): Promise<string | undefined> {
    const { version, cursor } = await this.state()
    return version === projectionVersion ? cursor : undefined
  }

  /** Where the histories of runs end; of runs that are not there, nothing. */
  async places(runIds: readonly string[]): Promise<readonly RunPlace[]> {
    const rows = await this.database.query(({ db }) =>
      db.selectFrom('run').select(['run_id', 'pos', 'head_seq', 'head_hash']).where('run_id', 'in', runIds),
    )
    return rows.flatMap(({ run_id: runId, pos, head_seq, head_hash }) => {
      return isRunId(runId) ? [{ runId, pos, headSeq: head_seq, headHash: head_hash }] : []
    })
  }

  /** The rows of some runs. */
  rows(runIds: readonly string[]): Promise<readonly StoredRunRow[]> {
    return this.database.query(({ db }) =>
      db.selectFrom('run_summary').select(summaryColumns).where('run_id', 'in', runIds),
    )
  }

  /** The runs whose rows have to be made anew. */
  async stale(limit: number): Promise<readonly string[]> {
    const rows = await this.database.query(({ db }) =>
      db.selectFrom('run_summary').select('run_id').where('summary', 'is', null).orderBy('pos').limit(limit),
    )
    return rows.map(({ run_id }) => run_id)
  }

  batch({ status, agent, since, beforePos, limit }: RowQuery): Promise<readonly StoredRunRow[]> {
    return this.database.query(({ db, sql, isPostgres }) => {
      // What is named first is found by its index, and the rest is looked at.
      const isBySince = status === undefined && since !== undefined
      const place = isBySince ? sql<number>`pos + 0` : sql<number>`pos`
      let rows = db.selectFrom('run_summary').select(summaryColumns).where(place, '<', beforePos)
      if (status !== undefined) rows = rows.where('status', '=', status)
      if (since !== undefined) rows = rows.where('last_at', '>=', since)
      if (agent !== undefined) {
        const agents = isPostgres
          ? sql`json_array_elements_text(agents::json) as item(value)`
          : sql`json_each(agents) as item`
        rows = rows.where(sql<boolean>`exists (select 1 from ${agents} where item.value = ${agent})`)
      }
      return rows.orderBy(place, 'desc').limit(limit)
    })
  }

  /** The number of runs of each status. */
  async counts(): Promise<ReadonlyMap<RunStatus, number>> {
    const rows = await this.database.query(({ db, sql }) =>
      db
        .selectFrom('run_summary')
        .select(['status', sql<number>`count(*)`.as('runs')])
        .groupBy('status'),
    )
    return new Map(rows.map(({ status, runs }) => [status as RunStatus, runs]))
  }

  /** Model calls from an hour on, by day, agent and model. */
  spending(fromHour: number): Promise<readonly SpendingRow[]> {
    const names = ['agent', 'provider', 'api', 'model_id'] as const
    return this.database.query(({ db, sql }) =>
      db
        .selectFrom('spending')
        .select([sql<number>`hour / 24`.as('day'), ...names])
        .select((['calls', ...amountColumns] as const).map((name) => sumOf(sql, name)))
        .where('hour', '>=', fromHour)
        .groupBy([sql`hour / 24`, ...names])
        .having(sql<number>`sum(calls)`, '>', 0)
        .orderBy('day'),
    ) as unknown as Promise<readonly SpendingRow[]>
  }

  /** Sessions with an event at a moment or later, the dearest first, then those with most tokens. */
  sessions(since: number, limit: number): Promise<readonly SessionChange[]> {
    return this.database.query(({ db, sql }) =>
      db
        .selectFrom('session_summary')
        .select(sessionColumns)
        .where('last_at', '>=', since)
        .where('runs', '>', 0)
        .orderBy('cost_nano', 'desc')
        .orderBy(sql`input_tokens + output_tokens`, 'desc')
        .orderBy('session_id')
        .limit(limit),
    )
  }

  /** Some sessions, by their keys. */
  sessionsOf(keys: readonly string[]): Promise<readonly SessionChange[]> {
    return this.database.query(({ db }) =>
      db.selectFrom('session_summary').select(sessionColumns).where('session_id', 'in', keys),
    )
  }

  /** When the runs of a session began and continued, without some of them; `undefined` where there are no others. */
  async timesOf(key: string, without: readonly string[]): Promise<SessionTimes | undefined> {
    const [row] = await this.database.query(({ db }) =>
      db
        .selectFrom('run_summary')
        .select(({ fn }) => [fn.min('started_at').as('started_at'), fn.max('last_at').as('last_at')])
        .where('session_id', '=', key)
        .where('run_id', 'not in', without)
        .having(({ fn }) => fn.countAll(), '>', 0),
    )
    return row
  }
}

/** Postgres adds whole numbers up to a type that is read as text. */
function sumOf(sql: Sql, name: string): AliasedRawBuilder<number, string> {
  return sql<number>`cast(sum(${sql.ref(name)}) as bigint)`.as(name)
}
