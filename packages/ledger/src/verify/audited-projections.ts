import type { ProjectionDatabase, ProjectionDialect } from '../projection/tables/projection-database.ts'
import { runColumns, sessionColumns, type SessionRow } from '../projection/refresh/projection-tables.ts'
import type { StoredRunRow } from '../projection/summary/stored-run.ts'
import type { SpendingChange } from '../projection/summary/totals-change.ts'

/** What an audit asks of projections, beside what everybody asks. */
export class AuditedProjections {
  readonly #database: ProjectionDatabase
  readonly #dialect: ProjectionDialect

  constructor(database: ProjectionDatabase) {
    this.#database = database
    this.#dialect = database.dialect
  }

  /** How many rows tell of runs that are not there, and have not been forgotten. */
  strayRows(): Promise<number> {
    const { table } = this.#dialect
    return this.#count(`${table('run_summary')} as run_summary where summary is not null and not exists (
      select 1 from ${table('run')} as run where run.run_id = run_summary.run_id)`)
  }

  /** How many runs of sessions have no totals that they could be in. */
  runsWithoutSession(): Promise<number> {
    const { table } = this.#dialect
    return this.#count(`${table('run_summary')} as run_summary where session_id is not null and not exists (
      select 1 from ${table('session_summary')} as session
      where session.session_id = run_summary.session_id and runs > 0)`)
  }

  /** Model calls by hour, agent and model. */
  hours(): Promise<readonly SpendingChange[]> {
    return this.#database.ask<SpendingChange>(
      `select * from ${this.#dialect.table('spending')} order by hour, agent, provider, api, model_id`,
    )
  }

  /** Sessions in the order of their keys. */
  sessionsAfter(key: string, limit: number): Promise<readonly SessionRow[]> {
    return this.#database.ask<SessionRow>(
      `select ${sessionColumns.join(', ')} from ${this.#dialect.table('session_summary')}
        where session_id > $1 and runs > 0 order by session_id limit $2`,
      [key, limit],
    )
  }

  /** The rows of a session's runs, in the order of their places. */
  runsOfSession(key: string, afterPos: number, limit: number): Promise<readonly StoredRunRow[]> {
    return this.#database.ask<StoredRunRow>(
      `select ${runColumns} from ${this.#dialect.table('run_summary')} as run_summary
        where session_id = $1 and pos > $2 order by pos limit $3`,
      [key, afterPos, limit],
    )
  }

  async #count(from: string): Promise<number> {
    const [row] = await this.#database.ask<{ readonly rows: number }>(`select count(*) as rows from ${from}`)
    return row?.rows ?? 0
  }
}
