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
import {
  listParameters,
  perform,
  type Queries,
  type Schema,
  type Steps,
  type StoreDatabase,
} from '../store/database.ts'
import { getDatabase, orElse } from '../store/store.ts'
import { foldStoredRun } from './fold-to.ts'
import {
  type AccumulatedRun,
  listSpending,
  RunAccumulator,
  type SpendingLine,
  toCostNano,
} from './run-accumulator.ts'
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
const version = 7

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

export interface StoredRunRow {
  readonly run_id: string
  readonly pos: number
  readonly seq: number
  /** Of the event `seq`, to which the row is bound. */
  readonly head_hash: string
  readonly status: string
  /** The agent that it was started with, its session and its subject, as keys. */
  readonly agent: string
  readonly session_id: string | null
  readonly subject: string | null
  /** 1 for a run that does the work of a call of another run. */
  readonly is_child: number
  readonly started_at: number
  readonly last_at: number
  readonly reason: string | null
  /** Billionths of a US dollar; null without a price. */
  readonly cost_nano: number | null
  readonly tokens: number
  /** What the run is found by, as in `run_term`, as JSON. */
  readonly terms: string
  /** As JSON. */
  readonly summary: string
  /** The accumulator as JSON, from which a later projection of the run continues. */
  readonly notes: string | null
}

/** The columns of a run's row, named so that a table that lacks one is refused. */
const rowColumns: readonly (keyof StoredRunRow)[] = [
  ...(['run_id', 'pos', 'seq', 'head_hash', 'status', 'agent', 'session_id', 'subject', 'is_child'] as const),
  ...(['started_at', 'last_at', 'reason', 'cost_nano', 'tokens', 'terms', 'summary', 'notes'] as const),
]

export interface ProjectedRun extends SummaryRecord {
  readonly pos: number
  readonly spending: readonly SpendingLine[]
}

/** So many runs are found and sorted without delay; of more, an index has to give them in order. */
const fewRuns = 10_000
/** As many of a length of time, of which an index has nearly all that is asked. */
const fewOfTime = 50_000

/** A query whose runs are found all at once. */
type PlacedQuery = Pick<RunQuery, 'statuses' | 'since' | 'sessionIds'>

/** How far the rows cover the events of the ledger. */
interface Coverage {
  readonly revision: number
  /** Events after this place may be missing; absent if any may. */
  readonly from?: string
  /** The place that is covered once these are no longer missing. */
  readonly to: string
}

