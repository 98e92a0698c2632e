import type { ChildTotals } from '../events/event.ts'
import type { Signal } from '../events/signals.ts'
import { unlessEnded } from '../ledger/append-rules.ts'
import type { InboxEntry, Ledger } from '../ledger/ledger.ts'
import { getGraceEnd } from '../machine/limits.ts'
import { listCallsAwaitingChild, textContent } from '../machine/calls.ts'
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
  isDescendantOf,
  leftTotals,
  readAnswer,
  readRecordedEnding,
  toSettleCommand,
} from './child-records.ts'
import type { RunContext } from './run-context.ts'
import type { RunDriver } from './run-driver.ts'
import { loadState, type RunResult, toResult } from './run-result.ts'
import type { RuntimeParts } from './runtime-parts.ts'

/** A child run that is being driven. */
export interface DrivenChild {
  /** Starts the run, or resumes it. Returns how it stopped. */
  begin(): Promise<ChildStop>
  /** Cancels the run. Returns how it stopped. */
  cancel(reason: string): Promise<ChildStop>
  /**
   * The usage that the parent counts: that of the run if it has ended, otherwise no less than its grant. `undefined` if the
   * run is not on record, unless its start is under way.
   */
  totals(start: { readonly isUnderWay: boolean }): Promise<ChildTotals | undefined>
}

