import type { Ledger } from '@tallystick/core'
import { option, requireLedger, requireOptions } from '@tallystick/core/internal'
import type { StoreDatabase } from '../store/database.ts'
import { getDatabase, orElse } from '../store/store.ts'
import {
  bringUpToDate,
  parseKey,
  type ProjectionOptions,
  projectEveryRun,
  projectionOptions,
  toKey,
  toRunRow,
  type StoredRunRow,
} from './projections.ts'
import type { ListedRun } from './run-summary.ts'

/** What decides who sees a run. */
export interface RunFacts {
  /** The agent that it was started with. */
  readonly agent: string
  readonly sessionId?: string
  readonly subject?: string
}

/** Which runs are counted, and how. */
export interface RunStatsQuery {
  /** Milliseconds since 1970 UTC; counted from the beginning of that part. */
  readonly since: number
  /** Up to then, not included. */
  readonly until: number
  /** How long each part is, in milliseconds. */
  readonly byMs: number
  /** Only runs about one of these subjects. */
  readonly subjects?: readonly string[] | undefined
  /** Only runs of which this returns true. */
  readonly isSeen?: ((facts: RunFacts) => boolean) | undefined
}

/** The runs that began in a part of time. Child runs are parts of their root, and not counted. */
export interface RunStatsBucket {
  /** Its beginning. */
  readonly at: number
  readonly runs: number
  readonly done: number
  readonly failed: number
  readonly suspended: number
  /** Runs that failed, by why they ended. */
  readonly reasons: Readonly<Record<string, number>>
  /** US dollars of the runs that have a cost, those of child runs that have ended included. */
  readonly costUsd: number
  readonly tokens: number
  /**
   * The time from the first to the last event of runs that have ended, to two digits: half of them took at most so long, and
   * 95 of 100. Absent if none has ended.
   */
  readonly p50Ms?: number
  readonly p95Ms?: number
}

const { anyFunction, anyText, fields, listOf, maybe, numberFrom } = option
const statsQuery = fields<RunStatsQuery>({
  since: numberFrom(0),
  until: numberFrom(0),
  byMs: numberFrom(1, { whole: true }),
  subjects: maybe(listOf(anyText)),
  isSeen: maybe(anyFunction),
})

/** So much time is read at once, so that other work of a process gets its turn. */
const readAtOnceMs = 24 * 60 * 60 * 1000

/**
 * Returns how many runs began in each hour, or another part of time, and what became of them. Parts without a run are left out.
 * Where the store keeps projections, one index is read once over that time, about 40 bytes for each run. Rejects with
 * `ConfigurationError` for a wrong query or wrong options.
 */
export async function readRunStats(
  ledger: Ledger,
  query: RunStatsQuery,
  options: ProjectionOptions = {},
): Promise<readonly RunStatsBucket[]> {
  requireLedger('readRunStats', ledger)
  requireOptions('readRunStats', statsQuery, query)
  requireOptions('readRunStats', projectionOptions, options)
  const { byMs } = query
  const since = Math.floor(query.since / byMs) * byMs
  const asked = { ...query, since }
  const database = getDatabase(ledger)
  const current = await bringUpToDate(ledger, options, { isQuick: true })
  const stored =
    database && current
      ? await orElse(undefined, async () => {
          const sums = await readStored(database, asked)
          const { runs, rows } = await current.unwritten()
          for (const row of rows) addRun(sums, row, asked, -1)
          for (const { summary } of runs) addRun(sums, toStatsRow(summary), asked, 1)
          return sums
        })
      : undefined
  const sums = stored ?? (await sumUpEveryRun(ledger, asked, options))
  return [...sums.values()]
    .sort((a, b) => a.at - b.at)
    .map(({ bucket }) => bucket())
    .filter(({ runs }) => runs > 0)
}

/** Runs of one kind in one part of time. */
interface Line {
  readonly part: number
  readonly status: string
  readonly reason: string | null
  readonly took: number
  readonly runs: number
  readonly cost_nano: number | null
  readonly tokens: number
}

async function readStored(database: StoreDatabase, query: RunStatsQuery): Promise<Map<number, Sum>> {
  const sums = new Map<number, Sum>()
  const { byMs, isSeen, until } = query
  const step = Math.ceil(readAtOnceMs / byMs) * byMs
  for (let from = query.since; from < until;) {
    // A run may claim any time: what lies between is passed over.
    const next = await findNextStart(database, from, until)
    if (next === undefined) break
    from = Math.floor(next / byMs) * byMs + step
    const rows = await readPart(database, query, from - step, Math.min(from, until))
    for (const row of rows) if (isSeen === undefined || isSeen(toFacts(row))) addTo(sums, row, byMs)
  }
  return sums
}

/** When the first run began that began in this time. */
async function findNextStart(
  database: StoreDatabase,
  from: number,
  until: number,
): Promise<number | undefined> {
  const [row] = await database.query(({ db }) =>
    db
      .selectFrom('run_summary')
      .select('started_at')
      .where('started_at', '>=', from)
      .where('started_at', '<', until)
      .orderBy('started_at')
      .limit(1),
  )
  return row?.started_at
}

type Keys = Pick<StoredRunRow, 'agent' | 'session_id' | 'subject'>

