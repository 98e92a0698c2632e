import {
  ConfigurationError,
  type Ledger,
  LedgerUnavailableError,
  type RunId,
  RunNotFoundError,
  TallystickError,
} from '@tallystick/core'
import { option, requireLedger, requireOptions } from '@tallystick/core/internal'
import { foldVersion } from '@tallystick/core/machine'
import { limitNames, parseToolCallId } from '@tallystick/core/vocabulary'
import type { AliasedRawBuilder, Nullable, RawBuilder, SelectQueryBuilder } from 'kysely'
import { isRunId } from '../format/event-row.ts'
import { listParameters, perform, type Queries, type Schema, type StoreDatabase } from '../store/database.ts'
import { getDatabase, orElse } from '../store/store.ts'
import { foldStoredRun } from './fold-to.ts'
import { type AccumulatedRun, listSpending, RunAccumulator, type SpendingLine } from './run-accumulator.ts'
import {
  fits,
  type ListedRun,
  type RunQuery,
  type RunStatus,
  type SummaryRecord,
  toSummaryRecord,
  toUnreadableRecord,
} from './run-summary.ts'

/**
 * Rises whenever a summary of any run changes in value or in its stored form. The golden ledgers hold the result of each
 * version, and fail when the result changes and the version does not.
 */
const version = 4

/** The version that the row of `projection` names: summaries of another version are made again. */
export const projectionVersion: string = `projection ${version}, fold ${foldVersion}`

/** A run whose row is missing, or is not of its last event. */
interface LaggingRun {
  readonly run_id: string
  /** By which runs are listed, the newest first. */
  readonly pos: number
  readonly head_seq: number
  readonly head_hash: string
  /** Its row, if there is one. */
  readonly summary: string | null
  readonly notes: string | null
}

/** A row of `run_summary`. */
export interface StoredRunRow {
  readonly run_id: string
  readonly pos: number
  readonly seq: number
  /** Of the event `seq`, to which the row is bound. */
  readonly head_hash: string
  readonly status: string
  /** As a key. */
  readonly session_id: string | null
  readonly started_at: number
  readonly last_at: number
  /** Who had the conversation, as keys, as JSON. */
  readonly agents: string
  /** As JSON. */
  readonly summary: string
  /** The accumulator as JSON, from which a later projection of the run continues. */
  readonly notes: string | null
}

/** The columns of a run's row, named so that a table that lacks one is refused. */
const rowColumns: readonly (keyof StoredRunRow)[] = [
  ...(['run_id', 'pos', 'seq', 'head_hash', 'status', 'session_id', 'started_at', 'last_at'] as const),
  ...(['agents', 'summary', 'notes'] as const),
]

/** A run in the list of runs. */
export interface ProjectedRun extends SummaryRecord {
  readonly pos: number
  readonly spending: readonly SpendingLine[]
}

/** Rows that are written, or dropped, at once: few, so that other writers hardly wait. */
const runsPerChange = 64
const rowsPerDrop = 512

/** Reads and writes the summaries that a store keeps of its runs. */
export class ProjectionTables {
  readonly database: StoreDatabase

  constructor(database: StoreDatabase) {
    this.database = database
  }

  /** The version of the code that made the rows, and how often rows were taken away. */
  async state(): Promise<{ readonly version: string; readonly revision: number }> {
    const [row] = await this.database.ask<{ readonly version: string; readonly revision: number }>(
      `select version, revision from @.projection where name = 'runs'`,
    )
    return row ?? { version: '', revision: 0 }
  }

  async isOfThisCode(): Promise<boolean> {
    return (await this.state()).version === projectionVersion
  }

  /** Runs whose row is missing, or is not of their last event. */
  lagging(afterPos: number, limit: number): Promise<readonly LaggingRun[]> {
    return this.database.query((queries) =>
      selectLagging(queries)
        .select(['run.run_id', 'run.pos', 'run.head_seq', 'run.head_hash'])
        .select(['run_summary.summary', 'run_summary.notes'])
        .where('run.pos', '>', afterPos)
        .orderBy('run.pos')
        .limit(limit),
    )
  }

