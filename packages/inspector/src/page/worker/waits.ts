import type { RunState } from '@tallystick/core'
import { listDeferredCalls, listPendingApprovals } from '@tallystick/core/machine'
import { type Approver, type Approvers, toCanonicalJson } from '@tallystick/core/vocabulary'

/** What a run waits for at its last event, and what may be done about it. */
export interface Waits {
  readonly isDone: boolean
  readonly agent: string
  readonly sessionId?: string
  readonly approvals: readonly PendingDecision[]
  readonly deferred: readonly DeferredWork[]
  readonly limit?: { readonly limit: string; readonly max?: number }
  readonly tools: readonly string[]
  readonly instructions: string
}

/** A call that a person has to decide about. */
export interface PendingDecision {
  readonly toolCallId: string
  readonly name: string
  readonly attempt: number
  readonly inputDigest: string
  /** The whole input as canonical JSON: what is approved. */
  readonly input: string
  readonly reason?: string
  /** Who has to approve, where not anybody may, and who has. */
  readonly approvers: readonly Approvers[]
  readonly approvals: readonly Approver[]
}

/** A call that an outside system carries out. */
export interface DeferredWork {
  readonly toolCallId: string
  readonly name: string
  readonly externalId: string
}

export function describeWaits(state: RunState): Waits {
  const { phase, agent, sessionId, definition, metLimit, limits } = state
  const max = metLimit && (limits as Readonly<Record<string, unknown>>)[metLimit.limit]
  return {
    isDone: phase === 'done',
    agent,
    ...(sessionId !== undefined && { sessionId }),
    approvals: listPendingApprovals(state).map(
      ({ toolCallId, name, attempt, inputDigest, input, reason, approvers = [], approvals = [] }) => ({
        toolCallId,
        name,
        attempt,
        inputDigest,
        input: toCanonicalJson(input),
        approvers,
        approvals,
        ...(reason !== undefined && { reason }),
      }),
    ),
    deferred: listDeferredCalls(state).map(({ toolCallId, name, externalId }) => ({
      toolCallId,
      name,
      externalId,
    })),
    ...(metLimit && { limit: { limit: metLimit.limit, ...(typeof max === 'number' && { max }) } }),
    tools: definition.tools.map(({ name }) => name),
    instructions: definition.instructions,
  }
}
