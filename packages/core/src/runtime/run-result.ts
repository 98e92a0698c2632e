import { textOf } from '../vocabulary/content.ts'
import type { FinishReason } from '../vocabulary/event.ts'
import type { RunId } from '../vocabulary/ids.ts'
import type { Usage } from '../vocabulary/usage.ts'
import { messageAt } from '../machine/history.ts'
import type { RunState } from '../machine/state.ts'
import { deferredCalls, pendingApprovals, type DeferredCall, type PendingApproval } from '../machine/tally.ts'

/** How a run stands when it rests. Every expected ending is a result, not an exception. */
export interface RunResult {
  readonly runId: RunId
  /** `suspended`: only a command can go on, and no process needs to be alive for it. */
  readonly status: 'done' | 'suspended'
  /** Why the run ended; absent while it is suspended. */
  readonly reason?: FinishReason
  /** What the provider or the runtime said about the ending, where there is more to say. */
  readonly detail?: string
  /** The text of the model's last message; `''` where there is none. */
  readonly text: string
  /** What the agent was asked to produce: its text. */
  readonly output: string
  readonly usage: Usage
  /** US dollars, where prices are known. */
  readonly cost?: number
  readonly turns: number
  /** Tool calls that were started. */
  readonly toolCalls: number
  readonly pendingApprovals: readonly PendingApproval[]
  /** Calls that go on outside, until `runtime.settle`. */
  readonly deferredCalls: readonly DeferredCall[]
  /** The last event's number. */
  readonly seq: number
}

/** The result of a run that rests in this state. */
export function resultOf(state: RunState): RunResult {
  const text = lastText(state)
  const { turns, toolCalls, usage, costUsd } = state.totals
  return {
    runId: state.runId,
    status: state.phase === 'done' ? 'done' : 'suspended',
    ...(state.phase === 'done' && { reason: state.reason }),
    ...(state.phase === 'done' && state.detail !== undefined && { detail: state.detail }),
    ...{ text, output: text, usage },
    ...(costUsd !== undefined && { cost: costUsd }),
    ...{ turns, toolCalls },
    pendingApprovals: pendingApprovals(state),
    deferredCalls: deferredCalls(state),
    seq: state.seq,
  }
}

function lastText({ history }: RunState): string {
  for (let index = history.length - 1; index >= 0; index--) {
    const message = messageAt(history, index)
    if (message?.role === 'assistant') return textOf(message.parts)
  }
  return ''
}
