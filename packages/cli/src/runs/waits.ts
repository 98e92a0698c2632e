import type { Ledger, PendingApproval, RunId, RunState } from '@tallystick/core'
import type { DeferredCall } from '@tallystick/core/machine'
import type { ToolCallId } from '@tallystick/core/vocabulary'
import { callsAwaitingChild, deferredCalls, isSuspended, pendingApprovals } from '@tallystick/core/machine'
import { childRunIdOf } from '@tallystick/core/vocabulary'
import { foldTo } from '@tallystick/ledger'

/** A call of a run whose work another run does, and that waits for that run. */
export interface ChildWait {
  readonly toolCallId: ToolCallId
  readonly name: string
  /** The run that does the work. */
  readonly runId: RunId
  /** `unfinished`: something of it is in flight, or was when its process ended. `absent`: it was never begun. */
  readonly status: 'done' | 'suspended' | 'unfinished' | 'absent' | 'unreadable'
}

/** What a run and its child runs wait for, at any depth. */
export interface Waits {
  readonly approvals: readonly PendingApproval[]
  /** Calls that outside systems carry out, not child runs. */
  readonly deferred: readonly DeferredCall[]
  readonly children: readonly ChildWait[]
}

/** What a run waits for in itself. */
export function ownWaits(state: RunState): Waits {
  const children = callsAwaitingChild(state).map(({ toolCallId, name }) => ({
    ...{ toolCallId, name, runId: childRunIdOf(state.runId, toolCallId) },
    status: 'unfinished' as const,
  }))
  const working = new Set(children.map(({ toolCallId }) => toolCallId))
  return {
    approvals: pendingApprovals(state),
    deferred: deferredCalls(state).filter(({ toolCallId }) => !working.has(toolCallId)),
    children,
  }
}

/** What a run and its child runs wait for now. */
export async function waitsOf(ledger: Ledger, state: RunState): Promise<Waits> {
  const own = ownWaits(state)
  let { approvals, deferred } = own
  const children: ChildWait[] = []
  for (const wait of own.children) {
    const child = (await ledger.head(wait.runId)) && (await foldTo(ledger, wait.runId))
    children.push({ ...wait, status: childStatus(child) })
    if (child === undefined) continue
    const below = await waitsOf(ledger, child)
    approvals = [...approvals, ...below.approvals]
    deferred = [...deferred, ...below.deferred]
    children.push(...below.children)
  }
  return { approvals, deferred, children }
}

function childStatus(child: RunState | undefined): ChildWait['status'] {
  if (child === undefined) return 'absent'
  if (child.phase === 'done') return 'done'
  return isSuspended(child) ? 'suspended' : 'unfinished'
}