  /** How many events the rows do not cover. */
  async countLag(): Promise<number> {
    const isOfThisCode = await this.isOfThisCode()
    const [row] = await this.database.query((queries) => {
      const { db, sql } = queries
      const covered = sql`case when run_summary.seq < run.head_seq then run_summary.seq else 0 end`
      const selectSum = (events: RawBuilder<unknown>): AliasedRawBuilder<number, 'events'> =>
        sql<number>`cast(coalesce(sum(${events}), 0) as bigint)`.as('events')
      return isOfThisCode
        ? selectLagging(queries).select(selectSum(sql`run.head_seq - ${covered}`))
        : db.selectFrom('run').select(selectSum(sql`head_seq`))
    })
    return row?.events ?? 0
  }

  /** The place of a run; `undefined` if it is not there. */
  async findPlace(runId: RunId): Promise<number | undefined> {
    const [row] = await this.database.ask<{ readonly pos: number }>(
      'select pos from @.run where run_id = $1',
      [runId],
    )
    return row?.pos
  }

  /** The run at a place; `undefined` if it is not there. */
  async headAt(pos: number): Promise<Pick<LaggingRun, 'run_id' | 'head_seq'> | undefined> {
    const [row] = await this.database.ask<Pick<LaggingRun, 'run_id' | 'head_seq'>>(
      'select run_id, head_seq from @.run where pos = $1',
      [pos],
    )
    return row
  }

  /** The rows of some runs. */
  rows(column: 'run_id' | 'pos', keys: readonly (string | number)[]): Promise<readonly StoredRunRow[]> {
    return this.database.ask(
      `select ${rowColumns.join(', ')} from @.run_summary where ${column} in (${listParameters(keys)})`,
      keys,
    )
  }

  /** The places of the runs that are asked for. */
  async find(
    { statuses, agent, since, sessionIds }: RunQuery,
    beforePos?: number,
  ): Promise<readonly number[]> {
    const rows = await this.database.query(({ db, sql, isPostgres }) => {
      const expandTexts = (json: RawBuilder<unknown>): RawBuilder<unknown> =>
        isPostgres
          ? sql`json_array_elements_text(${json}::json) as item(value)`
          : sql`json_each(${json}) as item`
      let rows = db.selectFrom('run_summary').select('pos')
      if (beforePos !== undefined) rows = rows.where('pos', '<', beforePos)
      if (statuses) rows = rows.where('status', 'in', statuses)
      if (since !== undefined) rows = rows.where('last_at', '>=', since)
      if (sessionIds) {
        // As one value: a database takes a limited number of them.
        const keys = sql`${JSON.stringify([...sessionIds].map(toKey))}`
        rows = rows.where(sql<boolean>`session_id in (select item.value from ${expandTexts(keys)})`)
      }
      if (agent !== undefined) {
        const agents = expandTexts(sql`agents`)
        rows = rows.where(sql<boolean>`exists (select 1 from ${agents} where item.value = ${toKey(agent)})`)
      }
      return rows
    })
    return rows.map(({ pos }) => pos)
  }

  /** The number of runs of each status, without those at some places. */
  async counts(without: readonly number[]): Promise<ReadonlyMap<RunStatus, number>> {
    const rows = await this.database.query(({ db, sql }) =>
      db
        .selectFrom('run_summary')
        .select(['status', sql<number>`count(*)`.as('runs')])
        .where('pos', 'not in', without)
        .groupBy('status'),
    )
    return new Map(rows.map(({ status, runs }) => [status as RunStatus, runs]))
  }

  /**
   * Writes rows, unless content was removed, or rows were dropped, since `state` was read: then the rows may hold removed
   * content, and it returns `false`. A row of a later event of the run stays.
   */
  write(rows: readonly StoredRunRow[], revision: number): Promise<boolean> {
    return this.database.change(function* (queries) {
      const { db, sql, isPostgres } = queries
      const known = db.selectFrom('projection').select('revision').where('name', '=', 'runs')
      // A removal waits for it, and then deletes the rows.
      const [mark] = yield* perform(queries, isPostgres ? known.forShare() : known)
      if (mark?.revision !== revision) return false
      const moving = rowColumns.filter((column) => column !== 'run_id' && column !== 'pos')
      const moved = Object.fromEntries(moving.map((column) => [column, sql`excluded.${sql.ref(column)}`]))
      // Another process may have written a later row since this one was projected, and counts on it.
      const later = db
        .selectFrom('event')
        .select('event.seq')
        .where(sql<boolean>`event.run_id = run_summary.run_id and event.seq = run_summary.seq`)
        .where(sql<boolean>`event.hash = run_summary.head_hash and event.seq > excluded.seq`)
      yield* perform(
        queries,
        db
          .insertInto('run_summary')
          .values(rows)
          .onConflict((on) =>
            on
              .column('run_id')
              .doUpdateSet(moved)
              .where(sql<boolean>`not exists ${later}`),
          ),
      )
      return true
    })
  }

