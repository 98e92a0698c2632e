import type { Ledger, Usage } from '@tallystick/core'
import { option, requireLedger, requireOptions } from '@tallystick/core/internal'
import type { ModelRef } from '@tallystick/core/vocabulary'
import {
  CorruptRowError,
  type CurrentProjections,
  bringUpToDate,
  orElse,
  type ProjectionOptions,
  projectionOptions,
  sumTotals,
} from './refresh.ts'
import {
  addAmounts,
  type Amounts,
  startOfHour,
  toCostUsd,
  toHour,
  fromKey,
  noAmounts,
  toUsage,
} from './run-accumulator.ts'
import {
  type ListedRun,
  type RunStatus,
  runStatuses,
  type RunSummary,
  type UnreadableRun,
} from './run-summary.ts'
import {
  projectRun,
  type SessionChange,
  type SpendingChange,
  parseRunRow,
  toTimedShares,
  TotalsAccumulator,
} from './stored-run.ts'
import type { SpendingRow } from './tables.ts'

const hoursPerDay = 24

/** A run with its place in the list. */
export interface PlacedRun {
  readonly pos: number
  readonly run: ListedRun
}

interface DaySum extends Amounts {
  readonly day: number
  readonly agent: string
  readonly model: ModelRef
  readonly calls: number
}

/** Gathers what a ledger says of its runs, from rows or from runs, in any order. */
export class StatsAccumulator {
  readonly #query: StatsQuery
  readonly #counts = Object.fromEntries(runStatuses.map((status) => [status, 0])) as Record<RunStatus, number>
  readonly #noted = new Map<RunStatus, PlacedRun[]>(runStatuses.map((status) => [status, []]))
  readonly #spending = new Map<string, DaySum>()
  readonly #sessions = new Map<string, SessionChange>()

  constructor(query: StatsQuery) {
    this.#query = query
  }

  count(status: RunStatus, runs: number): void {
    this.#counts[status] += runs
  }

