import { isRunId } from '../format/event-row.ts'
import { type StoreDatabase, Values } from '../store/database.ts'
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

/** The columns of a run's projection. */
export const runColumns: string =
  'run_summary.run_id, run_summary.pos, run_summary.seq, run_summary.head_hash, status, session_id, started_at, ' +
  'last_at, agents, shares, summary, notes'

/** Reads what is projected of runs, sessions and totals. */
export class ProjectionTables {
  readonly database: StoreDatabase

  constructor(database: StoreDatabase) {
    this.database = database
  }

  async state(): Promise<ProjectionState> {
    const [row] = await this.database.ask<ProjectionState>(
      `select version, revision, cursor from @.projection where name = 'runs'`,
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
    const { texts } = this.database.dialect
    const rows = await this.database.ask<{
      readonly run_id: string
      readonly pos: number
      readonly head_seq: number
      readonly head_hash: string
    }>(
      `select run_id, pos, head_seq, head_hash from ${texts('$1')} join @.run as run on run_id = item.value`,
      [JSON.stringify(runIds)],
    )
    return rows.flatMap(({ run_id: runId, pos, head_seq, head_hash }) => {
      return isRunId(runId) ? [{ runId, pos, headSeq: head_seq, headHash: head_hash }] : []
    })
  }

  /** The rows of some runs. */
  rows(runIds: readonly string[]): Promise<readonly StoredRunRow[]> {
    const { texts } = this.database.dialect
    return this.database.ask<StoredRunRow>(
      `select ${runColumns} from ${texts('$1')} join @.run_summary as run_summary on run_id = item.value`,
      [JSON.stringify(runIds)],
    )
  }

  /** The runs whose rows have to be made anew. */
  async stale(limit: number): Promise<readonly string[]> {
    const rows = await this.database.ask<{ readonly run_id: string }>(
      `select run_id from @.run_summary as run_summary where summary is null order by pos limit $1`,
      [limit],
    )
    return rows.map(({ run_id }) => run_id)
  }

  batch({ status, agent, since, beforePos, limit }: RowQuery): Promise<readonly StoredRunRow[]> {
    const values = new Values()
    const { texts } = this.database.dialect
    // What is named first is found by its index, and the rest is looked at.
    const isBySince = status === undefined && since !== undefined
    const place = isBySince ? 'run_summary.pos + 0' : 'run_summary.pos'
    const conditions = [
      ...(agent === undefined
        ? []
        : [`exists (select 1 from ${texts('run_summary.agents')} where value = ${values.add(agent)})`]),
      ...(status === undefined ? [] : [`status = ${values.add(status)}`]),
      ...(since === undefined ? [] : [`last_at >= ${values.add(since)}`]),
      `${place} < ${values.add(beforePos)}`,
    ]
    return this.database.ask<StoredRunRow>(
      `select ${runColumns} from @.run_summary as run_summary where ${conditions.join(' and ')} order by ${place} desc limit ${values.add(limit)}`,
      values.list,
    )
  }

  /** The number of runs of each status. */
  async counts(): Promise<ReadonlyMap<RunStatus, number>> {
    const rows = await this.database.ask<{ readonly status: RunStatus; readonly runs: number }>(
      `select status, count(*) as runs from @.run_summary as run_summary group by status`,
    )
    return new Map(rows.map(({ status, runs }) => [status, runs]))
  }

  /** Model calls from an hour on, by day, agent and model. */
  spending(fromHour: number): Promise<readonly SpendingRow[]> {
    const sums = ['calls', ...amountColumns].map((column) => `cast(sum(${column}) as bigint) as ${column}`)
    return this.database.ask<SpendingRow>(
      `select day, agent, provider, api, model_id, ${sums.join(', ')}
        from (select hour / 24 as day, spending.* from @.spending as spending where hour >= $1) as spending
        group by day, agent, provider, api, model_id having sum(calls) > 0 order by day`,
      [fromHour],
    )
  }

  /** Sessions with an event at a moment or later, the dearest first, then those with most tokens. */
  sessions(since: number, limit: number): Promise<readonly SessionChange[]> {
    return this.database.ask<SessionChange>(
      `select ${sessionColumns.join(', ')} from @.session_summary as session_summary where last_at >= $1 and runs > 0
        order by cost_nano desc, input_tokens + output_tokens desc, session_id limit $2`,
      [since, limit],
    )
  }

  /** Some sessions, by their keys. */
  sessionsOf(keys: readonly string[]): Promise<readonly SessionChange[]> {
    const { texts } = this.database.dialect
    const columns = sessionColumns.map((column) => `session_summary.${column}`)
    return this.database.ask<SessionChange>(
      `select ${columns.join(', ')} from ${texts('$1')} join @.session_summary as session_summary on session_id = item.value`,
      [JSON.stringify(keys)],
    )
  }

  /** When the runs of a session began and continued, without some of them; `undefined` where there are no others. */
  async timesOf(key: string, without: readonly string[]): Promise<SessionTimes | undefined> {
    const { texts } = this.database.dialect
    const [row] = await this.database.ask<SessionTimes>(
      `select min(started_at) as started_at, max(last_at) as last_at from @.run_summary as run_summary
        where session_id = $1 and run_id not in (select value from ${texts('$2')}) having count(*) > 0`,
      [key, JSON.stringify(without)],
    )
    return row
  }
}

/** The columns of a session's totals. */
export const sessionColumns: readonly string[] = [
  'session_id',
  'runs',
  'started_at',
  'last_at',
  'turns',
  'tool_calls',
  ...amountColumns,
]
