import { addUsage, type Usage } from '../../vocabulary/billing/usage.ts'
import type { ChildTotals } from '../../vocabulary/events/event.ts'
import { deepFreeze } from '../../vocabulary/values/deep-freeze.ts'

/** What a run has used so far. Usage holds the last known totals of every attempt, failed ones included. */
export interface Totals {
  readonly turns: number
  /** Calls that were started, each once however many attempts it took. */
  readonly toolCalls: number
  readonly toolCallsByTool: { readonly [tool: string]: number }
  /** What child runs took. Their usage and cost are in `usage` and `costUsd`. */
  readonly children: { readonly runs: number; readonly turns: number; readonly toolCalls: number }
  readonly usage: Usage
  readonly costUsd?: number
  /** The part of `usage` and `costUsd` that is not of the latest attempt, whose numbers may still be replaced. */
  readonly settledUsage: Usage
  readonly settledCostUsd?: number
  /** Of the latest attempt. */
  readonly latestUsage: Usage
}

/** The totals of a run that has used nothing yet. Frozen, since every run begins with this object. */
export const noTotals: Totals = deepFreeze({
  turns: 0,
  toolCalls: 0,
  toolCallsByTool: {},
  children: { runs: 0, turns: 0, toolCalls: 0 },
  usage: {},
  settledUsage: {},
  latestUsage: {},
})

/** What the run has used, with what others used for it: a child run, a model that sums up. */
export function withSpent(totals: Totals, usage: Usage, costUsd?: number): Totals {
  const spent = {
    ...totals,
    usage: addUsage(totals.usage, usage),
    settledUsage: addUsage(totals.settledUsage, usage),
  }
  if (costUsd === undefined) return spent
  const plus = (sum: number | undefined): number => (sum ?? 0) + costUsd
  return { ...spent, costUsd: plus(totals.costUsd), settledCostUsd: plus(totals.settledCostUsd) }
}

/** What the run has used, with a child run of it and with the child runs of that. */
export function withChildTotals(totals: Totals, child: ChildTotals): Totals {
  const { runs, turns, toolCalls } = totals.children
  const children = { runs: runs + 1, turns: turns + child.turns, toolCalls: toolCalls + child.toolCalls }
  return { ...withSpent(totals, child.usage, child.costUsd), children }
}
