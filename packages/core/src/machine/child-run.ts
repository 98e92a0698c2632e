import { idempotencyKeyOf, type RunId, type ToolCallId } from '../vocabulary/ids.ts'
import type { LimitName, Limits } from '../vocabulary/limits.ts'
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
  const call = state.calls.find((candidate) => candidate.toolCallId === toolCallId)
  const open = state.calls.filter(({ child, status }) => child !== undefined && status !== 'settled')
  const beside = call?.effect === 'read' ? open.filter(({ effect }) => effect === 'read').length : 1
  const { limits, totals } = state
  const { inputTokens = 0, outputTokens = 0 } = totals.usage
  const deadline = deadlineOf(state)
  const left: { readonly [L in LimitName]?: number | undefined } = {
    turnsMax: less(limits.turnsMax, totals.turns + totals.children.turns),
    toolCallsMax: less(limits.toolCallsMax, totals.toolCalls + totals.children.toolCalls),
    tokensMax: less(limits.tokensMax, inputTokens + outputTokens),
    inputTokensMax: less(limits.inputTokensMax, inputTokens),
    outputTokensMax: less(limits.outputTokensMax, outputTokens),
    costMaxUsd: less(limits.costMaxUsd, totals.costUsd ?? 0),
  }
  const shared: { [L in LimitName]?: number } = {}
  for (const [name, amount] of Object.entries(left) as [LimitName, number | undefined][]) {
    if (amount === undefined) continue
    const share = amount / Math.max(1, beside)
    shared[name] = Math.min(own[name] ?? Infinity, name === 'costMaxUsd' ? share : Math.floor(share))
  }
  const durationMaxMs = Math.min(
    own.durationMaxMs ?? Infinity,
    deadline === undefined ? Infinity : Math.max(0, deadline - now),
  )
  return {
    ...own,
    ...shared,
    ...(Number.isFinite(durationMaxMs) && { durationMaxMs }),
    ...(limits.graceMs !== undefined && {
      graceMs: Math.min(own.graceMs ?? Infinity, Math.floor(limits.graceMs * GRACE_SHARE)),
    }),
  }
}

function less(max: number | undefined, used: number): number | undefined {
  return max === undefined ? undefined : Math.max(0, max - used)
}