  /** Drops rows of other code, in short transactions. Other processes may be at it, too. */
  async begin(): Promise<void> {
    while (!(await this.isOfThisCode())) {
      await this.#mark('', ({ sql }) => sql`projection.version <> ${projectionVersion}`)
      await this.#dropRows('run_summary', ['run_id'])
      const isEmpty = (queries: Queries): RawBuilder<unknown> => {
        const { db, sql } = queries
        return sql`projection.version = '' and not exists ${db.selectFrom('run_summary').select('pos')}`
      }
      await this.#mark(projectionVersion, isEmpty)
    }
  }

  /** Drops all rows and every snapshot, in short transactions: no process reads them from the first one on. */
  async drop(): Promise<void> {
    await this.#mark('', ({ sql }) => sql`true`)
    await this.#dropRows('snapshot', ['run_id', 'reducer', 'seq'])
    await this.begin()
  }

  async #mark(version: string, condition: (queries: Queries) => RawBuilder<unknown>): Promise<void> {
    await this.database.change(function* (queries) {
      const { db, sql } = queries
      yield* perform(
        queries,
        db
          .insertInto('projection')
          .values({ name: 'runs', version, revision: 1 })
          .onConflict((on) =>
            on
              .column('name')
              .doUpdateSet({ version, revision: sql<number>`projection.revision + 1` })
              .where(sql<boolean>`${condition(queries)}`),
          ),
      )
    })
  }

  /** Another process may have finished dropping rows, and may be adding new ones already: those stay. */
  async #dropRows(table: 'run_summary' | 'snapshot', keys: readonly string[]): Promise<void> {
    let dropped: readonly unknown[]
    do {
      dropped = await this.database.change(function* (queries) {
        const { db, sql } = queries
        const key = sql.join(keys.map((name) => sql.ref(name)))
        const some = sql`select ${key} from ${sql.table(table)} limit ${rowsPerDrop}`
        return yield* perform(
          queries,
          db
            .deleteFrom(table)
            .where(sql<boolean>`(${key}) in (${some})`)
            .where((of) =>
              of.exists(of.selectFrom('projection').select('revision').where('version', '=', '')),
            )
            .returning(sql<number>`1`.as('dropped')),
        )
      })
    } while (dropped.length > 0)
  }
}

/** Selects the heads of runs whose row is missing, or is not of their last event. */
function selectLagging({
  db,
  sql,
  isPostgres,
}: Queries): SelectQueryBuilder<
  Schema & { readonly run_summary: Nullable<StoredRunRow> },
  'run' | 'run_summary',
  object
> {
  // An alias that names the index is typed as the table that it is: without figures about a file SQLite would take another.
  const indexed = sql<StoredRunRow>`run_summary`.as<'run_summary'>(
    sql.raw('run_summary indexed by run_summary_head'),
  )
  return db
    .selectFrom('run')
    .leftJoin(isPostgres ? 'run_summary' : (indexed as unknown as 'run_summary'), (on) =>
      on.onRef('run_summary.run_id', '=', 'run.run_id'),
    )
    .where((of) =>
      of.or([
        of('run_summary.seq', 'is', null),
        of('run_summary.seq', '<>', of.ref('run.head_seq')),
        of('run_summary.head_hash', '<>', of.ref('run.head_hash')),
      ]),
    )
}

/**
 * A name as the key of a row: most are used unchanged, and one that a database could not hold, or that looks like the
 * other kind, as JSON. No two names have the same key.
 */
function toKey(name: string): string {
  const isPlain = name.isWellFormed() && !name.includes('\0') && !name.startsWith('"')
  return isPlain ? name : JSON.stringify(name)
}

/** The row that is to hold a run's projection. */
export function toRunRow(
  { run_id, pos, head_hash }: Pick<StoredRunRow, 'run_id' | 'pos' | 'head_hash'>,
  { summary, accumulated }: SummaryRecord,
): StoredRunRow {
  const { sessionId, startedAt, lastAt, agents } =
    summary.status === 'unreadable' ? { sessionId: undefined, startedAt: 0, lastAt: 0, agents: [] } : summary
  return {
    ...{ run_id, pos, seq: summary.seq, head_hash, status: summary.status },
    session_id: sessionId === undefined ? null : toKey(sessionId),
    started_at: startedAt,
    last_at: lastAt,
    agents: JSON.stringify([...new Set(agents.map(toKey))]),
    summary: JSON.stringify(summary),
    notes: accumulated ? JSON.stringify(accumulated) : null,
  }
}