/** After so many events all runs are compared with their rows, which is faster then. */
const maxEventsMoved = 200_000

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

  /**
   * Up to which place of the ledger the rows cover every event, and where that place is now. In SQLite a place is the `pos` of
   * an event, in Postgres a transaction below which all have ended. A dump of Postgres may come to a server whose numbers are
   * lower, so there the place is bound to the table.
   */
  async coverage(): Promise<Coverage> {
    const [row] = await this.database.query<{
      readonly revision: number
      readonly covered: string | null
      readonly owner: string
      readonly now: string
      readonly is_foreign: boolean | number
    }>(({ db, sql, isPostgres }) => {
      const snapshot = sql`pg_current_snapshot()`
      const foreign = db
        .selectFrom('event')
        .select('seq')
        .where(sql<boolean>`xid >= pg_snapshot_xmax(${snapshot})`)
      const last = db.selectFrom('event').select(({ fn }) => fn.max('pos').as('pos'))
      const [owner, now, isForeign] = isPostgres
        ? [sql`projection.tableoid::text`, sql`pg_snapshot_xmin(${snapshot})::text`, sql`exists ${foreign}`]
        : [sql`''`, sql`cast(coalesce(${last}, 0) as text)`, sql`0`]
      return db
        .selectFrom('projection')
        .select(['revision', 'covered'])
        .select([
          sql<string>`${owner}`.as('owner'),
          sql<string>`${now}`.as('now'),
          sql<number>`${isForeign}`.as('is_foreign'),
        ])
        .where('name', '=', 'runs')
    })
    if (row === undefined) return { revision: 0, to: '0' }
    const { revision, covered, owner, now } = row
    const [known, from] = (covered ?? '').split(' ')
    const isKnown = covered !== null && known === owner && !Number(row.is_foreign)
    return { revision, to: `${owner} ${now}`, ...(isKnown && from !== undefined && { from }) }
  }

  /** The runs with events that rows may not cover; `undefined` if they may be too many to be looked up one by one. */
  async moved({ from }: Coverage): Promise<readonly string[] | undefined> {
    if (from === undefined) return undefined
    const rows = await this.database.query(({ db, sql, isPostgres }) => {
      const after = isPostgres ? sql<boolean>`xid >= ${from}::xid8` : sql<boolean>`pos > ${Number(from)}`
      return db
        .selectFrom(
          db
            .selectFrom('event')
            .select('run_id')
            .where(after)
            .limit(maxEventsMoved + 1)
            .as('later'),
        )
        .select(['run_id', sql<number>`count(*)`.as('events')])
        .groupBy('run_id')
    })
    const events = rows.reduce((sum, { events: more }) => sum + more, 0)
    return events > maxEventsMoved ? undefined : rows.map(({ run_id }) => run_id)
  }

  /** The rows cover every event up to there, unless rows were taken away since `revision`. */
  async cover({ to, revision }: Pick<Coverage, 'to' | 'revision'>): Promise<void> {
    await this.database.change(function* (queries) {
      yield* perform(
        queries,
        queries.db
          .updateTable('projection')
          .set({ covered: to })
          .where('name', '=', 'runs')
          .where('revision', '=', revision),
      )
    })
  }

  /** Runs whose row is missing, or is not of their last event; of these, if some are given. */
  lagging(afterPos: number, limit: number, runIds?: readonly string[]): Promise<readonly LaggingRun[]> {
    return this.database.query((queries) => {
      const lagging = selectLagging(queries)
        .select(['run.run_id', 'run.pos', 'run.head_seq', 'run.head_hash'])
        .select(['run_summary.summary', 'run_summary.notes'])
      if (runIds) return lagging.where('run.run_id', 'in', runIds)
      return lagging.where('run.pos', '>', afterPos).orderBy('run.pos').limit(limit)
    })
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

  /** The last event of each run at some places. */
  async heads(places: readonly number[]): Promise<ReadonlyMap<number, string>> {
    const rows = await this.database.ask<Pick<LaggingRun, 'pos' | 'head_seq' | 'head_hash'>>(
      `select pos, head_seq, head_hash from @.run where pos in (${listParameters(places)})`,
      places,
    )
    return new Map(rows.map(({ pos, head_seq, head_hash }) => [pos, `${head_seq} ${head_hash}`]))
  }

  rows(column: 'run_id' | 'pos', keys: readonly (string | number)[]): Promise<readonly StoredRunRow[]> {
    return this.database.ask(
      `select ${rowColumns.join(', ')} from @.run_summary where ${column} in (${listParameters(keys)})`,
      keys,
    )
  }

  async find({ statuses, since, sessionIds }: PlacedQuery): Promise<readonly number[]> {
    const rows = await this.database.query(({ db, sql, isPostgres }) => {
      let rows = db.selectFrom('run_summary').select('pos')
      if (statuses) rows = rows.where('status', 'in', statuses)
      if (since !== undefined) rows = rows.where('last_at', '>=', since)
      if (sessionIds) {
        // As one value: a database takes a limited number of them.
        const keys = sql`${JSON.stringify([...sessionIds].map(toKey))}`
        const items = isPostgres
          ? sql`json_array_elements_text(${keys}::json) as item(value)`
          : sql`json_each(${keys}) as item`
        rows = rows.where(sql<boolean>`session_id in (select item.value from ${items})`)
      }
      return rows
    })
    return rows.map(({ pos }) => pos)
  }

  /**
   * The places of the first runs that are asked for before a place, the newest first. What it costs depends on the page, and on
   * how many runs have the rarest of what is asked for, but not the rest. A place may be one of a run that does not fit.
   */
  async findPage(query: RunQuery, beforePos: number, limit: number): Promise<readonly number[]> {
    const groups = listQueryTerms(query)
    const isOfTime = (query.since ?? query.startedSince ?? query.startedUntil) !== undefined
    const isChoice = groups.length + Number(isOfTime) > 1
    const sorted = isChoice ? await this.#sortByRarity(groups) : groups.map((terms) => ({ terms, runs: 0 }))
    const [rarest, ...others] = sorted
    const most = rarest !== undefined && rarest.runs < fewRuns ? rarest.runs : fewOfTime
    const isShort = isOfTime && (await this.#countOfTime(query, most)) < most
    const rows = await this.database.query<{ readonly pos: number }>((queries) => {
      const { db, sql, isPostgres } = queries
      const having = (groups: typeof sorted, pos: RawBuilder<unknown>): readonly RawBuilder<boolean>[] =>
        groups.map(({ terms }) => {
          const found = db
            .selectFrom('run_term as other')
            .select('other.pos')
            .where('other.term', 'in', terms)
          return sql<boolean>`exists ${found.where(sql<boolean>`other.pos = ${pos}`)}`
        })
      const ofRow = listRowConditions(queries, query)
      if (isShort) {
        // Not a column by which an index gives an order: the runs of that time are found first, and then sorted.
        const pos = sql<number>`(run_summary.pos + 0)`
        return [...ofRow, ...having(sorted, sql`run_summary.pos`), sql<boolean>`${pos} < ${beforePos}`]
          .reduce((rows, condition) => rows.where(condition), db.selectFrom('run_summary').select('pos'))
          .orderBy(pos, 'desc')
          .limit(limit)
      }
      if (rarest === undefined) {
        const walk = db
          .selectFrom(isPostgres ? 'run_summary' : asIndexed(queries, 'run_summary_walk'))
          .select('pos')
          .where('pos', '<', beforePos)
        return ofRow
          .reduce((rows, condition) => rows.where(condition), walk)
          .orderBy('pos', 'desc')
          .limit(limit)
      }
      const run = db
        .selectFrom('run_summary')
        .select('pos')
        .where(sql<boolean>`run_summary.pos = own.pos`)
      const conditions = [
        ...having(others, sql`own.pos`),
        ...(ofRow.length === 0
          ? []
          : [sql<boolean>`exists ${ofRow.reduce((rows, condition) => rows.where(condition), run)}`]),
      ]
      const parts = rarest.terms.map((term) => {
        const own = conditions.reduce(
          (rows, condition) => rows.where(condition),
          db
            .selectFrom('run_term as own')
            .select('own.pos')
            .where('own.term', '=', term)
            .where('own.pos', '<', beforePos),
        )
        return sql`select * from (${own.orderBy('own.pos', 'desc').limit(limit)}) as part`
      })
      return sql<{ readonly pos: number }>`${sql.join(parts, sql` union `)} order by pos desc limit ${limit}`
    })
    return rows.map(({ pos }) => pos)
  }

  async hasTerms({ pos, terms: text }: StoredRunRow): Promise<boolean> {
    const terms = parseTerms(text)
    const found = await this.database.query(({ db }) =>
      db.selectFrom('run_term').select('term').where('pos', '=', pos).where('term', 'in', terms),
    )
    return found.length === terms.length
  }

  /** Groups of terms, of which a run has one each; the group that the fewest runs have, counted up to `fewRuns`, comes first. */
  async #sortByRarity(groups: readonly (readonly string[])[]): Promise<readonly RunTerms[]> {
    const counted: RunTerms[] = []
    for (const terms of groups) {
      const runs = await this.#count(fewRuns, ({ db }) =>
        db.selectFrom('run_term').select('pos').where('term', 'in', terms),
      )
      counted.push({ terms, runs })
    }
    return counted.sort((a, b) => a.runs - b.runs)
  }

  /** How many runs are of the time that is asked for, up to a number. */
  #countOfTime({ since, startedSince, startedUntil }: RunQuery, most: number): Promise<number> {
    return this.#count(most, (queries) =>
      listRowConditions(queries, { since, startedSince, startedUntil }).reduce(
        (rows, condition) => rows.where(condition),
        queries.db.selectFrom('run_summary').select('pos'),
      ),
    )
  }

  async #count(
    most: number,
    select: (queries: Queries) => SelectQueryBuilder<Schema, never, { readonly pos: number }>,
  ): Promise<number> {
    const [row] = await this.database.query((queries) =>
      queries.db
        .selectFrom(select(queries).limit(most).as('some'))
        .select(queries.sql<number>`count(*)`.as('runs')),
    )
    return row?.runs ?? 0
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
      const before = yield* perform(
        queries,
        db
          .selectFrom('run_summary')
          .select(['pos', 'terms'])
          .where(
            'pos',
            'in',
            rows.map(({ pos }) => pos),
          ),
      )
      const written = yield* perform(
        queries,
        db
          .insertInto('run_summary')
          .values(rows)
          .onConflict((on) =>
            on
              .column('run_id')
              .doUpdateSet(moved)
              .where(sql<boolean>`not exists ${later}`),
          )
          .returning(['pos', 'terms']),
      )
      // Only now: until the end of this transaction no other one writes these rows.
      yield* replaceTerms(queries, before, written)
      return true
    })
  }

  /** Drops rows of other code, in short transactions. Other processes may be at it, too. */
  async begin(): Promise<void> {
    while (!(await this.isOfThisCode())) {
      await this.#mark('', ({ sql }) => sql`projection.version <> ${projectionVersion}`)
      await this.#dropRows('run_term', ['term', 'pos'])
      await this.#dropRows('run_summary', ['run_id'])
      const isEmpty = (queries: Queries): RawBuilder<unknown> => {
        const { db, sql } = queries
        const [runs, terms] = [db.selectFrom('run_summary'), db.selectFrom('run_term')]
        return sql`projection.version = '' and not exists ${runs.select('pos')} and not exists ${terms.select('pos')}`
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
          .values({ name: 'runs', version, revision: 1, covered: null })
          .onConflict((on) =>
            on
              .column('name')
              .doUpdateSet({ version, revision: sql<number>`projection.revision + 1`, covered: null })
              .where(sql<boolean>`${condition(queries)}`),
          ),
      )
    })
  }

  /** Another process may have finished dropping rows, and may be adding new ones already: those stay. */
  async #dropRows(table: 'run_summary' | 'run_term' | 'snapshot', keys: readonly string[]): Promise<void> {
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

