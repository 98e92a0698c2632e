import {
  type Ledger,
  type PendingApproval,
  type RunId,
  RunNotFoundError,
  type RunState,
  TallystickError,
} from '@tallystick/core'
import { listCallsAwaitingChild, type DeferredCall, isRunDriven } from '@tallystick/core/internal'
import { listDeferredCalls, isSuspended, openTurnCalls, listPendingApprovals } from '@tallystick/core/machine'
import { deriveChildRunId, type LimitName, type ToolCallId } from '@tallystick/core/vocabulary'
import { foldTo, type ListedRun, type NamedCall, type RunSummary, readRunSummary } from '@tallystick/ledger'
import { toOneLine } from '../command/text.ts'

export const runStatuses = ['done', 'suspended', 'under_way', 'interrupted', 'unreadable'] as const

/**
 * The status of a run, for people and programs.
 * - `done`: with the reason, and what was said about it
 * - `suspended`: waits for a command
 * - `under_way`: it works, and a process drives it
 * - `interrupted`: it worked at its last event, and no process drives it
 * - `continued`: shown at an earlier event, at which it worked
 */
export interface RunStatusView {
  readonly status: Exclude<(typeof runStatuses)[number], 'unreadable'> | 'continued'
  /** Why it is done. */
  readonly reason?: string
  /** The detail of its end, what it is suspended on, or what it is or was working on. */
  readonly detail?: string
}

/** The waits of a run and its child runs, at any depth. */
export interface Waits<Approval = PendingApproval, Deferred = DeferredCall> {
  readonly approvals: readonly Approval[]
  /** Calls that outside systems carry out; calls that child runs carry out are `children`. */
  readonly deferred: readonly Deferred[]
  readonly children: readonly ChildWait[]
}

type WaitedCall = Pick<PendingApproval, 'runId' | 'toolCallId' | 'name'>

/** The waits that a status names. */
export type WaitedFor = Waits<WaitedCall, WaitedCall>

/** A call that a child run carries out. */
interface ChildWait {
  readonly toolCallId: ToolCallId
  readonly name: string
  readonly runId: RunId
  /** `unfinished`: something of it is in flight, or was when its process ended. `absent`: it was never begun. */
  readonly status: 'done' | 'suspended' | 'unfinished' | 'absent' | 'unreadable'
}

/** Facts that the status of a run depends on, besides its own events. */
export interface Surroundings {
  readonly waits: WaitedFor
  /** True if a process drives the run. */
  readonly isDriven: boolean
  /** True if the run has events after the one that it is shown at. */
  readonly isPast?: boolean
}

export function toStatusView(
  state: RunState,
  { waits, isDriven, isPast = false }: Surroundings,
): RunStatusView {
  if (state.phase === 'done') {
    const { reason, detail } = state
    return { status: 'done', reason, ...(detail !== undefined && { detail }) }
  }
  const { runId, turn, metLimit } = state
  if (isSuspended(state)) {
    return { status: 'suspended', detail: formatWait(runId, waits, metLimit?.limit) }
  }
  const started = openTurnCalls(state).filter(({ status }) => status === 'started' || status === 'in_doubt')
  const work = formatWork({ isStreaming: state.phase === 'streaming', turn, started })
  return { status: isPast ? 'continued' : isDriven ? 'under_way' : 'interrupted', detail: work }
}

/** Returns the status of a run from its summary. `detail` is the recorded detail of its end. */
export function toSummaryStatusView(
  summary: RunSummary,
  { waits, isDriven, detail }: Surroundings & { readonly detail?: string | undefined },
): RunStatusView {
  const { status, reason = '', runId } = summary
  if (status === 'done' || status === 'failed') {
    return { status: 'done', reason, ...(detail !== undefined && { detail }) }
  }
  if (status === 'suspended') {
    return { status: 'suspended', detail: formatWait(runId, waits, summary.waits.limit?.limit) }
  }
  return { status: isDriven ? 'under_way' : 'interrupted', detail: formatWork(summary) }
}

/** The status in words: `done: answered`, `suspended on place_order call_…`, `interrupted in the model call of turn 2`. */
export function formatStatus(
  { status, reason, detail }: RunStatusView,
  maxCharacters: number = Infinity,
): string {
  const more = detail === undefined ? '' : toOneLine(detail, maxCharacters)
  switch (status) {
    case 'done':
      return `done: ${reason}${more === '' ? '' : ` (${more})`}`
    case 'suspended':
      return `suspended on ${more}`
    case 'under_way':
    case 'continued':
      return `under way: ${more}`
    case 'interrupted':
      return `interrupted in ${more}`
  }
}

function formatWait(
  runId: RunId,
  { approvals, deferred, children }: WaitedFor,
  limit: LimitName | undefined,
): string {
  const calls = [...approvals, ...deferred].map((call) =>
    call.runId === runId ? formatCall(call) : `${formatCall(call)} of run ${call.runId}`,
  )
  const runs = children.filter(({ status }) => status !== 'suspended')
  const waiting = [...calls, ...runs.map((child) => `run ${child.runId}, which is ${child.status}`)]
  // A child run can also wait for an input, or at a limit of its own.
  if (waiting.length === 0) waiting.push(...children.map((child) => `run ${child.runId}`))
  if (waiting.length > 0) return waiting.join(', ')
  return limit === undefined ? 'an input' : `the limit ${limit}`
}