/** The sums of runs that are alike. What decides who sees a run is told apart only if it is asked for. */
function readPart(
  database: StoreDatabase,
  { byMs, subjects, isSeen }: RunStatsQuery,
  from: number,
  to: number,
): Promise<readonly (Line & Keys)[]> {
  return database.query<Line & Keys>(({ db, sql }) => {
    const part = sql<number>`started_at / ${sql.lit(byMs)}`
    const took = sql<number>`${sql.raw(roundedTook)}`
    const keys = isSeen ? (['agent', 'session_id', 'subject'] as const) : []
    const counted = db
      .selectFrom('run_summary')
      .select([part.as('part'), 'status', 'reason', took.as('took'), ...keys])
      .select([
        sql<number>`count(*)`.as('runs'),
        sql<number | null>`cast(sum(cost_nano) as bigint)`.as('cost_nano'),
        sql<number>`cast(sum(tokens) as bigint)`.as('tokens'),
      ])
      .where('started_at', '>=', from)
      .where('started_at', '<', to)
      .where('is_child', '=', 0)
      .groupBy([part, 'status', 'reason', took, ...keys])
    return subjects ? counted.where('subject', 'in', subjects.map(toKey)) : counted
  })
}

/** How long a run took, to two digits, in whole numbers, which both databases divide alike. */
const roundedTook = `case ${Array.from({ length: 11 }, (_, index) => {
  const unit = 10 ** index
  return `when last_at - started_at < ${100 * unit} then (last_at - started_at) / ${unit} * ${unit}`
}).join(' ')} else last_at - started_at end`

function toFacts({ agent, session_id, subject }: Keys): RunFacts {
  return {
    agent: parseKey(agent),
    ...(session_id !== null && { sessionId: parseKey(session_id) }),
    ...(subject !== null && { subject: parseKey(subject) }),
  }
}

async function sumUpEveryRun(
  ledger: Ledger,
  query: RunStatsQuery,
  options: ProjectionOptions,
): Promise<ReadonlyMap<number, Sum>> {
  const sums = new Map<number, Sum>()
  const runs = await projectEveryRun(ledger, options)
  for await (const { summary } of runs.read(await runs.find({}))) addRun(sums, toStatsRow(summary), query, 1)
  return sums
}

function toStatsRow(summary: ListedRun): StoredRunRow {
  return toRunRow({ run_id: summary.runId, pos: 0, head_hash: '' }, { summary })
}

/** Adds a run to the sums, or takes it away (-1), if it is one of those that are asked for. */
function addRun(
  sums: Map<number, Sum>,
  row: StoredRunRow,
  { since, until, byMs, subjects, isSeen }: RunStatsQuery,
  runs: 1 | -1,
): void {
  const facts = toFacts(row)
  const isAsked =
    row.is_child === 0 &&
    row.started_at >= since &&
    row.started_at < until &&
    (subjects === undefined || (facts.subject !== undefined && subjects.includes(facts.subject))) &&
    (isSeen === undefined || isSeen(facts))
  if (!isAsked) return
  const part = Math.floor(row.started_at / byMs)
  const { status, reason, cost_nano: cost, tokens } = row
  const took = roundTook(row.last_at - row.started_at)
  const [costs, used] = [cost === null ? null : cost * runs, tokens * runs]
  addTo(sums, { part, status, reason, took, runs, cost_nano: costs, tokens: used }, byMs)
}

function roundTook(ms: number): number {
  const unit = 10 ** Math.max(0, String(Math.max(0, ms)).length - 2)
  return Math.floor(ms / unit) * unit
}

function addTo(sums: Map<number, Sum>, line: Line, byMs: number): void {
  const sum = sums.get(line.part) ?? new Sum(line.part * byMs)
  sums.set(line.part, sum)
  sum.add(line)
}

/** What is summed up of a part of time. */
class Sum {
  readonly at: number
  readonly #runs: Record<string, number> = {}
  readonly #reasons: Record<string, number> = {}
  /** How many ended runs took so long. */
  readonly #took = new Map<number, number>()
  #costNano = 0
  #tokens = 0

  constructor(at: number) {
    this.at = at
  }

  add({ status, reason, took, runs, cost_nano, tokens }: Line): void {
    this.#runs[status] = (this.#runs[status] ?? 0) + runs
    if (status === 'failed') this.#reasons[reason ?? ''] = (this.#reasons[reason ?? ''] ?? 0) + runs
    if (status === 'failed' || status === 'done') this.#took.set(took, (this.#took.get(took) ?? 0) + runs)
    this.#costNano += cost_nano ?? 0
    this.#tokens += tokens
  }

  readonly bucket = (): RunStatsBucket => {
    const { done = 0, failed = 0, suspended = 0 } = this.#runs
    const runs = Object.values(this.#runs).reduce((sum, count) => sum + count, 0)
    // What was taken away may be left with no run.
    const took = [...this.#took].filter(([, count]) => count > 0).sort(([a], [b]) => a - b)
    const reasons = Object.fromEntries(Object.entries(this.#reasons).filter(([, count]) => count > 0))
    return {
      ...{ at: this.at, runs, done, failed, suspended, reasons },
      ...{ costUsd: this.#costNano / 1e9, tokens: this.#tokens },
      ...(took.length > 0 && { p50Ms: percentile(took, 0.5), p95Ms: percentile(took, 0.95) }),
    }
  }
}

/** The least time that a part of the runs, such as 0.95, did not exceed. */
function percentile(took: readonly (readonly [ms: number, runs: number])[], part: number): number {
  let left = Math.ceil(part * took.reduce((sum, [, runs]) => sum + runs, 0))
  for (const [ms, runs] of took) {
    left -= runs
    if (left <= 0) return ms
  }
  return 0
}
