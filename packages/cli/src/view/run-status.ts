import type { Call, RunState } from '@tallystick/core'
import { isSuspended, openTurnCalls } from '@tallystick/core'
import type { Waits } from '../waits.ts'
import { oneLine } from './content-text.ts'

/** Where a run can stand, and a run that cannot be read. */
export const runStatuses = ['done', 'suspended', 'in_flight', 'interrupted', 'unreadable'] as const

/**
 * Where a run stands, for people and programs.
 * - `done`: with the reason, and what was said about it
 * - `suspended`: waits for a command
 * - `in_flight`: something of it is under way, or was when its process died: a ledger does not say which
 * - `interrupted`: something of it was under way, and no process has the ledger open
 */
export interface RunStatus {
  readonly status: Exclude<(typeof runStatuses)[number], 'unreadable'>
  /** Why it is done. */
  readonly reason?: string
  /** What was said about its end, what it is suspended on, or what is or was under way. */
  readonly detail?: string
}

/** What has to be known to tell where a run stands, beside its state. */
export interface Surroundings {
  readonly waits: Waits
  /** Whether a process may have the ledger open. */
  readonly isOpen: boolean
}

/** Reads where a run stands. */
export function runStatus(state: RunState, { waits, isOpen }: Surroundings): RunStatus {
  if (state.phase === 'done') {
    const { reason, detail } = state
    return { status: 'done', reason, ...(detail !== undefined && { detail }) }
  }
  if (isSuspended(state)) return { status: 'suspended', detail: waitText(state, waits) }
  return { status: isOpen ? 'in_flight' : 'interrupted', detail: workText(state) }
}

/** The status in words: `done: answered`, `suspended on place_order call_…`, `interrupted in the model call of turn 2`. */
export function statusText({ status, reason, detail }: RunStatus, charactersMax: number = Infinity): string {
  const more = detail === undefined ? '' : oneLine(detail, charactersMax)
  switch (status) {
    case 'done':
      return `done: ${reason}${more === '' ? '' : ` (${more})`}`
    case 'suspended':
      return `suspended on ${more}`
    case 'in_flight':
      return `in flight: ${more}`
    case 'interrupted':
      return `interrupted in ${more}`
  }
}

function waitText(state: RunState, { approvals, deferred, children }: Waits): string {
  const calls = [...approvals, ...deferred].map(
    ({ name, toolCallId, runId }) =>
      `${name} ${toolCallId}${runId === state.runId ? '' : ` of run ${runId}`}`,
  )
  const runs = children.filter(({ stands }) => stands !== 'suspended')
  const waiting = [...calls, ...runs.map(({ runId, stands }) => `run ${runId}, which is ${stands}`)]
  // A child run can also wait for an input, or at a limit of its own.
  if (waiting.length === 0) waiting.push(...children.map(({ runId }) => `run ${runId}`))
  if (waiting.length > 0) return waiting.join(', ')
  return state.metLimit === undefined ? 'an input' : `the limit ${state.metLimit.limit}`
}

function workText(state: RunState): string {
  if (state.phase === 'streaming') return `the model call of turn ${state.turn}`
  const started = openTurnCalls(state).filter(({ status }) => status === 'started' || status === 'in_doubt')
  if (started.length > 0) return started.map(callText).join(', ')
  return state.turn === 0 ? 'its beginning' : `turn ${state.turn}`
}

function callText({ name, toolCallId }: Call): string {
  return `${name} ${toolCallId}`
}