/** The run that does the work of a call, with what the application gave the parent. Its id is derived from the call. */
export function driveChild(
  state: ExecutingState,
  call: Call,
  parts: RuntimeParts,
  context: unknown,
): DrivenChild {
  const { ledger } = parts
  const childId = childRunIdOf(state.runId, call.toolCallId)
  const child = holdChild(state.runId, childId, parts, context)
  let begun: Promise<unknown> | undefined
  const begin = async (): Promise<void> => {
    if (await ledger.head(childId)) return child.drive({ withChildren: true })
    child.start({
      prepare: async () => ({ command: await buildChildStart(state, call, parts, context), context }),
    })
  }
  const waitForStop = async (result: () => Promise<RunResult>): Promise<ChildStop> => {
    child.isAwaited = true
    try {
      const stop = toChildStop(await result())
      return stop.kind === 'ended' ? await readAnswer(state, call.toolCallId, stop, parts) : stop
    } finally {
      child.isAwaited = false
    }
  }
  return {
    begin: async () => {
      begun = begin()
      await begun
      return await waitForStop(() => child.result)
    },
    cancel: async (reason) => {
      await begun
      if (begun === undefined && !(await ledger.head(childId))) return { kind: 'never_begun' }
      return await waitForStop(async () => {
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

function holdChild(
  parentId: RunId,
  childId: RunId,
  { runs }: Pick<RuntimeParts, 'runs'>,
  context: unknown,
): RunDriver {
  const child = runs.driverOf(childId)
  child.inheritContext(context)
  if (runs.driverOf(parentId).takesOver) child.takesOver = true
  return child
}

/** Forwards a command to a child run of `root`, at any depth; drops it if `childId` is not one. */
export async function forwardToChild(
  ledger: Ledger,
  entry: InboxEntry,
  childId: RunId,
  root: RunId,
): Promise<void> {
  // A run that has ended has no call open any more.
  if (await isDescendantOf(ledger, childId, root)) await unlessEnded(ledger.put(childId, entry))
}

/**
 * Reports a child run that has ended to its parent: settles the call that awaits it, and resumes a parent that waited
 * for nothing else. A parent that awaits the child in this process, or that has ended itself, gets no report.
 */
export async function reportChildEnd(child: RunState, parts: RuntimeParts, context: unknown): Promise<void> {
  const { parent, runId } = child
  const { ledger, host, agents, runs } = parts
  if (parent?.relation !== 'child' || runs.driverOf(runId).isAwaited) return
  const head = await ledger.head(parent.runId)
  const state = await loadState(ledger, parent.runId)
  if (state === undefined) return
  const awaiting = listCallsAwaitingChild(state).find(
    ({ toolCallId }) => childRunIdOf(state.runId, toolCallId) === runId,
  )
  const stop = toChildStop(toResult(child))
  if (awaiting === undefined || stop.kind !== 'ended') return
  const command = toSettleCommand(awaiting.toolCallId, stop)
  await unlessEnded(ledger.put(state.runId, { key: `child ${runId}`, command, at: host.clock.now() }))
  if (!isSuspended(state) || agents.find(state.agent) === undefined || runs.isDrained) return
  const waiting = runs.driverOf(state.runId)
  // A process that has taken the run over since drives it, and reads its inbox.
  if (!waiting.isDrivenHere && (await ledger.head(state.runId))?.epoch !== head?.epoch) return
  waiting.inheritContext(context)
  await waiting.resume({ withChildren: false })
  await waiting.reported
}

/**
 * How long a cancelled child run has to record its end after the grace time, in milliseconds. A child's own grace time is
 * shorter than its parent's, so its tools are given up by then. With a slow store, the last records of it and of the runs
 * below it may still be on their way, and the usage in them has to count.
 */
const RECORD_MS = 10_000

/**
 * Drives the run that does the work of a call, and posts how it stopped: `tool_ended` when it has ended, `tool_deferred`
 * when it waits for something from outside. A call that waits already, or that the cancel of its run found in doubt, is
 * only stopped. It may post more than once: the machine obeys the first report of a call that is at work.
 */
export function startChild(
  driven: DrivenChild,
  { state, call, clock }: { readonly state: ExecutingState; readonly call: Call; readonly clock: Clock },
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
  let isCancelled = false
  const listen = async (stopped: Promise<ChildStop>, isOfCancel: boolean): Promise<void> => {
    // From the cancel on, only the cancel reports that the child waits: a call deferred now would cancel it once more.
    const deferUnlessCancelled = (): void => {
      if (isCancelled && !isOfCancel) return
      const externalId = childRunIdOf(state.runId, toolCallId)
      post({ type: 'tool_deferred', toolCallId, attempt, externalId })
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
  if (status === 'started') void listen(driven.begin(), false)
  return {
    cancel(reason) {
      if (isCancelled) return
      isCancelled = true
      const now = clock.now()
      stopTimer = clock.schedule(getGraceEnd(state, now) + RECORD_MS - now, () => void leave())
      void listen(driven.cancel(reason), true)
    },
    stop: () => stopTimer?.(),
  }
}

/**
 * Posts the endings of child runs that ended while their calls were being deferred, or while no process drove the run.
 * A child run may take long: a command for the run itself ends the wait, and so does a take-over.
 */
export async function postEndedChildren(
  state: RunState,
  {
    run,
    withChildren,
    isAsked,
  }: {
    readonly run: RunContext
    /** Takes over child runs that are under way. */
    readonly withChildren: boolean
    /** True once a command for the run itself has come in, or another process has taken the run over. */
    readonly isAsked: () => boolean
  },
): Promise<void> {
  if (isAsked()) return
  const { mailbox } = run
  const endings = Promise.all(
    listCallsAwaitingChild(state).map(async ({ toolCallId }) => {
      const ending = await resumeChild(state, toolCallId, run, withChildren)
      if (ending) mailbox.post({ message: toSettleCommand(toolCallId, ending) })
    }),
  ).then(() => 'all' as const)
  // After an interruption the run asks again, and finds the children as they are then.
  while ((await Promise.race([endings, mailbox.arrival()])) !== 'all') {
    if (isAsked()) return
  }
}

/**
 * Returns how a child run ended; `undefined` where it has not. One that waits, and has been answered, is resumed
 * first; with `withChildren`, one that is under way is taken over too, since no process drives it any more.
 */
async function resumeChild(
  parent: RunState,
  toolCallId: ToolCallId,
  { parts, context }: RunContext,
  withChildren: boolean,
): Promise<ChildEnding | undefined> {
  const childId = childRunIdOf(parent.runId, toolCallId)
  const child = holdChild(parent.runId, childId, parts, context)
  if ((await canContinue(parts.ledger, childId, withChildren)) && !parts.runs.isDrained) {
    await child.resume({ withChildren }).catch((error: unknown) => {
      // Another process drives the run now, and reports its end.
      if (!(error instanceof LedgerConflictError)) throw error
    })
  }
  return await readRecordedEnding(parent, toolCallId, parts)
}
