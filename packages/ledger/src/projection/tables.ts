import { isRunId } from '../format/event-row.ts'
import { type ProjectionDatabase, type ProjectionDialect, projectionVersion } from './database.ts'
import { amountColumns } from './run-accumulator.ts'
import type { RunStatus } from './run-summary.ts'
import type { RunPlace, SessionTimes, StoredRunRow } from './stored-run.ts'

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

type AmountRow = { readonly [Column in (typeof amountColumns)[number]]: number }

/** Model calls of one agent and model within a day, or an hour. */
export interface SpendingRow extends AmountRow {
  /** Days since 1970 UTC. */
  readonly day: number
  readonly agent: string
  readonly provider: string
  readonly api: string
  readonly model_id: string
  readonly calls: number
}

/** What the runs of a session come to. */
export interface SessionRow extends AmountRow {
  readonly session_id: string
  readonly runs: number
  readonly started_at: number
  readonly last_at: number
  readonly turns: number
  readonly tool_calls: number
}

/** The columns of a run's projection. */
export const runColumns: string =
  'run_summary.run_id, run_summary.pos, run_summary.seq, run_summary.head_hash, status, session_id, started_at, ' +
  'last_at, agents, shares, summary, notes'

/** Reads what is projected of runs, sessions and totals. */
export class ProjectionTables {
  readonly database: ProjectionDatabase
  readonly #dialect: ProjectionDialect

  constructor(database: ProjectionDatabase) {
    this.database = database
    this.#dialect = database.dialect
  }

  async state(): Promise<ProjectionState> {
    const { table } = this.#dialect
    const [row] = await this.database.ask<ProjectionState>(
      `select version, revision, cursor from ${table('projection')} where name = 'runs'`,
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
    const { table, texts } = this.#dialect
    const rows = await this.database.ask<{
      readonly run_id: string
      readonly pos: number
      readonly head_seq: number
      readonly head_hash: string
    }>(
      `select run_id, pos, head_seq, head_hash from ${texts('$1')} join ${table('run')} as run on run_id = item.value`,
      [JSON.stringify(runIds)],
    )
    return rows.flatMap(({ run_id: runId, pos, head_seq, head_hash }) => {
      return isRunId(runId) ? [{ runId, pos, headSeq: head_seq, headHash: head_hash }] : []
    })
  }

  /** The rows of some runs. */
  rows(runIds: readonly string[]): Promise<readonly StoredRunRow[]> {
    const { texts } = this.#dialect
    return this.database.ask<StoredRunRow>(
      `select ${runColumns} from ${texts('$1')} join ${this.#runs} on run_id = item.value`,
      [JSON.stringify(runIds)],
    )
  }

  /** The runs whose rows have to be made anew. */
  async stale(limit: number): Promise<readonly string[]> {
    const rows = await this.database.ask<{ readonly run_id: string }>(
      `select run_id from ${this.#runs} where summary is null order by pos limit $1`,
      [limit],
    )
    return rows.map(({ run_id }) => run_id)
  }

  batch({ status, agent, since, beforePos, limit }: RowQuery): Promise<readonly StoredRunRow[]> {
    const { hasText, unindexed } = this.#dialect
    const values: unknown[] = [beforePos, limit]
    const given = (value: unknown): string => `$${values.push(value)}`
    // What is named first is found by its index, and the rest is looked at.
    const isBySince = status === undefined && since !== undefined
    const place = isBySince ? unindexed('run_summary.pos') : 'run_summary.pos'
    const conditions = [
      ...(agent === undefined ? [] : [hasText('run_summary.agents', given(agent))]),
      ...(status === undefined ? [] : [`status = ${given(status)}`]),
      ...(since === undefined ? [] : [`last_at >= ${given(since)}`]),
      `${place} < $1`,
    ]
    return this.database.ask<StoredRunRow>(
      `select ${runColumns} from ${this.#runs} where ${conditions.join(' and ')} order by ${place} desc limit $2`,
      values,
    )
  }

  /** The number of runs of each status. */
  async counts(): Promise<ReadonlyMap<RunStatus, number>> {
    const rows = await this.database.ask<{ readonly status: RunStatus; readonly runs: number }>(
      `select status, count(*) as runs from ${this.#runs} group by status`,
    )
    return new Map(rows.map(({ status, runs }) => [status, runs]))
  }

  /** Model calls from an hour on, by day, agent and model. */
  spending(fromHour: number): Promise<readonly SpendingRow[]> {
    const { table } = this.#dialect
    const sums = ['calls', ...amountColumns].map((column) => `cast(sum(${column}) as bigint) as ${column}`)
    return this.database.ask<SpendingRow>(
      `select day, agent, provider, api, model_id, ${sums.join(', ')}
        from (select hour / 24 as day, spending.* from ${table('spending')} as spending where hour >= $1) as spending
        group by day, agent, provider, api, model_id having sum(calls) > 0 order by day`,
      [fromHour],
    )
  }

  /** Sessions with an event at a moment or later, the dearest first, then those with most tokens. */
  sessions(since: number, limit: number): Promise<readonly SessionRow[]> {
    return this.database.ask<SessionRow>(
      `select ${sessionColumns.join(', ')} from ${this.#sessions} where last_at >= $1 and runs > 0
        order by cost_nano desc, input_tokens + output_tokens desc, session_id limit $2`,
      [since, limit],
    )
  }

  /** Some sessions, by their keys. */
  sessionsOf(keys: readonly string[]): Promise<readonly SessionRow[]> {
    const { texts } = this.#dialect
    const columns = sessionColumns.map((column) => `session_summary.${column}`)
    return this.database.ask<SessionRow>(
      `select ${columns.join(', ')} from ${texts('$1')} join ${this.#sessions} on session_id = item.value`,
      [JSON.stringify(keys)],
    )
  }

  /** When the runs of a session began and continued, without some of them; `undefined` where there are no others. */
  async timesOf(key: string, without: readonly string[]): Promise<SessionTimes | undefined> {
    const { texts } = this.#dialect
    const [row] = await this.database.ask<SessionTimes>(
      `select min(started_at) as started_at, max(last_at) as last_at from ${this.#runs}
        where session_id = $1 and run_id not in (select value from ${texts('$2')}) having count(*) > 0`,
      [key, JSON.stringify(without)],
    )
    return row
  }

  get #runs(): string {
    return `${this.#dialect.table('run_summary')} as run_summary`
  }

  get #sessions(): string {
    return `${this.#dialect.table('session_summary')} as session_summary`
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
