import type { ModelRef } from '@tallystick/core/vocabulary'
import { addAmounts, costUsdOf, noAmounts, usageOf, type Amounts } from '../tables/amounts.ts'
import { nameOfKey } from '../tables/storable-key.ts'
import type { DaySpending, LedgerStats, SessionTotals, StatsQuery } from './stats.ts'
import { hourOf } from '../summary/run-accumulator.ts'
import {
  runStatuses,
  type ListedRun,
  type RunSummary,
  type RunStatus,
  type UnreadableRun,
} from '../summary/run-summary.ts'
import type { SessionChange, SpendingChange } from '../summary/totals-change.ts'

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
    if (hour < hourOf(this.#query.since)) return
    this.spendDay({ ...sum, day: Math.floor(hour / hoursPerDay) })
  }

  spendDay({
    day,
    agent,
    provider,
    api,
    model_id,
    ...sum
  }: Omit<SpendingChange, 'hour'> & { readonly day: number }): void {
    const key = JSON.stringify([day, agent, provider, api, model_id])
    const model = { provider: nameOfKey(provider), api: nameOfKey(api), modelId: nameOfKey(model_id) }
    const before = this.#spending.get(key) ?? { ...noAmounts, day, agent: nameOfKey(agent), model, calls: 0 }
    this.#spending.set(key, { ...before, ...addAmounts(before, sum), calls: before.calls + sum.calls })
  }

  /** Times are those that hold after the change. */
  session(change: SessionChange): void {
    const before = this.#sessions.get(change.session_id)
    this.#sessions.set(change.session_id, before ? sumOf(before, change) : change)
  }

  /** What the store says of a session, beneath what was gathered of it. */
  sessionBelow(row: SessionChange): void {
    const change = this.#sessions.get(row.session_id)
    this.#sessions.set(row.session_id, change ? sumOf(row, change) : row)
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
        .map(spendingOf)
        .sort((a, b) => a.day - b.day || (nameOf(a) < nameOf(b) ? -1 : 1)),
      sessions: [...this.#sessions.values()]
        .filter(({ runs, last_at }) => runs > 0 && last_at >= since)
        .sort(byCost)
        .slice(0, maxListed)
        .map(totalsOf),
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

function sumOf(left: SessionChange, right: SessionChange): SessionChange {
  return {
    ...right,
    ...addAmounts(left, right),
    runs: left.runs + right.runs,
    turns: left.turns + right.turns,
    tool_calls: left.tool_calls + right.tool_calls,
  }
}

function nameOf({ agent, model }: DaySpending): string {
  return JSON.stringify([agent, model.provider, model.api, model.modelId])
}

function spendingOf({ day, agent, model, calls, ...sum }: DaySum): DaySpending {
  const costUsd = costUsdOf(sum, calls)
  return {
    day,
    agent,
    model,
    calls,
    usage: usageOf(sum),
    ...(costUsd !== undefined && { costUsd }),
    unpriced: sum.unpriced,
  }
}

function totalsOf(session: SessionChange): SessionTotals {
  const { session_id, runs, started_at, last_at, turns, tool_calls } = session
  const costUsd = costUsdOf(session, runs)
  return {
    sessionId: nameOfKey(session_id),
    runs,
    startedAt: started_at,
    lastAt: last_at,
    turns,
    toolCalls: tool_calls,
    usage: usageOf(session),
    ...(costUsd !== undefined && { costUsd }),
    unpriced: session.unpriced,
  }
}

function byCost(a: SessionChange, b: SessionChange): number {
  return b.cost_nano - a.cost_nano || tokensOf(b) - tokensOf(a) || (a.session_id < b.session_id ? -1 : 1)
}

function tokensOf({ input_tokens, output_tokens }: SessionChange): number {
  return input_tokens + output_tokens
}
