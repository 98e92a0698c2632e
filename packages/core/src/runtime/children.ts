import { type AgentTool, isAgentTool } from '../agent/agent-tool.ts'
import type { OutsideCommand, StartCommand } from '../events/commands.ts'
import type { ResultPart } from '../events/content.ts'
import type { FinishReason } from '../events/event-parts.ts'
import { isAfterEnd, type ChildTotals, type EventOf } from '../events/event.ts'
import { limitReasons } from '../events/limits.ts'
import { type Signal, toolSignalSchema } from '../events/signals.ts'
import { ignoreEnded } from '../ledger/append-rules.ts'
import type { InboxEntry, Ledger } from '../ledger/ledger.ts'
import { toEvent } from '../machine/advance.ts'
import { findCall, listCallsAwaitingChild, openTurnCalls, toTextContent } from '../machine/calls.ts'
import { evolve } from '../machine/evolve.ts'
import { assumeChildTotals, limitChild, settleUsage } from '../machine/budget.ts'
import { getGraceEnd } from '../machine/limits.ts'
import { findWakeTime, isSuspended } from '../machine/next-action.ts'
import { type Call, type ExecutingState, type RunState, withChildTotals } from '../machine/state.ts'
import { LedgerConflictError } from '../values/errors.ts'
import type { Cancel, Clock } from '../values/host.ts'
import { deriveChildRunId, type RunId, type ToolCallId } from '../values/ids.ts'
import { omitUndefined } from '../values/json.ts'
import { requireAnswer } from '../values/option.ts'
import { formatError } from '../values/text.ts'
import type { Stretch } from './drive.ts'
import type { RunContext } from './run-context.ts'
import type { RunDriver } from './run-driver.ts'
import { loadState, readResult, readStart, type RunResult, toResult } from './run-result.ts'
import type { RuntimeParts } from './runtime-parts.ts'
import { resolveOptions, startCommand, toUserMessage, withDefaults } from './start-run.ts'

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
  const childId = deriveChildRunId(state.runId, call.toolCallId)
  const { child, stretch } = holdChild(state.runId, childId, parts, context)
  let begun: Promise<unknown> | undefined
  const begin = async (): Promise<void> => {
    if (await ledger.head(childId)) return child.drive({ withChildren: true, stretch })
    child.start({
      stretch,
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
      return await readLeftTotals(ledger, state, call)
    },
  }
}

/** The driver of a child run, with what its parent hands down; it is driven for the stretch of its parent. */
function holdChild(
  parentId: RunId,
  childId: RunId,
  { runs }: Pick<RuntimeParts, 'runs'>,
  context: unknown,
): { readonly child: RunDriver; readonly stretch: Stretch | undefined } {
  const child = runs.ensureDriver(childId)
  child.inheritContext(context)
  const parent = runs.ensureDriver(parentId)
  if (parent.takesOver) child.takesOver = true
  return { child, stretch: parent.stretch }
}

/** Forwards a command to a child run of `root`, at any depth; drops it if `childId` is not one. */
export async function forwardToChild(
  ledger: Ledger,
  entry: InboxEntry,
  childId: RunId,
  root: RunId,
): Promise<void> {
  // A run that has ended has no call open any more.
  if (await isDescendantOf(ledger, childId, root)) await ignoreEnded(ledger.put(childId, entry))
}

/**
 * Reports a child run that has ended to its parent: settles the call that awaits it, and resumes a parent that waited
 * for nothing else. A parent that awaits the child in this process, or that has ended itself, gets no report.
 */
export async function reportChildEnd(child: RunState, parts: RuntimeParts, context: unknown): Promise<void> {
  const { parent, runId } = child
  const { ledger, host, agents, runs } = parts
  if (parent?.relation !== 'child' || runs.ensureDriver(runId).isAwaited) return
  const head = await ledger.head(parent.runId)
  const state = await loadState(ledger, parent.runId)
  if (state === undefined) return
  const awaiting = listCallsAwaitingChild(state).find(
    ({ toolCallId }) => deriveChildRunId(state.runId, toolCallId) === runId,
  )
  const stop = toChildStop(toResult(child))
  if (awaiting === undefined || stop.kind !== 'ended') return
  const command = toSettleCommand(awaiting.toolCallId, stop)
  await ignoreEnded(ledger.put(state.runId, { key: `child ${runId}`, command, at: host.clock.now() }))
  if (!isSuspended(state) || agents.find(state.agent) === undefined || runs.isDrained) return
  const waiting = runs.ensureDriver(state.runId)
  // A process that has taken the run over since drives it, and reads its inbox.
  if (!waiting.isDrivenHere && (await ledger.head(state.runId))?.epoch !== head?.epoch) return
  waiting.inheritContext(context)
  await waiting.resume({ withChildren: false })
  await waiting.reported
}

