import { LedgerConflictError } from '../../vocabulary/errors.ts'
import { childLimits } from '../../machine/limits/child-grant.ts'
import { childRunIdOf } from '../../vocabulary/values/child-run-id.ts'
import { isSuspended } from '../../machine/next/next-action.ts'
import { evolve } from '../../machine/fold/evolve.ts'
import { settledUsage } from '../../machine/limits/settled-usage.ts'
import type { Call, ExecutingState, RunState } from '../../machine/state/state.ts'
import { callsAwaitingChild } from '../../machine/state/state-views.ts'
import type { Host } from '../../ports/clock.ts'
import type { InboxEntry, Ledger } from '../../ports/ledger.ts'
import type { StartCommand } from '../../vocabulary/events/command.ts'
import type { ChildTotals, FactOf, RuntimeEvent } from '../../vocabulary/events/event.ts'
import type { RunId } from '../../vocabulary/values/ids.ts'
import { omitUndefined } from '../../vocabulary/values/omit-undefined.ts'
import type { Agent } from '../agent/agent.ts'
import { isEndedBefore } from '../../memory-ledger/append-rules.ts'
import { isAgentTool, taskOf } from '../definition/agent-tool.ts'
import {
  childStopOf,
  settleCommandOf,
  totalsOf,
  type ChildEnding,
  type ChildStop,
  type ChildRuns,
} from '../children/child-runs.ts'
import type { CoordinatorRegistry } from '../drive/coordinator-registry.ts'
import { stateOf } from '../reading/load-state.ts'
import { resultOf, type RunResult } from '../reading/run-result.ts'
import { startCommand } from './start-command.ts'

/** What child runs are driven with. */
export interface ParentOptions {
  readonly ledger: Ledger
  readonly host: Host
  readonly coordinators: () => CoordinatorRegistry
  readonly register: (agent: Agent<unknown>) => Agent<unknown>
  readonly find: (name: string) => Agent<unknown> | undefined
  readonly isDrained: () => boolean
  /** Child runs that a call of this process awaits: their parents need no other report. */
  readonly awaitedChildren: Set<RunId>
}

/** The child runs of a runtime: the same coordinators, the same ledger, one id for ever a call. */
export function childRuns(options: ParentOptions, context: unknown): ChildRuns {
  const { ledger, coordinators, register, find, isDrained, awaitedChildren } = options
  const stopOf = async (childId: RunId, result: () => Promise<RunResult>): Promise<ChildStop> => {
    awaitedChildren.add(childId)
    try {
      return childStopOf(await result())
    } finally {
      awaitedChildren.delete(childId)
    }
  }
  return {
    drive(state, call) {
      const childId = childRunIdOf(state.runId, call.toolCallId)
      const coordinator = coordinators().coordinatorOf(childId)
      coordinator.setContext(context)
      let begun: Promise<unknown> | undefined
      const begin = async (): Promise<void> => {
        if (await ledger.head(childId)) coordinator.drive({ takeOver: true })
        else
          coordinator.start(() =>
            Promise.resolve(childStartCommand(state, call, { register, find, context })),
          )
      }
      return {
        async begin() {
          begun = begin()
          await begun
          return await stopOf(childId, () => coordinator.result)
        },
        async cancel(reason) {
          await begun
          if (begun === undefined && !(await ledger.head(childId))) return { kind: 'never_begun' }
          return await stopOf(childId, async () => {
            await coordinator.send({ type: 'cancel', reason })
            return await coordinator.result
          })
        },
        totals: () => totalsSoFar(ledger, childId),
      }
    },
    async resumedEnding(childId, takeOver) {
      const coordinator = coordinators().coordinatorOf(childId)
      coordinator.setContext(context)
      if (!isDrained() && (await canContinue(ledger, childId, takeOver))) {
        await coordinator.resume({ takeOver }).catch(unlessDrivenElsewhere)
      }
      return await endingOf(ledger, childId)
    },
    recordedEnding: (childId) => endingOf(ledger, childId),
    async forward(entry, childId, root) {
      if (!(await isDescendantOf(ledger, childId, root))) return false
      return await isPut(ledger, childId, entry)
    },
  }
}

/** The command that starts the child run of a call. */
function childStartCommand(
  state: ExecutingState,
  call: Call,
  { register, find, context }: Pick<ParentOptions, 'register' | 'find'> & { readonly context: unknown },
): StartCommand {
  const childId = childRunIdOf(state.runId, call.toolCallId)
  const tool = find(state.agent)?.tools.find(({ name }) => name === call.name)
  if (tool === undefined || !isAgentTool(tool)) {
    throw new TypeError(`the agent ${state.agent} has no tool ${call.name} any more that is an agent`)
  }
  const agent = register(tool.agent)
  const limits = childLimits(call.grant ?? {}, agent.limits, state.limits)
  const command = startCommand(childId, agent, taskOf(call.input) ?? 'Go on.', {
    limits,
    register,
    context,
  })
  const { writes } = state.parent ?? {}
  const { grant } = call
  const parent = {
    runId: state.runId,
    seq: state.seq,
    relation: 'child' as const,
    ...omitUndefined({ writes, grant }),
  }
  return { ...command, limits, parent, ...omitUndefined({ subject: state.subject }) }
}

