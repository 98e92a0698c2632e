import type { RunState } from '@tallystick/core'
import { deferredCalls, isSuspended, pendingApprovals } from '@tallystick/core'

/** Where a run stands, for people and programs. `suspended` waits for a command, `running` for whoever drives it. */
export interface RunStatus {
  readonly status: 'running' | 'suspended' | 'done'
  /** On what it is suspended, or why it is done. */
  readonly detail?: string
}

/** Reads from a state where the run stands. Whether a process drives it now, the ledger does not say. */
export function runStatus(state: RunState): RunStatus {
  if (state.phase === 'done') return { status: 'done', detail: state.reason }
  if (!isSuspended(state)) return { status: 'running' }
  const calls = [...pendingApprovals(state), ...deferredCalls(state)]
  const waiting = calls.map(({ name, toolCallId }) => `${name} ${toolCallId}`)
  if (waiting.length > 0) return { status: 'suspended', detail: waiting.join(', ') }
  return {
    status: 'suspended',
    detail: state.metLimit === undefined ? 'an input' : `the limit ${state.metLimit.limit}`,
  }
}

/** The status in words: `done: answered`, `suspended on place_order call_…`, `running`. */
export function statusText({ status, detail }: RunStatus): string {
  if (detail === undefined) return status
  return status === 'done' ? `done: ${detail}` : `suspended on ${detail}`
}
