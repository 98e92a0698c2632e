import type { Ledger, Usage } from '@tallystick/core'
import { omitUndefined, option, requireLedger, requireOptions } from '@tallystick/core/internal'
import { addUsage, type ModelRef } from '@tallystick/core/vocabulary'
import { orElse } from '../store/store.ts'
import {
  bringUpToDate,
  type ProjectedRuns,
  projectEveryRun,
  type ProjectionOptions,
  projectionOptions,
} from './projections.ts'
import { addSpending, hourMs, type SpendingLine, toCostNano, toCostUsd, toHour } from './run-accumulator.ts'
import type { ListedRun, RunStatus, RunSummary, UnreadableRun } from './run-summary.ts'

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
export async function readLedgerStats(
  ledger: Ledger,
  asked: StatsQuery,
  options: ProjectionOptions = {},
): Promise<LedgerStats> {
  requireLedger('readLedgerStats', ledger)
  requireOptions('readLedgerStats', statsQuery, asked)
  requireOptions('readLedgerStats', projectionOptions, options)
  const { since, maxListed } = asked
  const query = { since: toHour(since) * hourMs, maxListed }
  const current = await bringUpToDate(ledger, options)
  const found = current && (await orElse(undefined, () => readStats(current, query)))
  return found ?? (await readStats(await projectEveryRun(ledger, options), query))
}

/** Sums up a ledger from the summaries of its runs. */
export async function readStats(runs: ProjectedRuns, query: StatsQuery): Promise<LedgerStats> {
  const { since } = query
  return {
    since,
    counts: await runs.counts(),
    suspended: (await listNewest(runs, 'suspended', query)) as readonly RunSummary[],
    unfinished: (await listNewest(runs, 'unfinished', query)) as readonly RunSummary[],
    failed: (await listNewest(runs, 'failed', query)) as readonly RunSummary[],
    unreadable: (await listNewest(runs, 'unreadable', query)) as readonly UnreadableRun[],
    ...(await sumUp(runs, query)),
  }
}

/** Lists the newest runs of a status that may need a person. */
async function listNewest(
  runs: ProjectedRuns,
  status: RunStatus,
  { since, maxListed }: StatsQuery,
): Promise<readonly ListedRun[]> {
  const listed: ListedRun[] = []
  const places = await runs.find({ statuses: [status], ...(status === 'failed' && { since }) })
  for await (const { summary } of runs.read(places)) {
    if (listed.length >= maxListed) break
    // A root run waits for all of its child runs.
    const isChild = status === 'suspended' && 'parent' in summary && summary.parent?.relation === 'child'
    if (!isChild) listed.push(summary)
  }
  return listed
}

/** Adds up what was spent since then, and the totals of the sessions that had an event since then. */
async function sumUp(
  runs: ProjectedRuns,
  { since, maxListed }: StatsQuery,
): Promise<Pick<LedgerStats, 'spending' | 'sessions'>> {
  const days = new Map<string, SpendingLine & { readonly day: number }>()
  const sessionIds = new Set<string>()
  for await (const { summary, spending } of runs.read(await runs.find({ since }))) {
    if ('sessionId' in summary && summary.sessionId !== undefined) sessionIds.add(summary.sessionId)
    for (const line of spending) {
      if (line.hour < toHour(since)) continue
      const day = Math.floor(line.hour / hoursPerDay)
      const key = JSON.stringify([day, nameLine(line)])
      const before = days.get(key)
      days.set(key, { ...line, day, ...(before && addSpending(before, line)) })
    }
  }
  const sessions = new Map<string, SessionSum>()
  for await (const { summary } of runs.read(await runs.find({ sessionIds }))) {
    if (summary.status !== 'unreadable') addRun(sessions, summary)
  }
  return {
    spending: [...days.values()]
      .sort((a, b) => a.day - b.day || (nameLine(a) < nameLine(b) ? -1 : 1))
      .map(({ hour: _hour, costNano, ...line }) => ({
        ...line,
        ...omitUndefined({ costUsd: toCostUsd(costNano, line.unpriced, line.calls) }),
      })),
    sessions: [...sessions.values()]
      .sort(compareByCost)
      .slice(0, maxListed)
      .map(({ costNano, ...session }) => ({
        ...session,
        ...omitUndefined({ costUsd: toCostUsd(costNano, session.unpriced, session.runs) }),
      })),
  }
}

const hoursPerDay = 24

function nameLine({ agent, model }: SpendingLine): string {
  return JSON.stringify([agent, model.provider, model.api, model.modelId])
}

type SessionSum = SessionTotals & { readonly costNano: number }

function addRun(sessions: Map<string, SessionSum>, run: RunSummary): void {
  const { sessionId = '', startedAt, lastAt, turns, toolCalls, children, usage, costUsd } = run
  const before = sessions.get(sessionId)
  sessions.set(sessionId, {
    sessionId,
    runs: (before?.runs ?? 0) + 1,
    startedAt: Math.min(before?.startedAt ?? startedAt, startedAt),
    lastAt: Math.max(before?.lastAt ?? lastAt, lastAt),
    turns: (before?.turns ?? 0) + turns + children.turns,
    toolCalls: (before?.toolCalls ?? 0) + toolCalls + children.toolCalls,
    usage: addUsage(before?.usage ?? {}, usage),
    costNano: (before?.costNano ?? 0) + toCostNano(costUsd),
    unpriced: (before?.unpriced ?? 0) + (costUsd === undefined ? 1 : 0),
  })
}

function compareByCost(a: SessionSum, b: SessionSum): number {
  return b.costNano - a.costNano || countTokens(b) - countTokens(a) || (a.sessionId < b.sessionId ? -1 : 1)
}

function countTokens({ usage: { inputTokens = 0, outputTokens = 0 } }: SessionSum): number {
  return inputTokens + outputTokens
}

/** Model calls of one agent and model on one day. */
export interface DaySpending {
  /** Days since 1970 UTC. */
  readonly day: number
  readonly agent: string
  readonly model: ModelRef
  readonly calls: number
  readonly usage: Usage
  /** US dollars for the calls that had a price; absent if none had. */
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
  /** US dollars of the runs that have a cost; absent if none has. */
  readonly costUsd?: number
  /** Runs that have no cost. */
  readonly unpriced: number
}

/** Statistics of the runs of a ledger. */
export interface LedgerStats {
  /** Beginning of the hour from which model calls are counted, and ends and sessions are listed. */
  readonly since: number
  readonly counts: Readonly<Record<RunStatus, number>>
  /** Runs that only a command continues, the newest first; for child runs, their root. */
  readonly suspended: readonly RunSummary[]
  /** Runs with work in flight, or with work that was in flight when their process ended; the newest first. */
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