/**
 * Parses a row; `undefined` if it is not as it was written. Rows are outside the chain, so any writer of the database may
 * have made them.
 */
export function parseRunRow({
  run_id,
  pos,
  summary: json,
  notes,
}: Pick<LaggingRun, 'run_id' | 'pos' | 'summary' | 'notes'>): ProjectedRun | undefined {
  try {
    const summary = JSON.parse(json ?? '') as ListedRun
    const accumulated = notes === null ? undefined : (JSON.parse(notes) as AccumulatedRun)
    if (!hasIds(summary, run_id)) return undefined
    return toProjectedRun(pos, { summary, ...(accumulated && { accumulated }) })
  } catch {
    return undefined
  }
}

function toProjectedRun(pos: number, record: SummaryRecord): ProjectedRun {
  const spending = record.accumulated ? listSpending(record.accumulated) : []
  if (!spending.every(isLine)) throw new TypeError('A line of spending has another shape.')
  return { pos, ...record, spending }
}

/** Checks the ids in a summary, since commands contain them. */
function hasIds(summary: ListedRun, runId: string): boolean {
  if (summary.runId !== runId || !isRunId(runId)) return false
  if (summary.status === 'unreadable') return true
  const { parent, started, waits, childRunIds } = summary
  const calls = [...started, ...waits.approvals, ...waits.deferred, ...waits.children]
  const runIds = [
    ...childRunIds,
    ...waits.children.map((each) => each.runId),
    ...(parent ? [parent.runId] : []),
  ]
  const limit = waits.limit?.limit
  return (
    Array.isArray(summary.calls) &&
    calls.every(({ toolCallId }) => parseToolCallId(toolCallId) !== undefined) &&
    runIds.every(isRunId) &&
    (limit === undefined || limitNames.includes(limit))
  )
}

function isLine({ agent, model, usage, hour, calls, costNano, unpriced }: SpendingLine): boolean {
  return (
    [agent, model.provider, model.api, model.modelId].every((name) => typeof name === 'string') &&
    [hour, calls, costNano, unpriced, ...Object.values(usage)].every(Number.isFinite)
  )
}

/** Codes of errors that are about the record of one run, and say nothing about the others. */
const ofOneRun: ReadonlySet<string> = new Set([
  'ledger_damaged',
  'law_broken',
  'illegal_transition',
  'unknown_event',
])

/**
 * Projects a run after its event `toSeq`, from what was projected before on. Reports a run that cannot be read as unreadable, and
 * throws faults of the store itself. `undefined` if the run has no events.
 */
export async function projectRun(
  ledger: Ledger,
  runId: RunId,
  toSeq: number,
  before?: Pick<SummaryRecord, 'summary' | 'accumulated'>,
): Promise<SummaryRecord | undefined> {
  const known = before?.accumulated && before.summary.seq < toSeq ? before.accumulated : undefined
  try {
    const accumulator = new RunAccumulator(known)
    const state = await foldStoredRun(ledger, runId, {
      toSeq,
      usesSnapshots: true,
      onEventAfter: known ? (before?.summary.seq ?? 0) : 0,
      onEvent: (event) => accumulator.add(event),
    })
    const record = state && toSummaryRecord(state, accumulator.run)
    if (known && record && !hasIds(record.summary, runId)) return await projectRun(ledger, runId, toSeq)
    return record
  } catch (error) {
    // The row from before may be the fault: project the run from its first event.
    if (known) return await projectRun(ledger, runId, toSeq)
    if (!(error instanceof TallystickError && ofOneRun.has(error.code))) throw error
    return toUnreadableRecord(runId, toSeq, error)
  }
}

/** Projects runs that lag, each from its row on. */
async function projectLagging(
  ledger: Ledger,
  lagging: readonly LaggingRun[],
  folded: OnProgress,
): Promise<readonly { readonly place: LaggingRun; readonly record: SummaryRecord }[]> {
  const projected: { readonly place: LaggingRun; readonly record: SummaryRecord }[] = []
  for (const place of lagging) {
    const { run_id: runId, head_seq: headSeq } = place
    // Events under a text that is not a run id belong to no run; verify names them.
    if (!isRunId(runId)) continue
    const before = parseRunRow(place)
    const record = await projectRun(ledger, runId, headSeq, before)
    folded(before && before.summary.seq < headSeq ? headSeq - before.summary.seq : headSeq)
    if (record) projected.push({ place, record })
  }
  return projected
}