/** What a run has used, with what its model call under way is taken to have used. */
async function totalsSoFar(ledger: Ledger, childId: RunId): Promise<ChildTotals | undefined> {
  const state = await stateOf(ledger, childId)
  if (state === undefined) return undefined
  const [settled] =
    state.phase === 'streaming' && !state.attempt.failed ? settledUsage(state, 'cancelled') : []
  return totalsOf(resultOf(settled ? evolve(state, eventAfter(state, settled)) : state))
}

function eventAfter({ runId, seq, epoch, at }: RunState, fact: FactOf<'usage_updated'>): RuntimeEvent {
  return { ...fact, runId, seq: seq + 1, epoch, at, v: 1 }
}

/** Another process drives the run now, and reports its end. */
function unlessDrivenElsewhere(error: unknown): void {
  if (!(error instanceof LedgerConflictError)) throw error
}

/**
 * Whether a run that waits for an answer, its own or one of its child runs, has got one. With `takeOver`, also
 * whether one of them is under way.
 */
async function canContinue(ledger: Ledger, runId: RunId, takeOver: boolean): Promise<boolean> {
  const state = await stateOf(ledger, runId)
  if (state === undefined || state.phase === 'done') return false
  if (!isSuspended(state)) return takeOver
  if ((await ledger.inbox(runId)).length > 0) return true
  for (const { toolCallId } of callsAwaitingChild(state)) {
    if (await canContinue(ledger, childRunIdOf(runId, toolCallId), takeOver)) return true
  }
  return false
}

async function endingOf(ledger: Ledger, childId: RunId): Promise<ChildEnding | undefined> {
  const head = await ledger.head(childId)
  if (head === undefined) return undefined
  // Only a run that has ended is read whole.
  for await (const { type } of ledger.read(childId, { fromSeq: head.seq })) {
    if (type !== 'run_finished') return undefined
  }
  const state = await stateOf(ledger, childId)
  const stop: ChildStop | undefined = state && childStopOf(resultOf(state))
  return stop?.kind === 'ended' ? stop : undefined
}

/**
 * Reports a child run that has ended to its parent: settles the call that awaits it, and resumes a parent that waited
 * for nothing else. A parent that awaits the child in this process, or that has ended itself, gets no report.
 */
export async function reportToParent(
  child: RunState,
  options: ParentOptions,
  context: unknown,
): Promise<void> {
  const { parent, runId } = child
  if (parent?.relation !== 'child' || options.awaitedChildren.has(runId)) return
  const { ledger, host } = options
  const head = await ledger.head(parent.runId)
  const state = await stateOf(ledger, parent.runId)
  if (state === undefined) return
  const awaiting = callAwaitingChild(state, runId)
  const stop = childStopOf(resultOf(child))
  if (awaiting === undefined || stop.kind !== 'ended') return
  const command = settleCommandOf(awaiting.toolCallId, stop)
  const entry = { key: `child ${runId}`, command, at: host.clock.now() }
  if (!(await isPut(ledger, state.runId, entry))) return
  if (isSuspended(state)) await resumeParent(state, head?.epoch, { ...options, context })
}

/** Puts a command into an inbox; `false` where its run has ended, and has no call open any more. */
async function isPut(ledger: Ledger, runId: RunId, entry: InboxEntry): Promise<boolean> {
  try {
    await ledger.put(runId, entry)
    return true
  } catch (error) {
    if (isEndedBefore(error)) return false
    throw error
  }
}

/** The call of a run that waits for a child run. */
function callAwaitingChild(state: RunState, childId: RunId): Call | undefined {
  return callsAwaitingChild(state).find(({ toolCallId }) => childRunIdOf(state.runId, toolCallId) === childId)
}

async function resumeParent(
  { runId, agent }: RunState,
  epoch: number | undefined,
  { ledger, coordinators, find, isDrained, context }: ParentOptions & { readonly context: unknown },
): Promise<void> {
  if (find(agent) === undefined || isDrained()) return
  const coordinator = coordinators().coordinatorOf(runId)
  // A process that has taken the run over since drives it, and reads its inbox.
  if (!coordinator.driving && (await ledger.head(runId))?.epoch !== epoch) return
  coordinator.setContext(context)
  await coordinator.resume({ takeOver: false })
  await coordinator.reported
}

/** Whether a run is a child run of another, at any depth. */
export async function isDescendantOf(ledger: Ledger, runId: RunId, root: RunId): Promise<boolean> {
  let at: RunId | undefined = runId
  while (at !== undefined && at !== root) at = await parentOf(ledger, at)
  return at === root
}

async function parentOf(ledger: Ledger, runId: RunId): Promise<RunId | undefined> {
  for await (const event of ledger.read(runId, { toSeq: 1 })) {
    if (event.type === 'run_started' && event.parent?.relation === 'child') return event.parent.runId
  }
  return undefined
}
