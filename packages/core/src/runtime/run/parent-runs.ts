import { LedgerConflictError } from '../../vocabulary/errors.ts'
import { childLimits } from '../../machine/limits/child-grant.ts'
import { childRunIdOf } from '../../vocabulary/values/child-run-id.ts'
import { isSuspended } from '../../machine/next/next-action.ts'
import { evolve } from '../../machine/fold/evolve.ts'
import { settledUsage } from '../../machine/limits/settled-usage.ts'
import type { Call, ExecutingState, RunState } from '../../machine/state/state.ts'
import { parkedChildCalls } from '../../machine/state/state-views.ts'
import type { Host } from '../../ports/clock.ts'
import type { InboxEntry, Ledger } from '../../ports/ledger.ts'
import type { ChildTotals, FactOf, RuntimeEvent } from '../../vocabulary/events/event.ts'
import type { RunId } from '../../vocabulary/values/ids.ts'
import { omitUndefined } from '../../vocabulary/values/omit-undefined.ts'
import type { Agent } from '../agent/agent.ts'
import { isEndedBefore } from '../../memory-ledger/append-rules.ts'
import { isAgentTool, taskOf } from '../definition/agent-tool.ts'
import {
  restOf,
  settlingOf,
  totalsOf,
  type ChildEnding,
  type ChildRest,
  type ChildRuns,
} from '../children/child-runs.ts'
import type { HubRegistry } from '../drive/coordinator-registry.ts'
import { stateOf } from '../reading/load-state.ts'
import { resultOf, type RunResult } from '../reading/run-result.ts'
import { startCommand } from './start-command.ts'

/** What child runs are driven with. */
export interface ParentOptions {
  readonly ledger: Ledger
  readonly host: Host
  readonly hubs: () => HubRegistry
  readonly know: (agent: Agent<unknown>) => Agent<unknown>
  readonly named: (name: string) => Agent<unknown> | undefined
  readonly drained: () => boolean
  /** Child runs whose rest a call of this process waits for: nobody else need tell their parents. */
  readonly awaited: Set<RunId>
}

/** The child runs of a runtime: the same hubs, the same ledger, one id for ever a call. */
export function childRuns(options: ParentOptions, context: unknown): ChildRuns {
  const { ledger, hubs, know, named, drained, awaited } = options
  const rested = async (childId: RunId, result: () => Promise<RunResult>): Promise<ChildRest> => {
    awaited.add(childId)
    try {
      return restOf(await result())
    } finally {
      awaited.delete(childId)
    }
  }
  return {
    drive(state, call) {
      const childId = childRunIdOf(state.runId, call.toolCallId)
      const hub = hubs().hubOf(childId)
      hub.give(context)
      let begun: Promise<unknown> | undefined
      const begin = async (): Promise<void> => {
        if (await ledger.head(childId)) hub.drive({ takeOver: true })
        else hub.start(() => Promise.resolve(commandOf(state, call, childId)))
      }
      return {
        async begin() {
          begun = begin()
          await begun
          return await rested(childId, () => hub.result)
        },
        async cancel(reason) {
          await begun
          if (begun === undefined && !(await ledger.head(childId))) return { kind: 'never_begun' }
          return await rested(childId, async () => {
            await hub.send({ type: 'cancel', reason })
            return await hub.result
          })
        },
        totals: () => totalsSoFar(ledger, childId),
      }
    },
    async endingOf(childId, takeOver) {
      const hub = hubs().hubOf(childId)
      hub.give(context)
      if (!drained() && (await canGoOn(ledger, childId, takeOver))) {
        await hub.resume({ takeOver }).catch(unlessDrivenElsewhere)
      }
      return await endingOf(ledger, childId)
    },
    ended: (childId) => endingOf(ledger, childId),
    async passOn(entry, owner, root) {
      if (!(await worksFor(ledger, owner, root))) return false
      return await isPut(ledger, owner, entry)
    },
  }

  function commandOf(state: ExecutingState, call: Call, childId: RunId): ReturnType<typeof startCommand> {
    const tool = named(state.agent)?.tools.find(({ name }) => name === call.name)
    if (tool === undefined || !isAgentTool(tool)) {
      throw new TypeError(`the agent ${state.agent} has no tool ${call.name} any more that is an agent`)
    }
    const agent = know(tool.agent)
    const limits = childLimits(call.grant ?? {}, agent.limits, state.limits)
    const command = startCommand(childId, agent, taskOf(call.input) ?? 'Go on.', { limits, know, context })
    const { writes } = state.parent ?? {}
    const { grant } = call
    const parent = {
      ...{ runId: state.runId, seq: state.seq, relation: 'child' as const },
      ...omitUndefined({ writes, grant }),
    }
    return { ...command, limits, parent, ...omitUndefined({ subject: state.subject }) }
  }
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

/** Another process drives the run now: whoever it is says how it ends. */
function unlessDrivenElsewhere(error: unknown): void {
  if (!(error instanceof LedgerConflictError)) throw error
}

/**
 * Whether a run that waits for an answer, its own or one of those that work for it, has got one. With `takeOver`, also
 * whether one of them is under way.
 */
async function canGoOn(ledger: Ledger, runId: RunId, takeOver: boolean): Promise<boolean> {
  const state = await stateOf(ledger, runId)
  if (state === undefined || state.phase === 'done') return false
  if (!isSuspended(state)) return takeOver
  if ((await ledger.inbox(runId)).length > 0) return true
  for (const { toolCallId } of parkedChildCalls(state)) {
    if (await canGoOn(ledger, childRunIdOf(runId, toolCallId), takeOver)) return true
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
  const rest: ChildRest | undefined = state && restOf(resultOf(state))
  return rest?.kind === 'ended' ? rest : undefined
}

/**
 * Tells the parent of a child run that has ended: where its call was parked, it is settled, and a parent that waited
 * for nothing else is taken further. A parent that listens, or that has ended itself, hears nothing.
 */
export async function tellParent(child: RunState, options: ParentOptions, context: unknown): Promise<void> {
  const { parent, runId } = child
  if (parent?.relation !== 'child' || options.awaited.has(runId)) return
  const { ledger, host } = options
  const head = await ledger.head(parent.runId)
  const state = await stateOf(ledger, parent.runId)
  if (state === undefined) return
  const parked = parkedCall(state, runId)
  const rest = restOf(resultOf(child))
  if (parked === undefined || rest.kind !== 'ended') return
  const command = settlingOf(parked.toolCallId, rest)
  const entry = { key: `child ${runId}`, command, at: host.clock.now() }
  if (!(await isPut(ledger, state.runId, entry))) return
  if (isSuspended(state)) await takeFurther(state, head?.epoch, { ...options, context })
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
function parkedCall(state: RunState, childId: RunId): Call | undefined {
  return parkedChildCalls(state).find(({ toolCallId }) => childRunIdOf(state.runId, toolCallId) === childId)
}

async function takeFurther(
  { runId, agent }: RunState,
  epoch: number | undefined,
  { ledger, hubs, named, drained, context }: ParentOptions & { readonly context: unknown },
): Promise<void> {
  if (named(agent) === undefined || drained()) return
  const hub = hubs().hubOf(runId)
  // Whoever has taken it over since drives it, and hears of this by its inbox.
  if (!hub.driving && (await ledger.head(runId))?.epoch !== epoch) return
  hub.give(context)
  await hub.resume({ takeOver: false })
  await hub.reported
}

/** Whether a run works for another, at whatever depth. */
export async function worksFor(ledger: Ledger, runId: RunId, root: RunId): Promise<boolean> {
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
