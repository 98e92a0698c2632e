import {
  type Ledger,
  type PendingApproval,
  type RunId,
  RunNotFoundError,
  type RunState,
  TallystickError,
} from '@tallystick/core'
import { listCallsAwaitingChild, type DeferredCall, isRunDriven } from '@tallystick/core/internal'
import { deferredCalls, isSuspended, openTurnCalls, pendingApprovals } from '@tallystick/core/machine'
import { childRunIdOf, type LimitName, type ToolCallId } from '@tallystick/core/vocabulary'
import {
  foldTo,
  type ListedRun,
  type NamedCall,
  type RunSummary,
  runSummary,
  type UnreadableRun,
} from '@tallystick/ledger'
import type { CommandContext } from '../command/context.ts'
import { type ExitCode, exitCodeOf, exitCodes } from '../command/exit-code.ts'
import { oneLine } from '../command/text.ts'

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

/** A call of a run whose work another run does, and that waits for that run. */
interface ChildWait {
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
  const children = listCallsAwaitingChild(state).map(({ toolCallId, name }) => ({
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

/** What a run and its child runs wait for now. */
async function summaryWaits(ledger: Ledger, summary: RunSummary): Promise<WaitedFor> {
  const { runId, waits } = summary
  let approvals: WaitedFor['approvals'] = waits.approvals.map((call) => ({ ...call, runId }))
  let deferred: WaitedFor['deferred'] = waits.deferred.map((call) => ({ ...call, runId }))
  const children: ChildWait[] = []
  for (const wait of waits.children) {
    const child = await childSummary(ledger, wait.runId)
    children.push({ ...wait, status: childStatusOfSummary(child) })
    if (child === undefined || child.status === 'unreadable' || childStatusOfSummary(child) === 'done')
      continue
    const below = await summaryWaits(ledger, child)
    approvals = [...approvals, ...below.approvals]
    deferred = [...deferred, ...below.deferred]
    children.push(...below.children)
  }
  return { approvals, deferred, children }
}

async function childSummary(ledger: Ledger, runId: RunId): Promise<ListedRun | undefined> {
  try {
    return await runSummary(ledger, runId)
  } catch (error) {
    if (error instanceof RunNotFoundError) return undefined
    throw error
  }
}

function childStatusOfSummary(child: ListedRun | undefined): ChildWait['status'] {
  if (child === undefined) return 'absent'
  return child.status === 'failed' ? 'done' : child.status
}

/** Statuses to filter runs by. A failed run is done too, but did not end as wanted. */
export const listStatuses: readonly ((typeof runStatuses)[number] | 'failed')[] = [...runStatuses, 'failed']

/** A run of a list, with its status and what it waits for. */
export interface RunRow {
  readonly summary: RunSummary
  readonly statusView: RunStatusView
  readonly waits: WaitedFor
}

const nothing: WaitedFor = { approvals: [], deferred: [], children: [] }

/** Returns the row of a run: its status, the waits of its child runs, and the recorded detail of its end. */
export async function runRow(ledger: Ledger, summary: RunSummary): Promise<RunRow> {
  const waits = summary.status === 'suspended' ? await summaryWaits(ledger, summary) : nothing
  const isDriven = summary.status === 'unfinished' && (await isRunDriven(ledger, summary.runId))
  const detail = summary.hasDetail ? await endDetail(ledger, summary) : undefined
  return { summary, waits, statusView: summaryStatusView(summary, { waits, isDriven, detail }) }
}

/** What the last event of a run says about its end; it is not kept anywhere else. */
async function endDetail(ledger: Ledger, { runId, seq }: RunSummary): Promise<string | undefined> {
  try {
    for await (const event of ledger.read(runId, { fromSeq: seq, toSeq: seq })) {
      if (event.type === 'run_finished') return event.detail
    }
  } catch (error) {
    // Damage that came after the summary: verify finds it.
    if (!(error instanceof TallystickError)) throw error
  }
  return undefined
}

/** Tells of runs that cannot be read: each is named on stderr, and the exit code is that of the first. */
export class UnreadableRuns {
  readonly #context: CommandContext
  #exitCode: ExitCode | undefined

  constructor(context: CommandContext) {
    this.#context = context
  }

  report({ code, message }: UnreadableRun): void {
    const exitCode = exitCodeOf(new TallystickError(code, message))
    this.#exitCode ??= exitCode
    const { json, say } = this.#context
    say(json ? JSON.stringify({ error: { code, message, exitCode } }) : `error: ${message}`)
  }

  get exitCode(): ExitCode {
    return this.#exitCode ?? exitCodes.ok
  }
}

/** Whether a run can be read. */
export function isReadable(run: ListedRun): run is RunSummary {
  return run.status !== 'unreadable'
}
