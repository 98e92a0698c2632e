import { type Ledger, type RunId, type RuntimeEvent, TallystickError } from '@tallystick/core'
import { openTurnCalls, transcript } from '@tallystick/core/machine'
import { type ParentRef, parseRunId, type ToolCallId } from '@tallystick/core/vocabulary'
import { eventsToFold, firstInputs, foldTo } from '@tallystick/ledger'
import { commandLine } from '../command/context.ts'
import { CommandError } from '../command/exit-code.ts'
import type { Place } from '../command/next-commands.ts'
import { contentText } from '../command/text.ts'
import { withLedger, withWritable } from './open-ledger.ts'

/** Where a run came from, as its first event says; `undefined` where it came from nothing. */
export async function parentOf(ledger: Ledger, runId: RunId): Promise<ParentRef | undefined> {
  // `readStart` of core would load the whole runtime, which no list needs.
  for await (const event of ledger.read(runId, { toSeq: 1 })) {
    return event.type === 'run_started' ? event.parent : undefined
  }
  return undefined
}

/** The parents of a run: the one that its result goes to first, the root last. */
export async function parentsOf(ledger: Ledger, runId: RunId): Promise<readonly RunId[]> {
  const found: RunId[] = []
  for (let at = runId; ;) {
    const parent = await parentOf(ledger, at)
    if (parent?.relation !== 'child' || found.includes(parent.runId)) return found
    at = parent.runId
    found.push(at)
  }
}

const maxNamed = 5

/** A fold of more events than this leaves a snapshot for the next one, where the ledger can be written. */
const maxEventsFolded = 5_000

/** A run that is looked at. */
export interface LookedAt {
  readonly ledger: string
  readonly run: string
  /** The `seq` that it is folded to; the last one unless given. */
  readonly at?: number
  /** One event, for which nothing is folded. */
  readonly event?: number
}

/** Opens the ledger to read a run; to write, where a long fold of the run can leave a snapshot for the next look. */
export async function withRun<Result extends number>(
  { ledger: ledgerPath, run, at, event }: LookedAt,
  programName: string,
  use: (ledger: Ledger, runId: RunId) => Promise<Result>,
): Promise<Result> {
  const find = (ledger: Ledger): Promise<RunId> => findRun(ledger, run, { programName, ledgerPath })
  const opened = await withLedger(ledgerPath, 'read', async (ledger) => {
    const runId = await find(ledger)
    const isFar = event === undefined && (await isFarFold(ledger, runId, at))
    return isFar ? undefined : await use(ledger, runId)
  })
  if (opened !== undefined) return opened
  return await withWritable(ledgerPath, async (ledger) => await use(ledger, await find(ledger)))
}

async function isFarFold(ledger: Ledger, runId: RunId, at: number | undefined): Promise<boolean> {
  const { seq: maxSeq = 0 } = (await ledger.head(runId)) ?? {}
  const events = await eventsToFold(ledger, runId, Math.min(at ?? maxSeq, maxSeq))
  return events !== undefined && events > maxEventsFolded
}

/**
 * Finds a run by its id, by an unambiguous beginning or end of it, or by `latest`, which is the last run without a
 * parent. A run is preferred to its child runs, whose ids begin as its own does. Throws a
 * `CommandError`: `not_found` when no run fits, `usage` when several do.
 */
export async function findRun(ledger: Ledger, given: string, options: Place): Promise<RunId> {
  const whole = parseRunId(given)
  if (whole !== undefined && (await ledger.head(whole)) !== undefined) return whole
  const fitting: RunId[] = []
  for await (const { runId } of ledger.runs()) {
    if (given === 'latest' && (await isAtTop(ledger, runId))) return runId
    if (given !== '' && (runId.startsWith(given) || runId.endsWith(given))) fitting.push(runId)
  }
  const [runId, ...others] = fitting.length > 1 ? await thoseAtTop(ledger, fitting) : fitting
  if (runId === undefined || others.length > 0) throw notOneRun(given, fitting, options)
  return runId
}

function notOneRun(
  given: string,
  fitting: readonly RunId[],
  { programName, ledgerPath }: Place,
): CommandError {
  const list = commandLine(programName, 'list', ledgerPath)
  if (fitting.length === 0) {
    return new CommandError('not_found', `This ledger has no run ${given}. See its runs: ${list}`)
  }
  const named = fitting.slice(0, maxNamed).join(', ') + (fitting.length > maxNamed ? ', …' : '')
  return new CommandError(
    'usage',
    `${given} fits ${fitting.length} runs (${named}). Give more of the id. See all: ${list}`,
  )
}

async function thoseAtTop(ledger: Ledger, runIds: readonly RunId[]): Promise<readonly RunId[]> {
  const found: RunId[] = []
  for (const runId of runIds) if (await isAtTop(ledger, runId)) found.push(runId)
  return found.length === 0 ? runIds : found
}

/** Returns true for a run without a parent, and for one whose first event cannot be read. */
async function isAtTop(ledger: Ledger, runId: RunId): Promise<boolean> {
  try {
    return (await parentOf(ledger, runId))?.relation !== 'child'
  } catch (error) {
    if (error instanceof TallystickError) return true
    throw error
  }
}

const maxCallsNamed = 5

/** A call that waits, and the run that it is of. */
interface WaitingCall {
  readonly runId: RunId
  readonly toolCallId: ToolCallId
}

/** Where a call is looked for. */
export interface CallSearch<Waiting extends WaitingCall> {
  readonly ledger: Ledger
  /** The run that was named. */
  readonly named: RunId
  readonly waiting: readonly Waiting[]
  /** What the calls wait for, such as `an approval`. */
  readonly awaited: string
  /** The command that shows the run. */
  readonly show: string
}