/** How often a change is tried again after content was removed meanwhile. */
const maxTries = 50

/** Called with the number of further events that were folded. */
type OnProgress = (events: number) => void

/**
 * Brings the summaries of a ledger up to date: of what has changed, in short transactions. Any number of processes may
 * do it at once. Rejects with a `LedgerUnavailableError` if they cannot be written.
 */
export async function refreshProjections(
  ledger: Ledger,
  database: StoreDatabase,
  folded: OnProgress,
): Promise<void> {
  const tables = new ProjectionTables(database)
  await tables.begin()
  let tries = 0
  for (let afterPos = 0; ;) {
    const { revision } = await tables.state()
    const lagging = await tables.lagging(afterPos, runsPerChange)
    const last = lagging.at(-1)
    if (last === undefined) return
    const projected = await projectLagging(ledger, lagging, folded)
    const rows = projected.map(({ place, record }) => toRunRow(place, record))
    if (rows.length === 0 || (await tables.write(rows, revision))) afterPos = last.pos
    else if (++tries === maxTries) {
      throw new LedgerUnavailableError(
        'The projections of this ledger could not be updated: other processes change them again and again. ' +
          'Its events are not affected. Try again.',
      )
    }
  }
}

/** The summaries of the runs of a ledger: rows of the store, and projections in memory that come in their place. */
export class ProjectedRuns {
  readonly #ledger: Ledger
  readonly #tables: ProjectionTables | undefined
  readonly #inMemory: ReadonlyMap<number, ProjectedRun>

  constructor(ledger: Ledger, tables: ProjectionTables | undefined, inMemory: readonly ProjectedRun[] = []) {
    this.#ledger = ledger
    this.#tables = tables
    this.#inMemory = new Map(inMemory.map((run) => [run.pos, run]))
  }