/**
 * How long a cancelled child run has to record its end after the grace time, in milliseconds. A child's grace time is
 * shorter than its parent's, so its tools have been given up by then. With a slow store, its last records and those of the
 * runs below it may still be on their way, and their usage has to count.
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
      const externalId = deriveChildRunId(state.runId, toolCallId)
      post({ type: 'tool_deferred', toolCallId, attempt, externalId })
    }
    try {
      const found = await stopped
      if (found.kind === 'waits') return deferUnlessCancelled()
      if (found.kind === 'never_begun')
        return end({ outcome: 'cancelled', content: toTextContent('cancelled') })
      const { outcome, content, totals: child } = found
      end({ outcome, content, child })
    } catch (error) {
      // Another process drives the child now, and settles the call when it ends.
      if (error instanceof LedgerConflictError) return deferUnlessCancelled()
      const text = `The work could not be done: ${formatError(error)}`
      const child = await driven.totals({ isUnderWay: false })
      end({ outcome: 'failed', content: toTextContent('failed', text), child })
    }
  }
  /** The child run has not recorded its end in time: the call ends, and what the child was granted counts as used. */
  const leave = async (): Promise<void> => {
    const text = 'The work was told to stop, and had not stopped in time. It may have had effects.'
    end({
      outcome: 'cancelled',
      content: toTextContent('cancelled', text),
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
 * Returns how a child run ended; `undefined` if it has not. One that waits, and has been answered, is resumed
 * first; with `withChildren`, one that is under way is taken over too, since no process drives it any more.
 */
async function resumeChild(
  parent: RunState,
  toolCallId: ToolCallId,
  { parts, context }: RunContext,
  withChildren: boolean,
): Promise<ChildEnding | undefined> {
  const childId = deriveChildRunId(parent.runId, toolCallId)
  const { child, stretch } = holdChild(parent.runId, childId, parts, context)
  const about = { withChildren, now: parts.host.clock.now() }
  if ((await canContinue(parts.ledger, childId, about)) && !parts.runs.isDrained) {
    await child.resume({ withChildren, stretch }).catch((error: unknown) => {
      // Another process drives the run now, and reports its end.
      if (!(error instanceof LedgerConflictError)) throw error
    })
  }
  return await readRecordedEnding(parent, toolCallId, parts)
}

/** How a child run has stopped: it waits for something from outside, was never begun, or has ended. */
export type ChildStop =
  | { readonly kind: 'waits' }
  | { readonly kind: 'never_begun' }
  | {
      readonly kind: 'ended'
      readonly outcome: 'success' | 'failed' | 'cancelled'
      readonly content: readonly ResultPart[]
      readonly totals: ChildTotals
    }

type ChildEnding = Extract<ChildStop, { readonly kind: 'ended' }>

/** The command that settles a call of the parent with the ending of its child run. */
export function toSettleCommand(
  toolCallId: string,
  { outcome, content, totals: child }: ChildEnding,
): Extract<OutsideCommand, { readonly type: 'settle' }> {
  return { type: 'settle', toolCallId, outcome: outcome === 'success' ? 'success' : 'failed', content, child }
}

export function toChildStop(result: RunResult): ChildStop {
  if (result.status !== 'done') return { kind: 'waits' }
  const { outcome, text } = describeEnding(result)
  return { kind: 'ended', outcome, content: [{ type: 'text', text }], totals: toTotals(result) }
}

function toTotals(result: RunResult): ChildTotals {
  const { runId, usage, costUsd, turns, toolCalls, children } = result
  return {
    runId,
    usage,
    turns: turns + children.turns,
    toolCalls: toolCalls + children.toolCalls,
    ...(costUsd !== undefined && { costUsd }),
  }
}

/** Reasons of a run that stopped at a limit, and may have written down what it had. */
const limited: ReadonlySet<FinishReason> = new Set([...Object.values(limitReasons), 'stopped' as const])

function describeEnding({ reason = 'model_failed', detail, text }: RunResult): {
  readonly outcome: 'success' | 'failed' | 'cancelled'
  readonly text: string
} {
  if (reason === 'answered')
    return { outcome: 'success', text: text === '' ? 'The work is done, and its answer is empty.' : text }
  const why = detail === undefined ? reason : `${reason}: ${detail}`
  if (reason === 'cancelled') return { outcome: 'cancelled', text: `The work was cancelled (${why}).` }
  if (limited.has(reason) && text !== '') {
    return { outcome: 'success', text: `The work was stopped early (${why}). What there was of it:\n${text}` }
  }
  const rest = text === '' ? '' : ` Its last words were:\n${text}`
  return { outcome: 'failed', text: `The work ended without an answer (${why}).${rest}` }
}

/**
 * Reads what a run has used. If it has not ended, `isFinal` is false, a model call under way counts as estimated, and so do
 * its own child runs, at any depth: no result has told the run of their usage yet.
 */
export async function readChildTotals(
  ledger: Ledger,
  runId: RunId,
): Promise<{ readonly totals: ChildTotals; readonly isFinal: boolean } | undefined> {
  let state = await loadState(ledger, runId)
  if (state === undefined) return undefined
  const isFinal = state.phase === 'done'
  state = withCallUnderWay(state)
  for (const call of openTurnCalls(state).filter(hasChildUnderWay)) {
    const totals = withChildTotals(state.totals, await readLeftTotals(ledger, state, call))
    state = { ...state, totals }
  }
  return { totals: toTotals(toResult(state)), isFinal }
}

/** Reads what a parent counts of a started child run: its usage if it has ended, otherwise no less than its grant. */
async function readLeftTotals(
  ledger: Ledger,
  parent: Pick<RunState, 'runId'>,
  call: Call,
): Promise<ChildTotals> {
  // One that cannot be read counts like one that is not there yet.
  const found = await readChildTotals(ledger, deriveChildRunId(parent.runId, call.toolCallId)).catch(
    () => undefined,
  )
  return found?.isFinal === true ? found.totals : assumeChildTotals(parent, call, found?.totals)
}

/** True for a started call whose child run counts nowhere yet. */
function hasChildUnderWay({ child, attempts, status }: Call): boolean {
  return child !== undefined && attempts > 0 && status !== 'settled'
}

function withCallUnderWay(state: RunState): RunState {
  const [settled] =
    state.phase === 'streaming' && !state.attempt.failed ? settleUsage(state, 'cancelled') : []
  if (settled === undefined) return state
  const { seq, epoch, at } = state
  return evolve(state, toEvent(settled, { runId: state.runId, seq: seq + 1, epoch, at, cause: 'controller' }))
}

/**
 * True if a run that waits for an answer, its own or one of a child run, has got one, has waited long enough, or waits for a
 * child run that has ended. With `withChildren`, also if one of them is under way.
 */
export async function canContinue(
  ledger: Ledger,
  runId: RunId,
  about: { readonly withChildren: boolean; readonly now: number },
): Promise<boolean> {
  const state = await loadState(ledger, runId)
  return state !== undefined && state.phase !== 'done' && (await isWaitOver(ledger, state, about))
}

async function isWaitOver(
  ledger: Ledger,
  state: RunState,
  about: { readonly withChildren: boolean; readonly now: number },
): Promise<boolean> {
  const { now, withChildren } = about
  if (!isSuspended(state)) return withChildren
  if ((findWakeTime(state) ?? Infinity) <= now) return true
  if ((await ledger.inbox(state.runId)).length > 0) return true
  for (const { toolCallId } of listCallsAwaitingChild(state)) {
    const child = await loadState(ledger, deriveChildRunId(state.runId, toolCallId))
    if (child === undefined) continue
    // The report of its end may be lost: its process may have died before it.
    if (child.phase === 'done' || (await isWaitOver(ledger, child, about))) return true
  }
  return false
}

/** Returns how a child run ended, as its ledger says; `undefined` if it has not. */
export async function readChildEnding(ledger: Ledger, childId: RunId): Promise<ChildEnding | undefined> {
  // Only a run that has ended is folded whole.
  if (!(await hasEnded(ledger, childId))) return undefined
  const state = await loadState(ledger, childId)
  const stop: ChildStop | undefined = state && toChildStop(toResult(state))
  return stop?.kind === 'ended' ? stop : undefined
}

/** Returns how the child run of a call ended, as its ledger says; `undefined` if it has not. */
export async function readRecordedEnding(
  parent: RunState,
  toolCallId: ToolCallId,
  parts: Pick<RuntimeParts, 'agents' | 'ledger'>,
): Promise<ChildEnding | undefined> {
  const ending = await readChildEnding(parts.ledger, deriveChildRunId(parent.runId, toolCallId))
  return ending && (await readAnswer(parent, toolCallId, ending, parts))
}

/** Looks at the last event alone; false for a run that the ledger lacks. */
export async function hasEnded(ledger: Ledger, runId: RunId): Promise<boolean> {
  const { seq = 0 } = (await ledger.head(runId)) ?? {}
  for await (const { type } of ledger.read(runId, { fromSeq: seq })) return isAfterEnd({ type })
  return false
}

/** True for a child run of `root`, at any depth. */
export async function isDescendantOf(ledger: Ledger, runId: RunId, root: RunId): Promise<boolean> {
  let at: RunId | undefined = runId
  while (at !== undefined && at !== root) {
    const start: EventOf<'run_started'> | undefined = await readStart(ledger, at)
    at = start?.parent?.relation === 'child' ? start.parent.runId : undefined
  }
  return at === root
}

/** The tool of a call whose work an agent does, as the code of its agent is now. */
function findAgentTool(
  { agent }: RunState,
  { name }: Pick<Call, 'name'>,
  { find }: Pick<RuntimeParts['agents'], 'find'>,
): AgentTool | undefined {
  const tool = find(agent)?.tools.find((each) => each.name === name)
  return tool && isAgentTool(tool) ? tool : undefined
}

/** Returns the command that starts the child run of a call. */
async function buildChildStart(
  state: ExecutingState,
  call: Call,
  { agents, defaults }: Pick<RuntimeParts, 'agents' | 'defaults'>,
  context: unknown,
): Promise<StartCommand> {
  const { register, find } = agents
  const childId = deriveChildRunId(state.runId, call.toolCallId)
  const tool = findAgentTool(state, call, { find })
  if (tool === undefined) {
    throw new TypeError(`the agent ${state.agent} has no tool ${call.name} any more that is an agent`)
  }
  const started = await tool.toTask(call.input)
  if ('fault' in started) throw new TypeError(`the input of ${call.name} no longer fits: ${started.fault}`)
  const agent = register(tool.agent)
  const own = {
    ...agent.limits,
    ...omitUndefined({ ...defaults.limits }),
    ...omitUndefined({ ...tool.limits }),
  }
  const limits = limitChild(call.grant ?? {}, own, state.limits)
  const given = resolveOptions(agent, withDefaults({}, defaults), agents)
  const command = startCommand(childId, agent, toUserMessage(started.task), {
    limits,
    given,
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
  const { subject, owner, labels, tracing, traceContent } = state
  const inherited = omitUndefined({ subject, owner, labels, tracing, traceContent })
  return { ...command, limits, parent, ...inherited }
}

/**
 * Returns the ending of a child run with what the calling model reads of its answer, where the tool of the call says so. Only the
 * process that drives the parent asks: it knows the tool.
 */
async function readAnswer(
  parent: RunState,
  toolCallId: ToolCallId,
  ending: ChildEnding,
  { agents, ledger }: Pick<RuntimeParts, 'agents' | 'ledger'>,
): Promise<ChildEnding> {
  const call = findCall(parent, toolCallId)
  const tool = call && findAgentTool(parent, call, agents)
  if (tool?.toAnswer === undefined || ending.outcome !== 'success') return ending
  const child = await loadState(ledger, deriveChildRunId(parent.runId, toolCallId))
  if (child?.phase !== 'done' || child.reason !== 'answered') return ending
  try {
    const { text, output, turns, toolCalls } = await readResult(child, ledger, agents.find(child.agent))
    const subject = `output of agentTool (${tool.name})`
    const read: unknown = requireAnswer(subject, () => tool.toAnswer?.({ text, output, turns, toolCalls }))
    const content: unknown = typeof read === 'string' ? [{ type: 'text', text: read }] : read
    const fault = toolSignalSchema({ type: 'tool_ended', outcome: 'success', content })
    if (fault) throw new TypeError(`${subject} returned neither a text nor parts of a result`)
    return { ...ending, content: content as readonly ResultPart[] }
  } catch (error) {
    const text = `The work was done, and its answer could not be read: ${formatError(error)}`
    return { ...ending, outcome: 'failed', content: toTextContent('failed', text) }
  }
}
