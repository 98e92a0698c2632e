import type { PendingApproval, RunId, RunState } from '@tallystick/core'
import type { LimitName } from '@tallystick/core/vocabulary'
import { isSuspended, openTurnCalls } from '@tallystick/core/machine'
import type { NamedCall, RunSummary } from '@tallystick/ledger'
import type { ChildWait } from './waits.ts'
import { oneLine } from '../view/text/content-text.ts'

/** Each status of a run; `unreadable` is that of a run that cannot be read. */
export const runStatuses = ['done', 'suspended', 'under_way', 'interrupted', 'unreadable'] as const

/**
 * The status of a run, for people and programs.
 * - `done`: with the reason, and what was said about it
 * - `suspended`: waits for a command
 * - `under_way`: work of it is under way, and a process drives it
 * - `interrupted`: work of it was under way at its last event, and no process drives it
 * - `continued`: shown at an earlier event, at which work of it was under way
 */
export interface RunStatusView {
  readonly status: Exclude<(typeof runStatuses)[number], 'unreadable'> | 'continued'
  /** Why it is done. */
  readonly reason?: string
  /** What was said about its end, what it is suspended on, or what is or was under way. */
  readonly detail?: string
}

/** A call that is waited for, and the run that asks. */
type WaitedCall = Pick<PendingApproval, 'runId' | 'toolCallId' | 'name'>

/** What a run waits for, as far as its status tells. */
export interface WaitedFor {
  readonly approvals: readonly WaitedCall[]
  readonly deferred: readonly WaitedCall[]
  readonly children: readonly ChildWait[]
}

/** What the status of a run depends on beside its own events. */
export interface Surroundings {
  readonly waits: WaitedFor
  /** Whether a process drives the run. */
  readonly isDriven: boolean
  /** Whether the run has events after the one that it is shown at. */
  readonly isPast?: boolean
}

/** Returns the status of a run. */
export function runStatusView(
  state: RunState,
  { waits, isDriven, isPast = false }: Surroundings,
): RunStatusView {
  if (state.phase === 'done') {
    const { reason, detail } = state
    return { status: 'done', reason, ...(detail !== undefined && { detail }) }
  }
  const { runId, turn, metLimit } = state
  if (isSuspended(state)) {
    return { status: 'suspended', detail: waitText(runId, waits, metLimit?.limit) }
  }
  const started = openTurnCalls(state).filter(({ status }) => status === 'started' || status === 'in_doubt')
  const work = workText({ isStreaming: state.phase === 'streaming', turn, started })
  return { status: isPast ? 'continued' : isDriven ? 'under_way' : 'interrupted', detail: work }
}

/** Returns the status of a run from its summary. `detail` is the recorded detail of its end. */
export function summaryStatusView(
  summary: RunSummary,
  { waits, isDriven, detail }: Surroundings & { readonly detail?: string | undefined },
): RunStatusView {
  const { status: statusView, reason = '', runId } = summary
  if (statusView === 'done' || statusView === 'failed') {
    return { status: 'done', reason, ...(detail !== undefined && { detail }) }
  }
  if (statusView === 'suspended') {
    return { status: 'suspended', detail: waitText(runId, waits, summary.waits.limit?.limit) }
  }
  return { status: isDriven ? 'under_way' : 'interrupted', detail: workText(summary) }
}

/** The status in words: `done: answered`, `suspended on place_order call_…`, `interrupted in the model call of turn 2`. */
export function statusText(
  { status, reason, detail }: RunStatusView,
  maxCharacters: number = Infinity,
): string {
  const more = detail === undefined ? '' : oneLine(detail, maxCharacters)
  switch (status) {
    case 'done':
      return `done: ${reason}${more === '' ? '' : ` (${more})`}`
    case 'suspended':
      return `suspended on ${more}`
    case 'under_way':
      return `under way: ${more}`
    case 'interrupted':
      return `interrupted in ${more}`
    case 'continued':
      return `under way: ${more}`
  }
}

function waitText(
  runId: RunId,
  { approvals, deferred, children }: WaitedFor,
  limit: LimitName | undefined,
): string {
  const calls = [...approvals, ...deferred].map((call) =>
    call.runId === runId ? callText(call) : `${callText(call)} of run ${call.runId}`,
  )
  const runs = children.filter(({ status }) => status !== 'suspended')
  const waiting = [...calls, ...runs.map((child) => `run ${child.runId}, which is ${child.status}`)]
  // A child run can also wait for an input, or at a limit of its own.
  if (waiting.length === 0) waiting.push(...children.map((child) => `run ${child.runId}`))
  if (waiting.length > 0) return waiting.join(', ')
  return limit === undefined ? 'an input' : `the limit ${limit}`
}

function workText({
  isStreaming,
  turn,
  started,
}: Pick<RunSummary, 'isStreaming' | 'turn' | 'started'>): string {
  if (isStreaming) return `the model call of turn ${turn}`
  if (started.length > 0) return started.map(callText).join(', ')
  return turn === 0 ? 'its beginning' : `turn ${turn}`
}

function callText({ name, toolCallId }: NamedCall): string {
  return `${name} ${toolCallId}`
}