/** Terms of which a run has one, and how many runs there are. */
interface RunTerms {
  readonly terms: readonly string[]
  readonly runs: number
}

/** What is asked of columns of a run's row, and not of its terms. */
function listRowConditions(
  { sql }: Queries,
  { since, startedSince, startedUntil, roots }: RunQuery,
): readonly RawBuilder<boolean>[] {
  return [
    ...(since === undefined ? [] : [sql<boolean>`run_summary.last_at >= ${since}`]),
    ...(startedSince === undefined ? [] : [sql<boolean>`run_summary.started_at >= ${startedSince}`]),
    ...(startedUntil === undefined ? [] : [sql<boolean>`run_summary.started_at < ${startedUntil}`]),
    ...(roots !== true ? [] : [sql<boolean>`run_summary.is_child = 0`]),
  ]
}

type TermsRow = Pick<StoredRunRow, 'pos' | 'terms'>

/** The name that a key is of. Rows are outside the chain: a key that nobody wrote is its own name. */
export function parseKey(key: string): string {
  try {
    return key.startsWith('"') ? String(JSON.parse(key)) : key
  } catch {
    return key
  }
}

/** Replaces the terms that runs are found by. */
function* replaceTerms(
  queries: Queries,
  before: readonly TermsRow[],
  rows: readonly TermsRow[],
): Steps<void> {
  const old = new Map(before.map(({ pos, terms }) => [pos, parseTerms(terms)]))
  const added: { readonly term: string; readonly pos: number }[] = []
  for (const { pos, terms: text } of rows) {
    const terms = parseTerms(text)
    const gone = (old.get(pos) ?? []).filter((term) => !terms.includes(term))
    yield* dropTerms(queries, pos, gone)
    added.push(...terms.map((term) => ({ term, pos })))
  }
  if (added.length === 0) return
  yield* perform(
    queries,
    queries.db
      .insertInto('run_term')
      .values(added)
      .onConflict((on) => on.doNothing()),
  )
}

