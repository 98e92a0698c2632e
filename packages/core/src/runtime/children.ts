import type { ChildTotals } from '../events/event.ts'
import type { Signal } from '../events/signals.ts'
import { unlessEnded } from '../ledger/append-rules.ts'
import type { InboxEntry } from '../ledger/ledger.ts'
import { graceEndOf } from '../machine/budget.ts'
import { callsAwaitingChild, textContent } from '../machine/calls.ts'
import { isSuspended } from '../machine/next-action.ts'
import type { Call, ExecutingState, RunState } from '../machine/state.ts'
import { LedgerConflictError } from '../values/errors.ts'
import type { Cancel, Clock } from '../values/host.ts'
import { childRunIdOf, type RunId, type ToolCallId } from '../values/ids.ts'
import { omitUndefined } from '../values/json.ts'
import { textOfError } from '../values/text.ts'
import {
  canContinue,
  type ChildEnding,
  buildChildStart,
  type ChildStop,
  toChildStop,
  readChildEnding,
  isDescendantOf,
  leftTotals,
  readEnding,
  toSettleCommand,
} from './child-records.ts'
import { toResult, type RunResult, loadState } from './run-result.ts'
import type { RelatedRun, RelatedRuns, RuntimeParts } from './runtime-parts.ts'

/** A child run that is being driven. */
export interface DrivenChild {
  /** Starts the run, or resumes it. Returns how it stopped. */
  begin(): Promise<ChildStop>
  /** Cancels the run. Returns how it stopped. */
  cancel(reason: string): Promise<ChildStop>
  /**
   * What the parent counts of the run: what it used, where it has ended, otherwise no less than it was granted. `undefined`
   * where it is not on record, unless its start is under way.
   */
  totals(start: { readonly isUnderWay: boolean }): Promise<ChildTotals | undefined>
}

/**
 * The child runs of a runtime: starts and resumes them for their parents, takes commands down to them, and reports their
 * ends up. Each call has one child run, whose id is derived from the call.
 */
export class ChildRuns {
  readonly #parts: RuntimeParts
  readonly #runs: RelatedRuns
  /** Child runs that a call of this process awaits: their parents need no other report. */
  readonly #awaited = new Set<RunId>()

  constructor(parts: RuntimeParts, runs: RelatedRuns) {
    this.#parts = parts
    this.#runs = runs
  }

