import type { Json } from '../vocabulary/json.ts'
import type { FinishReason } from '../vocabulary/event.ts'
import type { RunId } from '../vocabulary/ids.ts'
import type { LimitName } from '../vocabulary/limits.ts'
import { present } from '../vocabulary/present.ts'
import type { Usage } from '../vocabulary/usage.ts'
import { childRunIdOf } from '../machine/child-run.ts'
import type { RunState } from '../machine/state.ts'
import { openTurnCalls } from '../machine/state-views.ts'
import { deferredCalls, pendingApprovals, type DeferredCall, type PendingApproval } from '../machine/tally.ts'
import type { Ledger } from '../ports/ledger.ts'
import type { Agent } from './agent.ts'
import { stateOf } from './load-state.ts'

/** How a run stands when it rests. Every expected ending is a result, not an exception. */
export interface RunResult<Output = unknown> {
  readonly runId: RunId
  /** `suspended`: only a command can go on, and no process needs to be alive for it. */
  readonly status: 'done' | 'suspended'
  /** Why the run ended; absent while it is suspended. */
  readonly reason?: FinishReason
  /** The limit that a suspended run waits to be raised. */
  readonly limit?: LimitName
  /** What the provider or the runtime said about the ending, where there is more to say. */
  readonly detail?: string
  /** The active agent: the one that the run was started with, or the last that took over. */
  readonly agent: string
  /** The text of the model's last message; `''` where there is none. */
  readonly text: string
  /** What the agent was asked to produce: its text, or what its schema makes of it; `undefined` where there is none. */
  readonly output: Output | undefined
  /** What the run used, its child runs included. */
  readonly usage: Usage
  /** US dollars, where prices are known. */
  readonly cost?: number
  readonly turns: number
  /** Tool calls that were started. */
  readonly toolCalls: number
  /** What child runs did: how many there were, their turns and their tool calls. */
  readonly children: { readonly runs: number; readonly turns: number; readonly toolCalls: number }
  /** Calls of the run and of its child runs that wait for a person. */
  readonly pendingApprovals: readonly PendingApproval[]
  /** Calls of the run and of its child runs that go on outside, until `runtime.settle`. */
  readonly deferredCalls: readonly DeferredCall[]
  /** The last event's number. */
  readonly seq: number
}

/** The result of a run that rests in this state, as far as its own events say. */
export function resultOf(state: RunState): RunResult<Json> {
  const { lastText: text } = state
  const { turns, toolCalls, children, usage, costUsd } = state.totals
  return {
    ...{ runId: state.runId, agent: state.agent, text, usage, turns, toolCalls, children },
    status: state.phase === 'done' ? 'done' : 'suspended',
    ...(state.phase === 'done' && present({ reason: state.reason, detail: state.detail })),
    ...(state.phase !== 'done' && present({ limit: state.metLimit?.limit })),
    output: state.output?.value ?? (state.definition.output ? undefined : text),
    ...present({ cost: costUsd }),
    pendingApprovals: pendingApprovals(state),
    deferredCalls: deferredCalls(state),
    seq: state.seq,
  }
}

/** The whole result: with what child runs wait for, and with the output as the agent's schema makes it. */
export async function wholeResult<Output>(
  state: RunState,
  ledger: Ledger,
  agent: Agent<Output> | undefined,
): Promise<RunResult<Output>> {
  const result = await withChildren(state, ledger)
  if (state.output === undefined || agent?.output === undefined) return result as RunResult<Output>
  const read = await agent.output.read(state.output.value)
  return { ...result, output: 'output' in read ? read.output : undefined }
}

/** What a run and its child runs wait for, instead of that it waits for its child runs. */
export async function withChildren(state: RunState, ledger: Ledger): Promise<RunResult<Json>> {
  const own = resultOf(state)
  const parked = openTurnCalls(state).filter(
    ({ status, child }) => status === 'deferred' && child !== undefined,
  )
  let { pendingApprovals: approvals, deferredCalls: deferred } = own
  for (const { toolCallId } of parked) {
    const child = await stateOf(ledger, childRunIdOf(state.runId, toolCallId))
    if (child === undefined || child.phase === 'done') continue
    const below = await withChildren(child, ledger)
    approvals = [...approvals, ...below.pendingApprovals]
    deferred = [...deferred.filter((call) => call.toolCallId !== toolCallId), ...below.deferredCalls]
  }
  return { ...own, pendingApprovals: approvals, deferredCalls: deferred }
}
