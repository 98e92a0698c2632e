import { amountColumns } from '../tables/amounts.ts'
import type { ChangePart, ProjectionDatabase, ProjectionDialect } from '../tables/projection-database.ts'
import type { ProjectionState } from './projection-tables.ts'
import type { TotalsChange } from '../summary/totals-change.ts'
import type { StoredRunRow } from '../summary/stored-run.ts'

/** Rows that come in the place of others, and what that does to the totals. */
export interface ProjectionChange {
  readonly runs: readonly StoredRunRow[]
  /** Runs that are no longer there. */
  readonly gone: readonly string[]
  readonly totals: TotalsChange
  /** Events up to here are in the projections then. */
  readonly cursor: string
}

/** Makes a change, unless another process has made one since `state` was read. */
export function changeProjections(
  database: ProjectionDatabase,
  { revision }: ProjectionState,
  { runs, gone, totals, cursor }: ProjectionChange,
): Promise<boolean> {
  return database.change(changeParts(database.dialect), [
    revision,
    cursor,
    ...[runs, gone, totals.sessions, totals.spending].map((items) => JSON.stringify(items)),
  ])
}

/**
 * $1 the revision, which another code's dropping raises too, $2 the cursor; $3 runs, $4 runs that have gone, $5 sessions,
 * $6 spending, as JSON.
 */
function changeParts(dialect: ProjectionDialect): readonly ChangePart[] {
  return [
    {
      name: 'moved',
      text: () => `update ${dialect.table('projection')} set revision = revision + 1, cursor = cast($2 as text)
        where name = 'runs' and revision = cast($1 as bigint)`,
    },
    runsPart(dialect),
    {
      name: 'gone',
      text: (when) =>
        `delete from ${dialect.table('run_summary')} where ${when} and run_id in (select value from ${dialect.texts('$4')})`,
    },
    sessionsPart(dialect),
    spendingPart(dialect),
  ]
}

/** A field of `item`, as text or as a whole number. */
const text = (field: string): string => `item.value ->> '${field}'`
const whole = (field: string): string => `cast(item.value ->> '${field}' as bigint)`

function runsPart({ table, objects }: ProjectionDialect): ChangePart {
  const moving = ['seq', 'head_hash', 'status', 'last_at', 'agents', 'shares', 'summary', 'notes']
  const set = moving.map((column) => `${column} = excluded.${column}`)
  return {
    name: 'runs',
    text: (when) => `insert into ${table('run_summary')}
        (run_id, pos, seq, head_hash, status, session_id, started_at, last_at, agents, shares, summary, notes)
      select ${text('run_id')}, ${whole('pos')}, ${whole('seq')}, ${text('head_hash')}, ${text('status')},
        ${text('session_id')}, ${whole('started_at')}, ${whole('last_at')}, ${text('agents')}, ${text('shares')}, ${text('summary')}, ${text('notes')}
      from ${objects('$3')} where ${when}
      on conflict (run_id) do update set ${set.join(', ')}, session_id = excluded.session_id, started_at = excluded.started_at`,
  }
}

/** The columns that grow, and shrink, by what the change brings. */
function added(name: string, columns: readonly string[]): string {
  return columns.map((column) => `${column} = ${name}.${column} + excluded.${column}`).join(', ')
}

function sessionsPart({ table, objects }: ProjectionDialect): ChangePart {
  const sums = ['runs', 'turns', 'tool_calls', ...amountColumns]
  const times = ['started_at', 'last_at']
  return {
    name: 'sessions',
    text: (when) => `insert into ${table('session_summary')} as session_summary
        (session_id, ${[...times, ...sums].join(', ')})
      select ${text('session_id')}, ${[...times, ...sums].map(whole).join(', ')} from ${objects('$5')} where ${when}
      on conflict (session_id) do update set ${added('session_summary', sums)},
        started_at = excluded.started_at, last_at = excluded.last_at`,
  }
}

function spendingPart({ table, objects }: ProjectionDialect): ChangePart {
  const keys = ['agent', 'provider', 'api', 'model_id']
  const sums = ['calls', ...amountColumns]
  return {
    name: 'spent',
    text: (when) => `insert into ${table('spending')} as spending (hour, ${[...keys, ...sums].join(', ')})
      select ${whole('hour')}, ${[...keys.map(text), ...sums.map(whole)].join(', ')} from ${objects('$6')} where ${when}
      on conflict (hour, agent, provider, api, model_id) do update set ${added('spending', sums)}`,
  }
}