function* dropTerms(queries: Queries, pos: number, terms: readonly string[]): Steps<void> {
  if (terms.length === 0) return
  yield* perform(queries, queries.db.deleteFrom('run_term').where('pos', '=', pos).where('term', 'in', terms))
}

/** Deletes the row of a run, and the terms that it is found by. */
export function* dropRunRow(queries: Queries, runId: RunId): Steps<void> {
  const { db } = queries
  const rows = yield* perform(
    queries,
    db.deleteFrom('run_summary').where('run_id', '=', runId).returning(['pos', 'terms']),
  )
  for (const { pos, terms } of rows) yield* dropTerms(queries, pos, parseTerms(terms))
}

/** Rows are outside the chain: what is not as it was written is no list of terms. */
function parseTerms(text: string): readonly string[] {
  try {
    const terms: unknown = JSON.parse(text)
    return Array.isArray(terms) ? terms.filter((term) => typeof term === 'string') : []
  } catch {
    return []
  }
}

/**
 * The table of rows, read by an index of SQLite. Without figures about a file it would take another one. Typed as the table that it
 * is.
 */
function asIndexed({ sql }: Queries, index: string): 'run_summary' {
  const named = sql.raw(`run_summary indexed by ${index}`)
  return sql<StoredRunRow>`run_summary`.as<'run_summary'>(named) as unknown as 'run_summary'
}

