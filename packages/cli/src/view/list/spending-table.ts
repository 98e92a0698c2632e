import type { Usage } from '@tallystick/core'
import type { ModelRef } from '@tallystick/core/vocabulary'
import { addUsage } from '@tallystick/core/vocabulary'
import type { DaySpending, SessionTotals } from '@tallystick/ledger'
import { counted } from '../text/run-ending.ts'
import { table } from '../text/table.ts'
import { timeText } from '../text/time-text.ts'


/** What one agent took of one model. */
export interface AgentSpending {
  readonly agent: string
  readonly model: ModelRef
  readonly calls: number
  readonly usage: Usage
  /** US dollars for the calls that had a price; absent where none had. */
  readonly costUsd?: number
  /** Calls that had no price. */
  readonly unpriced: number
}

/** The same on one day. */
export interface DatedSpending extends AgentSpending {
  /** Such as `2026-06-30`, in UTC. */
  readonly day: string
}

/** What each agent took of each model; the dearest first, then those with most tokens. */
export function byAgentAndModel(spending: readonly DaySpending[]): readonly AgentSpending[] {
  const lines = Map.groupBy(spending, ({ agent, model }) =>
    JSON.stringify([agent, model.provider, model.api, model.modelId]),
  )
  return [...lines.values()]
    .map((days) => days.map(({ day: _day, ...of }) => of).reduce(added))
    .sort(
      (a, b) =>
        (b.costUsd ?? 0) - (a.costUsd ?? 0) ||
        tokensOf(b) - tokensOf(a) ||
        b.calls - a.calls ||
        (a.agent < b.agent ? -1 : 1),
    )
}

/** What each agent took of each model on each day, the last day first. */
export function byDay(spending: readonly DaySpending[]): readonly DatedSpending[] {
  return spending
    .toSorted((a, b) => b.day - a.day || (a.agent < b.agent ? -1 : 1))
    .map(({ day, ...of }) => ({ day: timeText(day * dayMs).slice(0, 10), ...of }))
}

/** A table of what agents took of models, with the sum of it. */
export function spendingText(spending: readonly AgentSpending[]): string {
  if (spending.length === 0) return ''
  const heads = ['AGENT', 'MODEL', 'CALLS', 'TOKENS IN', 'TOKENS OUT', 'COST']
  const rows = spending.map((line) => [line.agent, modelText(line.model), ...spentCells(line)])
  return table([heads, ...rows, ['all', '', ...spentCells(spending.reduce(added))]])
}

/** The same, day by day. */
export function daysText(spending: readonly DatedSpending[]): string {
  if (spending.length === 0) return ''
  const heads = ['DAY', 'AGENT', 'MODEL', 'CALLS', 'TOKENS IN', 'TOKENS OUT', 'COST']
  return table([
    heads,
    ...spending.map((line) => [line.day, line.agent, modelText(line.model), ...spentCells(line)]),
  ])
}

/** A table of what sessions come to. */
export function sessionsText(sessions: readonly SessionTotals[]): string {
  if (sessions.length === 0) return ''
  const heads = ['SESSION', 'RUNS', 'TURNS', 'CALLS', 'TOKENS IN', 'TOKENS OUT', 'LAST EVENT', 'COST']
  return table([
    heads,
    ...sessions.map(({ sessionId, runs, turns, toolCalls, usage, lastAt, costUsd }) => [
      sessionId,
      `${runs}`,
      `${turns}`,
      `${toolCalls}`,
      `${usage.inputTokens ?? 0}`,
      `${usage.outputTokens ?? 0}`,
      timeText(lastAt),
      costUsd === undefined ? '' : `$${costUsd.toFixed(4)}`,
    ]),
  ])
}

function modelText({ provider, modelId }: ModelRef): string {
  return `${provider} ${modelId}`
}

function spentCells({ calls, usage, ...cost }: Omit<AgentSpending, 'agent' | 'model'>): readonly string[] {
  return [`${calls}`, `${usage.inputTokens ?? 0}`, `${usage.outputTokens ?? 0}`, costText(cost)]
}

function added(left: AgentSpending, right: AgentSpending): AgentSpending {
  const costs = [left.costUsd, right.costUsd].filter((cost) => cost !== undefined)
  return {
    agent: left.agent,
    model: left.model,
    calls: left.calls + right.calls,
    usage: addUsage(left.usage, right.usage),
    ...(costs.length > 0 && { costUsd: costs.reduce((sum, cost) => sum + cost, 0) }),
    unpriced: left.unpriced + right.unpriced,
  }
}

function tokensOf({ usage }: AgentSpending): number {
  return (usage.inputTokens ?? 0) + (usage.outputTokens ?? 0)
}

/** A cost is that of the calls with a price; how many had none is said. */
function costText({ costUsd, unpriced }: Pick<AgentSpending, 'costUsd' | 'unpriced'>): string {
  const without = unpriced === 0 ? '' : `${counted(unpriced, 'call')} without a price`
  if (costUsd === undefined) return without
  return `$${costUsd.toFixed(4)}${without === '' ? '' : ` and ${without}`}`
}