/**
 * Finds the one call that waits by its id, or by an end of it that no other call of its run has, whether that waits or
 * not. Throws a `CommandError`: `usage` where the end is empty or fits several calls, `not_found` where no call waits
 * that it fits.
 */
export async function findCall<Waiting extends WaitingCall>(
  given: string,
  search: CallSearch<Waiting>,
): Promise<Waiting> {
  const { ledger, named, waiting, awaited, show } = search
  const ids = waiting.map(({ toolCallId }) => toolCallId).join(', ') || 'none'
  if (given === '') {
    throw new CommandError('usage', `Name the call by its id, or by an end of it. Waiting: ${ids}.`)
  }
  const whole = waiting.find(({ toolCallId }) => toolCallId === given)
  if (whole) return whole
  const [call, ...others] = waiting.filter(({ toolCallId }) => toolCallId.endsWith(given))
  if (call === undefined) {
    throw new CommandError(
      'not_found',
      `No call ${given} of run ${named} or of its child runs waits for ${awaited}. Waiting: ${ids}. See the run: ${show}`,
    )
  }
  const runIds = new Set([named, ...waiting.map(({ runId }) => runId)])
  const fitting = new Set([call, ...others].map(({ toolCallId }) => toolCallId))
  for (const runId of runIds) {
    for (const id of await callsOf(ledger, runId)) if (id.endsWith(given)) fitting.add(id)
  }
  if (fitting.size === 1) return call
  const some = [...fitting].slice(0, maxCallsNamed).join(', ')
  throw new CommandError(
    'usage',
    `${given} fits ${fitting.size} calls (${some}). Give more of the id. Waiting: ${ids}.`,
  )
}

/** The calls of a run so far. */
async function callsOf(ledger: Ledger, runId: RunId): Promise<readonly ToolCallId[]> {
  const state = await foldTo(ledger, runId)
  const earlier = transcript(state).flatMap((message) =>
    message.role === 'assistant'
      ? message.parts.flatMap((part) => (part.type === 'tool_call' ? [part.toolCallId] : []))
      : [],
  )
  return [...earlier, ...openTurnCalls(state).map(({ toolCallId }) => toolCallId)]
}

/** What decides where a fork begins, where no event is named. */
export interface ForkNeeds {
  /** The last event that both share. */
  readonly at?: number
  /** Calls that are to have other results, by an end of their ids. */
  readonly calls: readonly string[]
  /** Whether what waits for an approval is decided otherwise. */
  readonly decides: boolean
  /** Whether the last input is another: no later event allows that, and what is decided is asked again after it. */
  readonly replacesInput: boolean
}

/** Where a fork begins, and which calls were meant. */
export interface ForkPlace {
  readonly atSeq: number
  readonly toolCallIds: readonly ToolCallId[]
}

/**
 * Returns the event at which a fork begins: the named one, or the latest one that allows the edit: before the
 * edited results, after the last requested approval, or after the last input.
 */
export async function forkPlace(
  ledger: Ledger,
  runId: RunId,
  { at, calls, decides, replacesInput }: ForkNeeds,
  place: Place,
): Promise<ForkPlace> {
  const events: RuntimeEvent[] = []
  for await (const event of ledger.read(runId)) if (ofInterest.has(event.type)) events.push(event)
  const toolCallIds = calls.map((given) => callEnding(events, given, { runId, ...place }))
  return { atSeq: at ?? defaultSeq(events, toolCallIds, decides && !replacesInput), toolCallIds }
}

const ofInterest: ReadonlySet<RuntimeEvent['type']> = new Set([
  ...(['input_received', 'approval_requested', 'tool_started', 'tool_result'] as const),
])

function defaultSeq(
  events: readonly RuntimeEvent[],
  toolCallIds: readonly ToolCallId[],
  decides: boolean,
): number {
  const results = events.filter(
    ({ type, toolCallId }) => type === 'tool_result' && toolCallIds.some((id) => id === toolCallId),
  )
  const [first] = results
  if (first !== undefined) return first.seq - 1
  const lastOf = (type: RuntimeEvent['type']): number | undefined =>
    events.findLast((event) => event.type === type)?.seq
  if (toolCallIds.length > 0) return lastOf('tool_started') ?? 0
  return (decides ? lastOf('approval_requested') : undefined) ?? lastOf('input_received') ?? 0
}

function callEnding(
  events: readonly RuntimeEvent[],
  given: string,
  { runId, programName, ledgerPath }: Place & { readonly runId: RunId },
): ToolCallId {
  const started = events.flatMap(({ type, toolCallId }) =>
    type === 'tool_started' && toolCallId?.endsWith(given) ? [toolCallId] : [],
  )
  const [call, ...others] = new Set(started)
  if (call !== undefined && others.length === 0) return call
  const show = commandLine(programName, 'show', ledgerPath, runId)
  const what = call === undefined ? 'no tool call' : `${others.length + 1} tool calls`
  throw new CommandError(
    call === undefined ? 'not_found' : 'usage',
    `Run ${runId} has started ${what} whose id ends in ${given}. See its calls: ${show}`,
  )
}

/** What each of these runs was begun with, as text. Runs of which that cannot be read, or is gone, are left out. */
export async function inputTexts(
  ledger: Ledger,
  runIds: readonly RunId[],
): Promise<ReadonlyMap<RunId, string>> {
  const inputs = await firstInputs(ledger, runIds)
  return new Map([...inputs].map(([runId, { message }]) => [runId, contentText(message?.parts ?? [])]))
}