/** Selects the heads of runs whose row is missing, or is not of their last event. */
function selectLagging(
  queries: Queries,
): SelectQueryBuilder<
  Schema & { readonly run_summary: Nullable<StoredRunRow> },
  'run' | 'run_summary',
  object
> {
  const { db, isPostgres } = queries
  return db
    .selectFrom('run')
    .leftJoin(isPostgres ? 'run_summary' : asIndexed(queries, 'run_summary_head'), (on) =>
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
export function toKey(name: string): string {
  const isPlain = name.isWellFormed() && !name.includes('\0') && !name.startsWith('"')
  return isPlain ? name : JSON.stringify(name)
}

/** The row that is to hold a run's projection. */
export function toRunRow(
  { run_id, pos, head_hash }: Pick<StoredRunRow, 'run_id' | 'pos' | 'head_hash'>,
  { summary, accumulated, tags = [] }: SummaryRecord,
): StoredRunRow {
  const run = summary.status === 'unreadable' ? undefined : summary
  const { sessionId, subject, agents = [], usage = {}, costUsd } = run ?? {}
  return {
    ...{ run_id, pos, seq: summary.seq, head_hash, status: summary.status },
    agent: toKey(agents[0] ?? ''),
    session_id: sessionId === undefined ? null : toKey(sessionId),
    subject: subject === undefined ? null : toKey(subject),
    is_child: run?.parent?.relation === 'child' ? 1 : 0,
    started_at: run?.startedAt ?? 0,
    last_at: run?.lastAt ?? 0,
    reason: run?.reason ?? null,
    cost_nano: costUsd === undefined ? null : toCostNano(costUsd),
    tokens: (usage.inputTokens ?? 0) + (usage.outputTokens ?? 0),
    terms: JSON.stringify(listTerms(summary, tags)),
    summary: JSON.stringify(summary),
    notes: accumulated ? JSON.stringify(accumulated) : null,
  }
}

/** Each kind of term begins with a letter of its own. */
const term = {
  status: (status: string) => `s ${status}`,
  agent: (name: string) => `a ${toKey(name)}`,
  tool: (name: string) => `t ${toKey(name)}`,
  outcome: (outcome: string) => `o ${outcome}`,
  /** Of a run that did not simply answer, as most do: those are found by their status. */
  reason: (reason: string) => `r ${reason}`,
  toolOutcome: (name: string, outcome: string) => `c ${outcome} ${toKey(name)}`,
  subject: (subject: string) => `u ${toKey(subject)}`,
  tag: (tag: string) => `g ${toKey(tag)}`,
  feedback: 'f',
  /** Content about a subject has to vanish with its key, so the index has no tag of such a run. */
  hiddenTags: 'h',
}

function listTerms(run: ListedRun, tags: readonly string[]): readonly string[] {
  const status = term.status(run.status)
  if (run.status === 'unreadable') return [status]
  const { agents, calls, reason, subject, feedback } = run
  const terms = [
    status,
    ...(reason === undefined || reason === 'answered' ? [] : [term.reason(reason)]),
    ...agents.map(term.agent),
    ...calls.flatMap(({ name, outcome }) => [
      term.tool(name),
      term.outcome(outcome),
      term.toolOutcome(name, outcome),
    ]),
    ...(feedback ? [term.feedback] : []),
    ...(subject === undefined ? tags.map(term.tag) : [term.subject(subject)]),
    ...(subject !== undefined && tags.length > 0 ? [term.hiddenTags] : []),
  ]
  return [...new Set(terms)]
}

/** Of each of these groups, a run that a query asks for has a term. */
function listQueryTerms({
  statuses,
  agent,
  tool,
  outcome,
  reason,
  subjects,
  tag,
  feedback,
}: RunQuery): readonly (readonly string[])[] {
  const call =
    tool === undefined
      ? outcome && term.outcome(outcome)
      : outcome
        ? term.toolOutcome(tool, outcome)
        : term.tool(tool)
  return [
    ...(statuses ? [statuses.map(term.status)] : []),
    ...(agent === undefined ? [] : [[term.agent(agent)]]),
    ...(call === undefined ? [] : [[call]]),
    ...(reason === undefined ? [] : [[reason === 'answered' ? term.status('done') : term.reason(reason)]]),
    ...(subjects ? [subjects.map(term.subject)] : []),
    ...(feedback === undefined ? [] : [[term.feedback]]),
    ...(tag === undefined ? [] : [[term.tag(tag), term.hiddenTags]]),
  ]
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
    Array.isArray(summary.lastCalls) &&
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
 * do it at once. `isQuick`: it looks only at runs with events that no earlier refresh covered, so it costs nothing where there
 * are none; without it, every row is compared with the head of its run, which also finds rows that were changed by force.
 * Rejects with a `LedgerUnavailableError` if they cannot be written.
 */
export async function refreshProjections(
  ledger: Ledger,
  database: StoreDatabase,
  folded: OnProgress,
  { isQuick = false }: { readonly isQuick?: boolean } = {},
): Promise<void> {
  const tables = new ProjectionTables(database)
  await tables.begin()
  const coverage = await tables.coverage()
  const moved = isQuick ? await tables.moved(coverage) : undefined
  if (moved?.length === 0) return
  let [tries, written, afterPos, place] = [0, 0, 0, 0]
  for (;;) {
    const { revision } = await tables.state()
    const some = moved?.slice(place, place + runsPerChange)
    const lagging = await tables.lagging(afterPos, runsPerChange, some)
    const last = lagging.at(-1)
    if (some === undefined ? last === undefined : some.length === 0) break
    const projected = await projectLagging(ledger, lagging, folded)
    const rows = projected.map(({ place: of, record }) => toRunRow(of, record))
    written += rows.length
    if (rows.length === 0 || (await tables.write(rows, revision))) {
      afterPos = last?.pos ?? afterPos
      place += runsPerChange
    } else if (++tries === maxTries) {
      throw new LedgerUnavailableError(
        'The projections of this ledger could not be updated: other processes change them again and again. ' +
          'Its events are not affected. Try again.',
      )
    }
  }
  if (written > 0 || coverage.from === undefined) await tables.cover(coverage)
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

  /** The runs that are projected in memory, and the rows that the store has of them. */
  async unwritten(): Promise<{
    readonly runs: readonly ProjectedRun[]
    readonly rows: readonly StoredRunRow[]
  }> {
    const places = [...this.#inMemory.keys()]
    const rows = places.length === 0 ? [] : await this.#tables?.rows('pos', places)
    return { runs: [...this.#inMemory.values()], rows: rows ?? [] }
  }

  /** The places of all runs that are asked for, the newest first. */
  async find(query: PlacedQuery): Promise<readonly number[]> {
    const stored = (await this.#tables?.find(query)) ?? []
    const places = [...stored.filter((pos) => !this.#inMemory.has(pos)), ...this.#findInMemory(query)]
    return places.sort((a, b) => b - a)
  }

  /** The runs that are asked for, the newest first, a page after the other. */
  async *list(query: RunQuery, before?: RunId): AsyncGenerator<ProjectedRun> {
    const found = before && (await this.#tables?.findPlace(before))
    if (before !== undefined && found === undefined) throw new RunNotFoundError(before)
    let beforePos = found ?? Number.MAX_SAFE_INTEGER
    const inMemory = this.#findInMemory(query).filter((pos) => pos < beforePos)
    for (let limit = runsPerChange; ; limit = Math.min(2 * limit, maxRunsPerPage)) {
      const stored = (await this.#tables?.findPage(query, beforePos, limit)) ?? []
      const isLast = stored.length < limit
      const end = isLast ? -Infinity : (stored.at(-1) ?? -Infinity)
      const places = [
        ...stored.filter((pos) => !this.#inMemory.has(pos)),
        ...inMemory.filter((pos) => pos < beforePos && pos >= end),
      ]
      yield* this.read(places.sort((a, b) => b - a))
      if (isLast) return
      beforePos = end
    }
  }

  #findInMemory(query: RunQuery): readonly number[] {
    const runs = [...this.#inMemory.values()]
    return runs.filter(({ summary }) => fits(summary, query)).map(({ pos }) => pos)
  }

  async *read(places: readonly number[]): AsyncGenerator<ProjectedRun> {
    for (let index = 0; index < places.length; index += runsPerChange) {
      const some = places.slice(index, index + runsPerChange)
      const stored = some.filter((pos) => !this.#inMemory.has(pos))
      const rows = stored.length === 0 ? [] : await this.#tables?.rows('pos', stored)
      const heads = stored.length === 0 ? undefined : await this.#tables?.heads(stored)
      const byPos = new Map(rows?.map((row) => [row.pos, row]))
      for (const pos of some) {
        const found = byPos.get(pos)
        // An event may have come since the rows were brought up to date.
        const row = found && heads?.get(pos) === `${found.seq} ${found.head_hash}` ? found : undefined
        const run = this.#inMemory.get(pos) ?? (await (row ? this.#readRow(row) : this.#projectAt(pos)))
        if (run) yield run
      }
    }
  }

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

/** The most places that are looked up at once. */
const maxRunsPerPage = 4_096

/** At most so many lagging runs are projected in memory. If more lag, the whole ledger is folded. */
const maxRunsInMemory = 2_000

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
  { isQuick = false }: { readonly isQuick?: boolean } = {},
): Promise<ProjectedRuns | undefined> {
  const database = getDatabase(ledger)
  if (database === undefined) return undefined
  const tables = new ProjectionTables(database)
  if (refresh && database.isWritable) {
    const isDone = await orElse(false, async () => {
      await refreshProjections(ledger, database, onProgress, { isQuick })
      return true
    })
    if (isDone) return new ProjectedRuns(ledger, tables)
  }
  return await orElse(undefined, async () => {
    if (!(await tables.isOfThisCode())) return undefined
    const moved = isQuick ? await tables.moved(await tables.coverage()) : undefined
    if (moved && moved.length > maxRunsInMemory) return undefined
    const lagging = await tables.lagging(0, maxRunsInMemory + 1, moved)
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

/** Returns whether a ledger keeps projections, so that a filter finds runs by an index. */
export function keepsProjections(ledger: Ledger): boolean {
  requireLedger('keepsProjections', ledger)
  return getDatabase(ledger) !== undefined
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
