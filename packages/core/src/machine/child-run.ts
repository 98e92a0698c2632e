import { idempotencyKeyOf, type RunId, type ToolCallId } from '../vocabulary/ids.ts'
import { defaultLimits, type LimitName, type Limits } from '../vocabulary/limits.ts'
import { digestOf } from './digest.ts'
import { deadlineOf } from './limit-check.ts'
import type { ExecutingState } from './state.ts'

/**
 * The run that does the work of a call: derived, so that every attempt of the call finds the same run. Shaped as a
 * UUIDv7 of its parent's time.
 */
export function childRunIdOf(runId: RunId, toolCallId: ToolCallId): RunId {
  const digest = digestOf(idempotencyKeyOf(runId, toolCallId))
  const variant = '89ab'[Number.parseInt(digest.slice(3, 4), 16) % 4]
  return `${runId.slice(0, 13)}-7${digest.slice(0, 3)}-${variant}${digest.slice(4, 7)}-${digest.slice(7, 19)}` as RunId
}

/** A child is given up before its parent gives its call up. */
const GRACE_SHARE = 0.75

/**
 * The limits of a child run: its agent's own, and never more than what its parent has left. Children that may run at
 * the same time share that evenly.
 */
export function childLimits(state: ExecutingState, toolCallId: ToolCallId, own: Limits, now: number): Limits {
  const shares = sharers(state, toolCallId)
  const inherited: { [L in LimitName]?: number } = {}
  for (const [name, left] of Object.entries(leftOf(state)) as [LimitName, number][]) {
    const share = name === 'costMaxUsd' ? left / shares : Math.floor(left / shares)
    inherited[name] = Math.min(own[name] ?? Infinity, share)
  }
  const deadline = deadlineOf(state)
  if (deadline !== undefined) {
    inherited.durationMaxMs = Math.min(own.durationMaxMs ?? Infinity, Math.max(0, deadline - now))
  }
  const graceMs = Math.floor((state.limits.graceMs ?? defaultLimits.graceMs) * GRACE_SHARE)
  return { ...own, ...inherited, graceMs: Math.min(own.graceMs ?? Infinity, graceMs) }
}

/** What the run has left of each of its limits that its children's work counts for. */
function leftOf({ limits, totals }: ExecutingState): { readonly [L in LimitName]?: number } {
  const { inputTokens = 0, outputTokens = 0 } = totals.usage
  const used = {
    turnsMax: totals.turns + totals.children.turns,
    toolCallsMax: totals.toolCalls + totals.children.toolCalls,
    tokensMax: inputTokens + outputTokens,
    inputTokensMax: inputTokens,
    outputTokensMax: outputTokens,
    costMaxUsd: totals.costUsd ?? 0,
  }
  const names = Object.keys(used) as (keyof typeof used)[]
  const left = names.flatMap((name) => {
    const max = limits[name]
    return max === undefined ? [] : [[name, Math.max(0, max - used[name])] as const]
  })
  return Object.fromEntries(left)
}

/** How many children may be at work at the same time as this one: writes run one at a time. */
function sharers({ calls }: ExecutingState, toolCallId: ToolCallId): number {
  const call = calls.find((candidate) => candidate.toolCallId === toolCallId)
  if (call?.effect !== 'read') return 1
  const open = calls.filter(({ child, status }) => child !== undefined && status !== 'settled')
  return Math.max(1, open.filter(({ effect }) => effect === 'read').length)
}
