import { addAmounts, amountColumns, noAmounts, type Amounts } from '../tables/amounts.ts'
import { storableKey } from '../tables/storable-key.ts'
import { spendingKey, type SpendingLine } from './run-accumulator.ts'
import type { Shares, SummaryRecord } from './summary-record.ts'

/** What a session's totals gain or lose, and when its runs began and continued then. */
export interface SessionChange extends Amounts {
  readonly session_id: string
  readonly runs: number
  readonly started_at: number
  readonly last_at: number
  readonly turns: number
  readonly tool_calls: number
}

/** What the totals of an hour, agent and model gain or lose. */
export interface SpendingChange extends Amounts {
  readonly hour: number
  readonly agent: string
  readonly provider: string
  readonly api: string
  readonly model_id: string
  readonly calls: number
}

/** What totals gain or lose. */
export interface TotalsChange {
  readonly sessions: readonly SessionChange[]
  readonly spending: readonly SpendingChange[]
}

/** What one run adds to totals, and when it began and continued. */
export interface TimedShares {
  readonly shares: Shares
  readonly startedAt: number
  readonly lastAt: number
}

/** What a record adds to totals. */
export function timedShares({ shares, summary }: SummaryRecord): TimedShares {
  const { startedAt, lastAt } = 'startedAt' in summary ? summary : { startedAt: 0, lastAt: 0 }
  return { shares, startedAt, lastAt }
}

/** When the runs of a session began and continued. */
export interface SessionTimes {
  readonly started_at: number
  readonly last_at: number
}

/** Gathers what totals gain and lose when runs come in the place of what was known of them. */
export class TotalsAccumulator {
  readonly #sessions = new Map<string, SessionChange>()
  readonly #spending = new Map<string, SpendingChange>()

  add({ shares, ...times }: TimedShares): void {
    this.#count(shares, 1)
    const { session } = shares
    if (session)
      this.within(storableKey(session.sessionId), { started_at: times.startedAt, last_at: times.lastAt })
  }

  remove({ shares }: Pick<TimedShares, 'shares'>): void {
    this.#count(shares, -1)
  }

  /** The keys of the sessions that are concerned. */
  get sessionKeys(): readonly string[] {
    return [...this.#sessions.keys()]
  }

  /** Some of a session's runs began and continued then. */
  within(key: string, { started_at, last_at }: SessionTimes): void {
    const line = this.#sessions.get(key) ?? emptySession(key)
    const earlier = line.last_at === 0 ? started_at : Math.min(line.started_at, started_at)
    this.#sessions.set(key, { ...line, started_at: earlier, last_at: Math.max(line.last_at, last_at) })
  }

  /** What has changed, with lines in which nothing has left out. */
  get change(): TotalsChange {
    return {
      sessions: [...this.#sessions.values()],
      spending: [...this.#spending.values()].filter(isChange),
    }
  }

  #count({ session, spending }: Shares, sign: 1 | -1): void {
    for (const line of spending) this.#countSpending(line, sign)
    if (session === undefined) return
    const { sessionId, turns, toolCalls, amounts } = session
    const key = storableKey(sessionId)
    const before = this.#sessions.get(key) ?? emptySession(key)
    this.#sessions.set(key, {
      ...before,
      ...addAmounts(before, amounts, sign),
      runs: before.runs + sign,
      turns: before.turns + sign * turns,
      tool_calls: before.tool_calls + sign * toolCalls,
    })
  }

  #countSpending(line: SpendingLine, sign: 1 | -1): void {
    const key = spendingKey(line)
    const before = this.#spending.get(key) ?? emptySpending(line)
    this.#spending.set(key, {
      ...before,
      ...addAmounts(before, line.amounts, sign),
      calls: before.calls + sign * line.calls,
    })
  }
}

function emptySession(session_id: string): SessionChange {
  return { ...noAmounts, session_id, runs: 0, started_at: 0, last_at: 0, turns: 0, tool_calls: 0 }
}

function emptySpending({ hour, agent, model }: SpendingLine): SpendingChange {
  const [key, provider, api, model_id] = [agent, model.provider, model.api, model.modelId].map(storableKey)
  return {
    ...noAmounts,
    hour,
    calls: 0,
    agent: key ?? '',
    provider: provider ?? '',
    api: api ?? '',
    model_id: model_id ?? '',
  }
}

function isChange(change: SpendingChange): boolean {
  return change.calls !== 0 || amountColumns.some((column) => change[column] !== 0)
}
