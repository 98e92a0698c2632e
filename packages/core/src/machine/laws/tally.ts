import type { RuntimeEvent } from '../../vocabulary/events/event.ts'
import type { RunId, ToolCallId } from '../../vocabulary/values/ids.ts'
import { omitUndefined } from '../../vocabulary/values/omit-undefined.ts'
import type { Call, RunState } from '../state/state.ts'
import { openTurnCalls } from '../state/state-views.ts'

/** The two halves, counted. The books balance when `open` is empty. */
export interface Tally {
  readonly requests: number
  readonly results: number
  readonly open: readonly ToolCallId[]
}

/** Counts the halves in a ledger's events. */
export function tallyOf(events: Iterable<RuntimeEvent>): Tally {
  const open = new Set<ToolCallId>()
  let requests = 0
  let results = 0
  for (const event of events) {
    if (event.type === 'tool_request_ready') {
      requests++
      open.add(event.toolCallId)
    } else if (event.type === 'tool_result') {
      results++
      open.delete(event.toolCallId)
    }
  }
  return { requests, results, open: [...open] }
}

/** A call that waits for a person. */
export interface PendingApproval {
  /** The run that asks; it may be a child run. */
  readonly runId: RunId
  readonly toolCallId: ToolCallId
  readonly name: string
  /** The attempt that waits: 1, or more if a call in doubt would be started again. */
  readonly attempt: number
  readonly input: Call['input']
  /** The digest of the input, to which a decision is bound. */
  readonly inputDigest: string
  readonly reason?: string
}

/** A call that continues outside, until the application settles it. */
export interface DeferredCall {
  /** The run that waits; it may be a child run. */
  readonly runId: RunId
  readonly toolCallId: ToolCallId
  readonly name: string
  /** The input of the call, for the outside system that does its work. */
  readonly input: Call['input']
  /** The id of the call in the system outside, as its tool reported it. */
  readonly externalId: string
  /** Milliseconds since 1970 UTC, after which it counts as timed out. */
  readonly deadlineAt?: number
}

/** Returns the calls of a run that wait to be settled. */
export function deferredCalls(state: RunState): readonly DeferredCall[] {
  return openTurnCalls(state).flatMap(({ toolCallId, name, input, status, deferred }) =>
    status === 'deferred' && deferred ? [{ runId: state.runId, toolCallId, name, input, ...deferred }] : [],
  )
}

/** Returns the calls of a run that wait for a person. */
export function pendingApprovals(state: RunState): readonly PendingApproval[] {
  return openTurnCalls(state).flatMap((call) => {
    const { toolCallId, name, input, inputDigest, askReason, status, attempts } = call
    // Nobody can decide about what is not there.
    if (status !== 'awaiting_approval' || inputDigest === undefined || call.inputRemoved) return []
    const { runId } = state
    const attempt = attempts + 1
    return [{ runId, toolCallId, name, attempt, input, inputDigest, ...omitUndefined({ reason: askReason }) }]
  })
}