  /** The places of the runs that are asked for, the newest first. */
  async find(query: RunQuery, before?: RunId): Promise<readonly number[]> {
    const beforePos = before && (await this.#tables?.findPlace(before))
    if (before !== undefined && beforePos === undefined) throw new RunNotFoundError(before)
    const stored = (await this.#tables?.find(query, beforePos)) ?? []
    const inMemory = [...this.#inMemory.values()]
      .filter(({ pos, summary }) => pos < (beforePos ?? Infinity) && fits(summary, query))
      .map(({ pos }) => pos)
    return [...stored.filter((pos) => !this.#inMemory.has(pos)), ...inMemory].sort((a, b) => b - a)
  }

  /** Reads runs by their places. */
  async *read(places: readonly number[]): AsyncGenerator<ProjectedRun> {
    for (let index = 0; index < places.length; index += runsPerChange) {
      const some = places.slice(index, index + runsPerChange)
      const stored = some.filter((pos) => !this.#inMemory.has(pos))
      const rows = stored.length === 0 ? [] : await this.#tables?.rows('pos', stored)
      const byPos = new Map(rows?.map((row) => [row.pos, row]))
      for (const pos of some) {
        const row = byPos.get(pos)
        const run = this.#inMemory.get(pos) ?? (await (row ? this.#readRow(row) : this.#projectAt(pos)))
        if (run) yield run
      }
    }
  }

  /** The number of runs of each status. */
  async counts(): Promise<Readonly<Record<RunStatus, number>>> {
    const counts = { done: 0, failed: 0, suspended: 0, unfinished: 0, unreadable: 0 }
    const stored = await this.#tables?.counts([...this.#inMemory.keys()])
    for (const [status, runs] of stored ?? []) counts[status] += runs
    for (const { summary } of this.#inMemory.values()) counts[summary.status]++
    return counts
  }

  /** A row that has gone since its place was found: content of its run was removed, or the run was dropped. */
  async #projectAt(pos: number): Promise<ProjectedRun | undefined> {
    const head = await this.#tables?.headAt(pos)
    if (head === undefined || !isRunId(head.run_id)) return undefined
    const record = await projectRun(this.#ledger, head.run_id, head.head_seq)
    return record && toProjectedRun(pos, record)
  }

  /** A row that was changed is ignored; its run has the facts. */
  async #readRow(row: StoredRunRow): Promise<ProjectedRun | undefined> {
    const stored = parseRunRow(row)
    if (stored || !isRunId(row.run_id)) return stored
    const record = await projectRun(this.#ledger, row.run_id, row.seq)
    return record && toProjectedRun(row.pos, record)
  }
}

/** At most so many lagging runs are projected in memory. If more lag, the whole ledger is folded. */
const maxRunsInMemory = 2_000

/** How projections are used. */
export interface ProjectionOptions {
  /** Bring them up to date in the store, if it was opened for writing. Default: `true`. */
  readonly refresh?: boolean | undefined
  /** Called with the number of further events that were folded. */
  readonly onProgress?: OnProgress | undefined
}

export const projectionOptions: option.Schema = option.fields<ProjectionOptions>({
  refresh: option.maybe(option.trueOrFalse),
  onProgress: option.maybe(option.anyFunction),
})

/**
 * Returns the current summaries of a ledger's runs; `undefined` if they are missing or unusable: then everything is
 * folded. Faults of projections are ignored, as long as the events can be read.
 */
export async function bringUpToDate(
  ledger: Ledger,
  { refresh = true, onProgress = () => {} }: ProjectionOptions,
): Promise<ProjectedRuns | undefined> {
  const database = getDatabase(ledger)
  if (database === undefined) return undefined
  const tables = new ProjectionTables(database)
  if (refresh && database.isWritable) {
    const isDone = await orElse(false, async () => {
      await refreshProjections(ledger, database, onProgress)
      return true
    })
    if (isDone) return new ProjectedRuns(ledger, tables)
  }
  return await orElse(undefined, async () => {
    if (!(await tables.isOfThisCode())) return undefined
    const lagging = await tables.lagging(0, maxRunsInMemory + 1)
    if (lagging.length > maxRunsInMemory) return undefined
    const projected = await projectLagging(ledger, lagging, onProgress)
    const inMemory = projected.map(({ place, record }) => toProjectedRun(place.pos, record))
    return new ProjectedRuns(ledger, tables, inMemory)
  })
}

/** Projects every run of a ledger in memory, if its store keeps no usable summaries. */
export async function projectEveryRun(
  ledger: Ledger,
  { onProgress = () => {} }: ProjectionOptions,
): Promise<ProjectedRuns> {
  const runs: ProjectedRun[] = []
  for await (const { runId, head } of ledger.runs()) {
    const record = await projectRun(ledger, runId, head.seq)
    onProgress(head.seq)
    // The newest comes first.
    if (record) runs.push(toProjectedRun(-runs.length, record))
  }
  return new ProjectedRuns(ledger, undefined, runs)
}

/**
 * Returns how many events the projections of a ledger do not cover yet; `undefined` if the ledger keeps none, so that
 * everything is folded each time.
 */
export async function countProjectionLag(ledger: Ledger): Promise<number | undefined> {
  requireLedger('countProjectionLag', ledger)
  const database = getDatabase(ledger)
  if (database === undefined) return undefined
  return await orElse(undefined, () => new ProjectionTables(database).countLag())
}

/** How much was folded. */
export interface RebuildReport {
  readonly runs: number
  readonly events: number
}

/**
 * Drops everything that a store keeps beside its events, and makes the summaries of its runs again from them. Snapshots
 * come back with the next long folds. Writers are not kept waiting.
 *
 * Rejects with a `ConfigurationError` for a ledger that keeps nothing of the kind, and with a `LedgerUnavailableError`
 * if it was opened with `readOnly`.
 */
export async function rebuildProjections(
  ledger: Ledger,
  folded: OnProgress = () => {},
): Promise<RebuildReport> {
  requireLedger('rebuildProjections', ledger)
  requireOptions('rebuildProjections', option.anyFunction, folded, 'what gets the progress')
  const database = getDatabase(ledger)
  if (database === undefined) {
    throw new ConfigurationError(
      'This ledger keeps no projections, so there is nothing to rebuild: only sqliteLedger and postgresLedger do. ' +
        'Pass the ledger itself, not something wrapped around it.',
    )
  }
  if (!database.isWritable) {
    throw new LedgerUnavailableError(
      'This ledger was opened with readOnly, so its projections were left as they are. Open it without readOnly to rebuild them.',
    )
  }
  await new ProjectionTables(database).drop()
  let [runs, events] = [0, 0]
  await refreshProjections(ledger, database, (more) => {
    runs++
    events += more
    folded(more)
  })
  return { runs, events }
}
