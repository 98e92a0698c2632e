import type { ChangePart, Dialect, StoreDatabase } from '../store/database.ts'
import { amountColumns } from './run-accumulator.ts'
import type { StoredRunRow, TotalsChange } from './stored-run.ts'
import { projectionVersion, type ProjectionState } from './tables.ts'

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
  database: StoreDatabase,
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
function changeParts(dialect: Dialect): readonly ChangePart[] {
  return [
    {
      name: 'moved',
      text: () => `update @.projection set revision = revision + 1, cursor = cast($2 as text)
        where name = 'runs' and revision = cast($1 as bigint)`,
    },
    runsPart(dialect),
    {
      name: 'gone',
      text: (when) =>
        `delete from @.run_summary where ${when} and run_id in (select value from ${dialect.texts('$4')})`,
    },
    sessionsPart(dialect),
    spendingPart(dialect),
  ]
}

/** A field of `item`, as text or as a whole number. */
const text = (field: string): string => `item.value ->> '${field}'`
const whole = (field: string): string => `cast(item.value ->> '${field}' as bigint)`

function runsPart({ objects }: Dialect): ChangePart {
  const moving = ['seq', 'head_hash', 'status', 'last_at', 'agents', 'shares', 'summary', 'notes']
  const set = moving.map((column) => `${column} = excluded.${column}`)
  return {
    name: 'runs',
    text: (when) => `insert into @.run_summary
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

function sessionsPart({ objects }: Dialect): ChangePart {
  const sums = ['runs', 'turns', 'tool_calls', ...amountColumns]
  const times = ['started_at', 'last_at']
  return {
    name: 'sessions',
    text: (when) => `insert into @.session_summary as session_summary
        (session_id, ${[...times, ...sums].join(', ')})
      select ${text('session_id')}, ${[...times, ...sums].map(whole).join(', ')} from ${objects('$5')} where ${when}
      on conflict (session_id) do update set ${added('session_summary', sums)},
        started_at = excluded.started_at, last_at = excluded.last_at`,
  }
}

function spendingPart({ objects }: Dialect): ChangePart {
  const keys = ['agent', 'provider', 'api', 'model_id']
  const sums = ['calls', ...amountColumns]
  return {
    name: 'spent',
    text: (when) => `insert into @.spending as spending (hour, ${[...keys, ...sums].join(', ')})
      select ${whole('hour')}, ${[...keys.map(text), ...sums.map(whole)].join(', ')} from ${objects('$6')} where ${when}
      on conflict (hour, agent, provider, api, model_id) do update set ${added('spending', sums)}`,
  }
}

/** Rows that are dropped at once: few, so that other writers hardly wait. */
const rowsPerChange = 512

/** The version of projections that are being dropped: no process reads or extends them. */
const dropping = 'dropping'

/** The tables of projections, each with what names a row of it. */
const tables: readonly (readonly [name: string, key: string])[] = [
  ['run_summary', 'run_id'],
  ['session_summary', 'session_id'],
  ['spending', 'hour, agent, provider, api, model_id'],
]

/**
 * Drops every projection, in short transactions, and leaves the tables as in a new ledger. No process reads them from
 * the first transaction on; concurrent calls help.
 */
export async function dropProjections(database: StoreDatabase): Promise<void> {
  await database.change([markPart], [])
  await database.change([versionPart(dropping)], [])
  for (const [name, key] of tables) {
    while (await database.change([rowsPart(name, key)], [])) {
      // As long as there are rows.
    }
  }
  await database.change([versionPart(projectionVersion, dropping)], [])
}

/** Drops every snapshot, in short transactions. */
export async function dropSnapshots(database: StoreDatabase): Promise<void> {
  const some: ChangePart = {
    name: 'rows',
    text: () => `delete from @.snapshot where (run_id, reducer, seq) in (
      select run_id, reducer, seq from @.snapshot limit ${rowsPerChange})`,
  }
  while (await database.change([some], [])) {
    // As long as there are rows.
  }
}

/** Its revision tells a fold that content was removed since it began. */
const markPart: ChangePart = {
  name: 'mark',
  text: () => `insert into @.projection (name, version, revision, cursor) values ('snapshots', '', 0, '')
      on conflict (name) do nothing`,
}

function versionPart(version: string, from?: string): ChangePart {
  const condition = from === undefined ? '' : ` where projection.version = '${from}'`
  return {
    name: 'version',
    text: () => `insert into @.projection as projection (name, version, revision, cursor)
      values ('runs', '${version}', 1, '') on conflict (name) do update set
        version = excluded.version, revision = projection.revision + 1, cursor = ''${condition}`,
  }
}

/** Another process may have finished dropping, and may be adding rows already: those stay. */
function rowsPart(name: string, key: string): ChangePart {
  const named = key.includes(',') ? `(${key})` : key
  return {
    name: 'rows',
    text: () => `delete from @.${name} where ${named} in (
      select ${key} from @.${name} limit ${rowsPerChange}
    ) and exists (select 1 from @.projection as projection where name = 'runs' and version = '${dropping}')`,
  }
}