function formatWork({
  isStreaming,
  turn,
  started,
}: Pick<RunSummary, 'isStreaming' | 'turn' | 'started'>): string {
  if (isStreaming) return `the model call of turn ${turn}`
  if (started.length > 0) return started.map(formatCall).join(', ')
  return turn === 0 ? 'its beginning' : `turn ${turn}`
}

function formatCall({ name, toolCallId }: NamedCall): string {
  return `${name} ${toolCallId}`
}

/** Reads what a run and its child runs wait for now, from their states. */
export function readWaits(ledger: Ledger, state: RunState): Promise<Waits> {
  return withWaitsBelow(listOwnWaits(state), async (runId) => {
    const child = (await ledger.head(runId)) && (await foldTo(ledger, runId))
    if (child === undefined) return { status: 'absent' }
    const status = child.phase === 'done' ? 'done' : isSuspended(child) ? 'suspended' : 'unfinished'
    return { status, own: listOwnWaits(child) }
  })
}

/** Reads what a run and its child runs wait for now, from their summaries. */
function readSummaryWaits(ledger: Ledger, summary: RunSummary): Promise<WaitedFor> {
  const own = ({ runId, waits }: RunSummary): WaitedFor => ({
    approvals: waits.approvals.map((call) => ({ ...call, runId })),
    deferred: waits.deferred.map((call) => ({ ...call, runId })),
    children: waits.children.map((child) => ({ ...child, status: 'unfinished' })),
  })
  return withWaitsBelow(own(summary), async (runId) => {
    try {
      const child = await readRunSummary(ledger, runId)
      if (!isReadable(child)) return { status: 'unreadable' }
      const { status } = child
      return status === 'done' || status === 'failed' ? { status: 'done' } : { status, own: own(child) }
    } catch (error) {
      if (error instanceof RunNotFoundError) return { status: 'absent' }
      throw error
    }
  })
}

/** Lists the waits of the run itself. */
export function listOwnWaits(state: RunState): Waits {
  const children = listCallsAwaitingChild(state).map(({ toolCallId, name }) => ({
    ...{ toolCallId, name, runId: deriveChildRunId(state.runId, toolCallId) },
    status: 'unfinished' as const,
  }))
  const working = new Set(children.map(({ toolCallId }) => toolCallId))
  return {
    approvals: listPendingApprovals(state),
    deferred: listDeferredCalls(state).filter(({ toolCallId }) => !working.has(toolCallId)),
    children,
  }
}

async function withWaitsBelow<Approval, Deferred>(
  own: Waits<Approval, Deferred>,
  readChild: (
    runId: RunId,
  ) => Promise<Pick<ChildWait, 'status'> & { readonly own?: Waits<Approval, Deferred> }>,
): Promise<Waits<Approval, Deferred>> {
  let { approvals, deferred } = own
  const children: ChildWait[] = []
  for (const wait of own.children) {
    const child = await readChild(wait.runId)
    children.push({ ...wait, status: child.status })
    if (child.own === undefined) continue
    const below = await withWaitsBelow(child.own, readChild)
    approvals = [...approvals, ...below.approvals]
    deferred = [...deferred, ...below.deferred]
    children.push(...below.children)
  }
  return { approvals, deferred, children }
}

/** Statuses to filter runs by. A failed run is done, but did not end as wanted. */
export const listStatuses: readonly ((typeof runStatuses)[number] | 'failed')[] = [...runStatuses, 'failed']

/** A run of a list, with its status and what it waits for. */
export interface RunRow {
  readonly summary: RunSummary
  readonly statusView: RunStatusView
  readonly waits: WaitedFor
}

/** Reads the row of a run: its status, the waits of its child runs, and the recorded detail of its end. */
export async function readRow(ledger: Ledger, summary: RunSummary): Promise<RunRow> {
  const waits: WaitedFor =
    summary.status === 'suspended'
      ? await readSummaryWaits(ledger, summary)
      : { approvals: [], deferred: [], children: [] }
  const isDriven = summary.status === 'unfinished' && (await isRunDriven(ledger, summary.runId))
  const detail = summary.hasDetail ? await readEndDetail(ledger, summary) : undefined
  return { summary, waits, statusView: toSummaryStatusView(summary, { waits, isDriven, detail }) }
}

/** Reads the detail of a run's end from its last event: no summary keeps it. */
async function readEndDetail(ledger: Ledger, { runId, seq }: RunSummary): Promise<string | undefined> {
  try {
    for await (const event of ledger.read(runId, { fromSeq: seq, toSeq: seq })) {
      if (event.type === 'run_finished') return event.detail
    }
  } catch (error) {
    // The damage is newer than the summary: verify finds it.
    if (!(error instanceof TallystickError)) throw error
  }
  return undefined
}

export function isReadable(run: ListedRun): run is RunSummary {
  return run.status !== 'unreadable'
}