  /** The run that does the work of a call, with what the application gave the parent. */
  drive(state: ExecutingState, call: Call, context: unknown): DrivenChild {
    const { ledger } = this.#parts
    const childId = childRunIdOf(state.runId, call.toolCallId)
    const child = this.#held(state.runId, childId, context)
    let begun: Promise<unknown> | undefined
    const begin = async (): Promise<void> => {
      if (await ledger.head(childId)) child.drive({ withChildren: true })
      else {
        const prepare = async () => ({
          command: await buildChildStart(state, call, this.#parts, context),
          context,
        })
        child.start({ prepare })
      }
    }
    return {
      begin: async () => {
        begun = begin()
        await begun
        return await this.#stopOf(state, call, () => child.result)
      },
      cancel: async (reason) => {
        await begun
        if (begun === undefined && !(await ledger.head(childId))) return { kind: 'never_begun' }
        return await this.#stopOf(state, call, async () => {
          await child.send({ type: 'cancel', reason })
          return await child.result
        })
      },
      totals: async ({ isUnderWay }) => {
        const isNowhere = async () => (await ledger.head(childId).catch(() => true)) === undefined
        if (!(isUnderWay && begun !== undefined) && (await isNowhere())) return undefined
        return await leftTotals(ledger, state, call)
      },
    }
  }

  /**
   * Returns how a child run ended; `undefined` where it has not. One that waits, and has been answered, is resumed
   * first; with `withChildren`, one that is under way is taken over too, since no process drives it any more.
   */
  async resumedEnding(
    parent: RunState,
    toolCallId: ToolCallId,
    { withChildren, context }: { readonly withChildren: boolean; readonly context: unknown },
  ): Promise<ChildEnding | undefined> {
    const { ledger } = this.#parts
    const childId = childRunIdOf(parent.runId, toolCallId)
    const child = this.#held(parent.runId, childId, context)
    if ((await canContinue(ledger, childId, withChildren)) && !this.#runs.isDrained) {
      await child.resume({ withChildren }).catch(unlessDrivenElsewhere)
    }
    return await this.recordedEnding(parent, toolCallId)
  }

  /** Returns how the child run of a call ended, as its ledger says; `undefined` where it has not. */
  async recordedEnding(parent: RunState, toolCallId: ToolCallId): Promise<ChildEnding | undefined> {
    const ending = await readChildEnding(this.#parts.ledger, childRunIdOf(parent.runId, toolCallId))
    return ending && (await readEnding(parent, toolCallId, ending, this.#parts))
  }

  /** Forwards a command to a child run of `root`, at any depth; drops it if `childId` is not one. */
  async forward(entry: InboxEntry, childId: RunId, root: RunId): Promise<void> {
    if (await this.isDescendantOf(childId, root)) await this.#put(childId, entry)
  }

  /** Whether a run is a child run of another, at any depth. */
  isDescendantOf(runId: RunId, root: RunId): Promise<boolean> {
    return isDescendantOf(this.#parts.ledger, runId, root)
  }

  /**
   * Reports a child run that has ended to its parent: settles the call that awaits it, and resumes a parent that waited
   * for nothing else. A parent that awaits the child in this process, or that has ended itself, gets no report.
   */
  async reportEnd(child: RunState, context: unknown): Promise<void> {
    const { parent, runId } = child
    if (parent?.relation !== 'child' || this.#awaited.has(runId)) return
    const { ledger, host } = this.#parts
    const head = await ledger.head(parent.runId)
    const state = await loadState(ledger, parent.runId)
    if (state === undefined) return
    const awaiting = callAwaitingChild(state, runId)
    const stop = toChildStop(toResult(child))
    if (awaiting === undefined || stop.kind !== 'ended') return
    const command = toSettleCommand(awaiting.toolCallId, stop)
    await this.#put(state.runId, { key: `child ${runId}`, command, at: host.clock.now() })
    if (isSuspended(state)) await this.#resumeParent(state, head?.epoch, context)
  }

  async #resumeParent(
    { runId, agent }: RunState,
    epoch: number | undefined,
    context: unknown,
  ): Promise<void> {
    const { ledger, agents } = this.#parts
    if (agents.find(agent) === undefined || this.#runs.isDrained) return
    const parent = this.#runs.driverOf(runId)
    // A process that has taken the run over since drives it, and reads its inbox.
    if (!parent.isDrivenHere && (await ledger.head(runId))?.epoch !== epoch) return
    parent.inheritContext(context)
    await parent.resume({ withChildren: false })
    await parent.reported
  }

  #held(parentId: RunId, childId: RunId, context: unknown): RelatedRun {
    const { takesOver } = this.#runs.driverOf(parentId)
    const child = this.#runs.driverOf(childId)
    child.inheritContext(context)
    if (takesOver) child.takeOver()
    return child
  }

  async #stopOf(state: RunState, { toolCallId }: Call, result: () => Promise<RunResult>): Promise<ChildStop> {
    const childId = childRunIdOf(state.runId, toolCallId)
    this.#awaited.add(childId)
    try {
      const stop = toChildStop(await result())
      return stop.kind === 'ended' ? await readEnding(state, toolCallId, stop, this.#parts) : stop
    } finally {
      this.#awaited.delete(childId)
    }
  }

  /** Puts a command into an inbox, unless its run has ended, and has no call open any more. */
  async #put(runId: RunId, entry: InboxEntry): Promise<void> {
    await unlessEnded(this.#parts.ledger.put(runId, entry))
  }
}

/** Another process drives the run now, and reports its end. */
function unlessDrivenElsewhere(error: unknown): void {
  if (!(error instanceof LedgerConflictError)) throw error
}

/** The call of a run that waits for a child run. */
function callAwaitingChild(state: RunState, childId: RunId): Call | undefined {
  return callsAwaitingChild(state).find(({ toolCallId }) => childRunIdOf(state.runId, toolCallId) === childId)
}

/**
 * How long a cancelled child run has to record its end after the grace time, in milliseconds. A child's own grace time is
 * shorter than its parent's, so its tools are given up by then. With a slow store, the last records of it and of the runs
 * below it may still be on their way, and the usage in them has to count.
 */
const RECORD_MS = 10_000

/** The start of a call whose work an agent does. */
export interface ChildStart {
  readonly state: ExecutingState
  readonly call: Call
  readonly children: ChildRuns
  /** What the application gave the parent. */
  readonly context: unknown
  readonly clock: Clock
}

/**
 * Drives the run that does the work of a call, and posts how it stopped: `tool_ended` when it has ended, `tool_deferred`
 * when it waits for something from outside. A call that waits already, or that the cancel of its run found in doubt, is
 * only stopped. It may post more than once: the machine obeys the first report of a call that is at work.
 */
export function startChild(
  { state, call, children, context, clock }: ChildStart,
  post: (signal: Signal) => void,
): { readonly cancel: (reason: string) => void; readonly stop: () => void } {
  const { toolCallId, attempts: attempt, status } = call
  const startedAt = clock.now()
  let stopTimer: Cancel | undefined
  const end = (
    ending: Pick<ChildEnding, 'outcome' | 'content'> & { readonly child?: ChildTotals | undefined },
  ): void => {
    const { child, ...rest } = ending
    post({
      type: 'tool_ended',
      toolCallId,
      attempt,
      ...rest,
      ...omitUndefined({ child }),
      durationMs: clock.now() - startedAt,
    })
  }
  const deferCall = (): void => {
    const externalId = childRunIdOf(state.runId, toolCallId)
    post({ type: 'tool_deferred', toolCallId, attempt, externalId })
  }
  let isCancelled = false
  const listen = async (stopped: Promise<ChildStop>, isOfCancel: boolean): Promise<void> => {
    // From the cancel on, only the cancel reports that the child waits: a call deferred now would cancel it once more.
    const deferUnlessCancelled = (): void => {
      if (!isCancelled || isOfCancel) deferCall()
    }
    try {
      const found = await stopped
      if (found.kind === 'waits') return deferUnlessCancelled()
      if (found.kind === 'never_begun')
        return end({ outcome: 'cancelled', content: textContent('cancelled') })
      const { outcome, content, totals: child } = found
      end({ outcome, content, child })
    } catch (error) {
      // Another process drives the child now, and settles the call when it ends.
      if (error instanceof LedgerConflictError) return deferUnlessCancelled()
      const text = `The work could not be done: ${textOfError(error)}`
      const child = await driven.totals({ isUnderWay: false })
      end({ outcome: 'failed', content: textContent('failed', text), child })
    }
  }
  /** The child run has not recorded its end in time: the call ends, and what the child was granted counts as used. */
  const leave = async (): Promise<void> => {
    const text = 'The work was told to stop, and had not stopped in time. It may have had effects.'
    end({
      outcome: 'cancelled',
      content: textContent('cancelled', text),
      child: await driven.totals({ isUnderWay: true }),
    })
  }
  const driven = children.drive(state, call, context)
  if (status === 'started') void listen(driven.begin(), false)
  return {
    cancel(reason) {
      if (isCancelled) return
      isCancelled = true
      const now = clock.now()
      stopTimer = clock.schedule(graceEndOf(state, now) + RECORD_MS - now, () => void leave())
      void listen(driven.cancel(reason), true)
    },
    stop: () => stopTimer?.(),
  }
}

/** A run that awaits child runs. */
interface AwaitingParent {
  readonly children: ChildRuns
  /** Whether child runs that are under way are to be taken over. */
  readonly withChildren: boolean
  /** What the application gave the run. */
  readonly context: unknown
  /** Takes the command that settles a call with the ending of its child run. */
  readonly post: (settling: ReturnType<typeof toSettleCommand>) => void
  /** Whether a command for the run itself has come in. */
  readonly isAsked: () => boolean
  /** Resolves when that may have changed. */
  readonly next: () => Promise<void>
}

/**
 * Posts the endings of child runs that ended while their calls were being deferred, or while no process drove the run.
 * A child run may take long: a command for the run itself ends the wait.
 */
export async function postEndedChildren(
  state: RunState,
  { children, withChildren, context, post, isAsked, next }: AwaitingParent,
): Promise<void> {
  if (isAsked()) return
  const endings = Promise.all(
    callsAwaitingChild(state).map(async ({ toolCallId }) => {
      const ending = await children.resumedEnding(state, toolCallId, { withChildren, context })
      if (ending) post(toSettleCommand(toolCallId, ending))
    }),
  ).then(() => 'all' as const)
  // After an interruption the run asks again, and finds the children as they are then.
  while ((await Promise.race([endings, next()])) !== 'all') {
    if (isAsked()) return
  }
}