  /** A run is named where a person may have to do something about it. */
  note(placed: PlacedRun): void {
    if (!isNoted(placed.run, this.#query.since)) return
    const noted = this.#noted.get(placed.run.status) as PlacedRun[]
    noted.push(placed)
    // Twice as many as are named, so that they are not sorted each time.
    if (noted.length >= 2 * this.#query.maxListed + 1) this.#cut(noted)
  }

  spend(hours: SpendingChange): void {
    const { hour, ...sum } = hours
    if (hour < toHour(this.#query.since)) return
    this.spendDay({ ...sum, day: Math.floor(hour / hoursPerDay) })
  }

  spendDay({ day, agent, provider, api, model_id, ...sum }: SpendingRow): void {
    const key = JSON.stringify([day, agent, provider, api, model_id])
    const model = { provider: fromKey(provider), api: fromKey(api), modelId: fromKey(model_id) }
    const before = this.#spending.get(key) ?? { ...noAmounts, day, agent: fromKey(agent), model, calls: 0 }
    this.#spending.set(key, { ...before, ...addAmounts(before, sum), calls: before.calls + sum.calls })
  }

  /** Times are those that hold after the change. */
  session(change: SessionChange): void {
    const before = this.#sessions.get(change.session_id)
    this.#sessions.set(change.session_id, before ? addSessions(before, change) : change)
  }

  /** Adds the row of the store to what was gathered of a session. */
  sessionBelow(row: SessionChange): void {
    const change = this.#sessions.get(row.session_id)
    this.#sessions.set(row.session_id, change ? addSessions(row, change) : row)
  }

  get stats(): LedgerStats {
    const { since, maxListed } = this.#query
    return {
      since,
      counts: this.#counts,
      suspended: this.#named('suspended') as readonly RunSummary[],
      unfinished: this.#named('unfinished') as readonly RunSummary[],
      failed: this.#named('failed') as readonly RunSummary[],
      unreadable: this.#named('unreadable') as readonly UnreadableRun[],
      spending: [...this.#spending.values()]
        .filter(({ calls }) => calls > 0)
        .map(toDaySpending)
        .sort((a, b) => a.day - b.day || (formatSpendingName(a) < formatSpendingName(b) ? -1 : 1)),
      sessions: [...this.#sessions.values()]
        .filter(({ runs, last_at }) => runs > 0 && last_at >= since)
        .sort(compareByCost)
        .slice(0, maxListed)
        .map(toSessionTotals),
    }
  }

  #named(status: RunStatus): readonly ListedRun[] {
    const noted = this.#noted.get(status) as PlacedRun[]
    this.#cut(noted)
    return noted.map(({ run }) => run)
  }

  #cut(noted: PlacedRun[]): void {
    noted.sort((a, b) => b.pos - a.pos)
    noted.length = Math.min(noted.length, this.#query.maxListed)
  }
}

/** A root run waits for all of its child runs. */
export function isNoted(run: ListedRun, since: number): boolean {
  if (run.status === 'suspended') return run.parent?.relation !== 'child'
  return run.status === 'failed' ? run.lastAt >= since : run.status !== 'done'
}

function addSessions(left: SessionChange, right: SessionChange): SessionChange {
  return {
    ...right,
    ...addAmounts(left, right),
    runs: left.runs + right.runs,
    turns: left.turns + right.turns,
    tool_calls: left.tool_calls + right.tool_calls,
  }
}

function formatSpendingName({ agent, model }: DaySpending): string {
  return JSON.stringify([agent, model.provider, model.api, model.modelId])
}

function toDaySpending({ day, agent, model, calls, ...sum }: DaySum): DaySpending {
  const costUsd = toCostUsd(sum, calls)
  return {
    day,
    agent,
    model,
    calls,
    usage: toUsage(sum),
    ...(costUsd !== undefined && { costUsd }),
    unpriced: sum.unpriced,
  }
}

function toSessionTotals(session: SessionChange): SessionTotals {
  const { session_id, runs, started_at, last_at, turns, tool_calls } = session
  const costUsd = toCostUsd(session, runs)
  return {
    sessionId: fromKey(session_id),
    runs,
    startedAt: started_at,
    lastAt: last_at,
    turns,
    toolCalls: tool_calls,
    usage: toUsage(session),
    ...(costUsd !== undefined && { costUsd }),
    unpriced: session.unpriced,
  }
}

function compareByCost(a: SessionChange, b: SessionChange): number {
  return (
    b.cost_nano - a.cost_nano || countTokens(b) - countTokens(a) || (a.session_id < b.session_id ? -1 : 1)
  )
}

function countTokens({ input_tokens, output_tokens }: SessionChange): number {
  return input_tokens + output_tokens
}

const rowsPerBatch = 256

/** Statuses of which runs are named. */
const noted = ['suspended', 'unfinished', 'failed', 'unreadable'] as const

/**
 * The same from the projections, and from the replacements of those that lag; `undefined` where they cannot
 * be read.
 */
function readStats(current: CurrentProjections, query: StatsQuery): Promise<LedgerStats | undefined> {
  return orElse(undefined, async () => {
    const { tables } = current
    const accumulator = new StatsAccumulator(query)
    for (const [status, runs] of await tables.counts()) accumulator.count(status, runs)
    for (const row of await tables.spending(toHour(query.since))) accumulator.spendDay(row)
    for (const status of noted) await addNoted(accumulator, current, query, status)
    await addLagging(accumulator, current, query)
    return accumulator.stats
  })
}

/** As many of a status as are named, the newest first. */
async function addNoted(
  accumulator: StatsAccumulator,
  { tables, lagging }: CurrentProjections,
  { since, maxListed }: StatsQuery,
  status: RunStatus,
): Promise<void> {
  const asked = { status, limit: rowsPerBatch, ...(status === 'failed' && { since }) }
  let [beforePos, named] = [Number.MAX_SAFE_INTEGER, 0]
  for (;;) {
    const batch = await tables.batch({ ...asked, beforePos })
    for (const row of batch) {
      beforePos = row.pos
      if (lagging.has(row.run_id)) continue
      const run = parseRunRow(row)?.summary
      if (run === undefined) throw new CorruptRowError(row.run_id)
      if (isNoted(run, since)) named++
      accumulator.note({ pos: row.pos, run })
      if (named === maxListed) return
    }
    if (batch.length < rowsPerBatch) return
  }
}

/** The replacements of lagging rows, in each of the sums that include them. */
async function addLagging(
  accumulator: StatsAccumulator,
  { tables, lagging }: CurrentProjections,
  { since, maxListed }: StatsQuery,
): Promise<void> {
  const runs = [...lagging.values()]
  for (const { before, now } of runs) {
    if (before) accumulator.count(before.status, -1)
    if (now === undefined) continue
    accumulator.count(now.record.summary.status, 1)
    accumulator.note({ pos: now.place.pos, run: now.record.summary })
  }
  const { spending, sessions } = await sumTotals(tables, runs)
  for (const line of spending) accumulator.spend(line)
  for (const session of sessions) accumulator.session(session)
  const touched = new Set(sessions.map(({ session_id }) => session_id))
  for (const row of await tables.sessionsOf([...touched])) accumulator.sessionBelow(row)
  for (const row of await tables.sessions(since, maxListed + touched.size))
    if (!touched.has(row.session_id)) accumulator.session(row)
}

/** The same from the events alone: for ledgers that keep no projections, or none that would be of use. */
async function foldStats(
  ledger: Ledger,
  query: StatsQuery,
  { onProgress = () => {} }: ProjectionOptions,
): Promise<LedgerStats> {
  const accumulator = new StatsAccumulator(query)
  const totals = new TotalsAccumulator()
  let pos = 0
  for await (const { runId, head } of ledger.runs()) {
    const record = await projectRun(ledger, runId, head.seq)
    onProgress(head.seq)
    if (record === undefined) continue
    accumulator.count(record.summary.status, 1)
    // The newest comes first.
    accumulator.note({ pos: pos--, run: record.summary })
    totals.add(toTimedShares(record))
  }
  for (const line of totals.change.spending) accumulator.spend(line)
  for (const session of totals.change.sessions) accumulator.session(session)
  return accumulator.stats
}

const statsQuery = option.fields<StatsQuery>(
  {
    since: option.valueThat('a finite number of milliseconds since 1970 UTC', Number.isFinite),
    maxListed: option.numberFrom(0, { whole: true }),
  },
  { limit: 'maxListed', max: 'maxListed', from: 'since' },
)

/**
 * Returns what waits, what failed and what it cost. If the store keeps projections, that takes a few queries, however
 * many runs there are; events that they do not cover yet are folded. Rejects with `ConfigurationError` for a wrong
 * query or wrong options.
 */
export async function ledgerStats(
  ledger: Ledger,
  asked: StatsQuery,
  options: ProjectionOptions = {},
): Promise<LedgerStats> {
  requireLedger('ledgerStats', ledger)
  requireOptions('ledgerStats', statsQuery, asked)
  requireOptions('ledgerStats', projectionOptions, options)
  const { since, maxListed } = asked
  const query = { since: startOfHour(toHour(since)), maxListed }
  const current = await bringUpToDate(ledger, options)
  const found = current && (await readStats(current, query))
  return found ?? (await foldStats(ledger, query, options))
}

/** Model calls of one agent and model on one day. */
export interface DaySpending {
  /** Days since 1970 UTC. */
  readonly day: number
  readonly agent: string
  readonly model: ModelRef
  readonly calls: number
  readonly usage: Usage
  /** US dollars for the calls that had a price; absent where none had. */
  readonly costUsd?: number
  /** Calls that had no price. */
  readonly unpriced: number
}

/** The totals of the runs of a session, with those child runs that have ended. */
export interface SessionTotals {
  readonly sessionId: string
  readonly runs: number
  /** Milliseconds since 1970 UTC, of the first event and of the last. */
  readonly startedAt: number
  readonly lastAt: number
  readonly turns: number
  readonly toolCalls: number
  readonly usage: Usage
  /** US dollars of the runs that have a cost; absent where none has. */
  readonly costUsd?: number
  /** Runs that have no cost. */
  readonly unpriced: number
}

/** Statistics of the runs of a ledger. */
export interface LedgerStats {
  /** Beginning of the hour from which model calls are counted, and ends and sessions are listed. */
  readonly since: number
  /** The number of runs of each status. */
  readonly counts: Readonly<Record<RunStatus, number>>
  /** Runs that only a command continues, the newest first; for child runs, their root. */
  readonly suspended: readonly RunSummary[]
  /** Runs of which something is in flight, or was when their process ended; the newest first. */
  readonly unfinished: readonly RunSummary[]
  /** Runs that have ended since then without success; the newest first. */
  readonly failed: readonly RunSummary[]
  readonly unreadable: readonly UnreadableRun[]
  /** Model calls since then, the first day first. */
  readonly spending: readonly DaySpending[]
  /**
   * Sessions with an event since then, the most expensive first, then those with most tokens, with their whole totals.
   */
  readonly sessions: readonly SessionTotals[]
}

export interface StatsQuery {
  /** Milliseconds since 1970 UTC; counted from the beginning of that hour. */
  readonly since: number
  /** The most runs of each kind, and the most sessions, to list. */
  readonly maxListed: number
}
