import { type Ledger, type RunId, type RuntimeEvent, TallystickError } from '@tallystick/core'
import { openTurnCalls, toTranscript } from '@tallystick/core/machine'
import { type ParentRef, parseRunId, type ToolCallId, type UserMessage } from '@tallystick/core/vocabulary'
import { formatContent, readFirstInputs, foldTo, type RunSummary } from '@tallystick/ledger'
import { type CommandContext, formatCommand } from '../command/context.ts'
import { CommandError } from '../command/exit-code.ts'
import type { Place } from '../command/next-commands.ts'

import { withLedger } from './open-ledger.ts'

/** Reads which run a run came from, and how, from its first event; `undefined` for a run of its own. */
export async function readParent(ledger: Ledger, runId: RunId): Promise<ParentRef | undefined> {
  // `readStart` of core would load the whole runtime, which no list needs.
  for await (const event of ledger.read(runId, { toSeq: 1 })) {
    return event.type === 'run_started' ? event.parent : undefined
  }
  return undefined
}

/** Reads the parents of a child run: the one that gets its result first, the topmost last. */
export async function readParents(ledger: Ledger, runId: RunId): Promise<readonly RunId[]> {
  const found: RunId[] = []
  for (let at = runId; ;) {
    const parent = await readParent(ledger, at)
    if (parent?.relation !== 'child' || found.includes(parent.runId)) return found
    at = parent.runId
    found.push(at)
  }
}

/** A run as the command line names it: its ledger, and what `findRun` takes. */
export interface NamedRun {
  readonly ledger: string
  readonly run: string
}

/** Opens a ledger, finds the run in it, and closes the ledger after `use`. */
export function withRun<Result>(
  { programName }: Pick<CommandContext, 'programName'>,
  { ledger: ledgerPath, run }: NamedRun,
  access: 'read' | 'write',
  use: (ledger: Ledger, runId: RunId) => Promise<Result>,
): Promise<Result> {
  return withLedger(ledgerPath, access, async (ledger) =>
    use(ledger, await findRun(ledger, run, { programName, ledgerPath })),
  )
}

/** At most so many runs, or calls, are named in an error. */
const maxNamed = 5

/**
 * Finds a run by its id, by an unambiguous beginning or end of it, or by `latest`, which is the last run that is not a
 * child. A run is preferred to its child runs, whose ids begin like its own. Throws a `CommandError`: `not_found` if no
 * run fits, `usage` if several do.
 */
export async function findRun(
  ledger: Ledger,
  given: string,
  { programName, ledgerPath }: Place,
): Promise<RunId> {
  const whole = parseRunId(given)
  if (whole !== undefined && (await ledger.head(whole)) !== undefined) return whole
  const fitting: RunId[] = []
  for await (const { runId } of ledger.runs()) {
    if (given === 'latest' && (await isTopLevel(ledger, runId))) return runId
    if (given !== '' && (runId.startsWith(given) || runId.endsWith(given))) fitting.push(runId)
  }
  const list = formatCommand(programName, 'list', ledgerPath)
  const [first, ...more] = fitting
  if (first === undefined) {
    throw new CommandError('not_found', `This ledger has no run ${given}. See its runs: ${list}`)
  }
  if (more.length === 0) return first
  const topLevel: RunId[] = []
  for (const runId of fitting) if (await isTopLevel(ledger, runId)) topLevel.push(runId)
  const [only, ...others] = topLevel
  if (only !== undefined && others.length === 0) return only
  const named = fitting.slice(0, maxNamed).join(', ') + (fitting.length > maxNamed ? ', …' : '')
  throw new CommandError(
    'usage',
    `${given} matches ${fitting.length} runs (${named}). Give more of the id. See all: ${list}`,
  )
}

/** Returns true for a run without a parent, and for one whose first event cannot be read. */
async function isTopLevel(ledger: Ledger, runId: RunId): Promise<boolean> {
  try {
    return (await readParent(ledger, runId))?.relation !== 'child'
  } catch (error) {
    if (error instanceof TallystickError) return true
    throw error
  }
}

/** A call that waits, and the run that asked for it. */
interface WaitingCall {
  readonly runId: RunId
  readonly toolCallId: ToolCallId
}

export interface CallSearch<Waiting extends WaitingCall> {
  readonly ledger: Ledger
  /** The run that was named. */
  readonly named: RunId
  readonly waiting: readonly Waiting[]
  /** Such as `an approval`. */
  readonly awaited: string
  /** The command that shows the run. */
  readonly show: string
}

/**
 * Finds a call that waits by its id, or by an end of it that fits no other call of its run, waiting or not. Throws a
 * `CommandError`: `usage` if the end is empty or fits several calls, `not_found` if no call that waits fits it.
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
    for (const id of await readCalls(ledger, runId)) if (id.endsWith(given)) fitting.add(id)
  }
  if (fitting.size === 1) return call
  const some = [...fitting].slice(0, maxNamed).join(', ')
  throw new CommandError(
    'usage',
    `${given} matches ${fitting.size} calls (${some}). Give more of the id. Waiting: ${ids}.`,
  )
}

/** The calls of a run so far. */
async function readCalls(ledger: Ledger, runId: RunId): Promise<readonly ToolCallId[]> {
  const state = await foldTo(ledger, runId)
  const earlier = toTranscript(state).flatMap((message) =>
    message.role === 'assistant'
      ? message.parts.flatMap((part) => (part.type === 'tool_call' ? [part.toolCallId] : []))
      : [],
  )
  return [...earlier, ...openTurnCalls(state).map(({ toolCallId }) => toolCallId)]
}

/** Facts that decide where a fork begins. */
export interface ForkNeeds {
  /** The last event that both runs share, if the user names it. */
  readonly at?: number
  /** Calls that get other results, by an end of their ids. */
  readonly calls: readonly string[]
  /** True if the fork decides about calls that wait for an approval. */
  readonly decides: boolean
  /** True if the last input is replaced. The fork then begins right after it, and asks for approvals again. */
  readonly replacesInput: boolean
}

export interface ForkPlace {
  readonly atSeq: number
  readonly toolCallIds: readonly ToolCallId[]
}

/**
 * Finds the event at which a fork begins: the one that was named, else the latest that allows the edit, which is before
 * the edited results, after the last requested approval, or after the last input.
 */
export async function findForkPlace(
  ledger: Ledger,
  runId: RunId,
  { at, calls, decides, replacesInput }: ForkNeeds,
  place: Place,
): Promise<ForkPlace> {
  const types = ['input_received', 'approval_requested', 'tool_started', 'tool_result'] as const
  const events: RuntimeEvent[] = []
  for await (const event of ledger.read(runId))
    if (types.some((type) => type === event.type)) events.push(event)
  const toolCallIds = calls.map((given) => findStartedCall(events, given, { runId, ...place }))
  return { atSeq: at ?? findDefaultSeq(events, toolCallIds, decides && !replacesInput), toolCallIds }
}

function findDefaultSeq(
  events: readonly RuntimeEvent[],
  toolCallIds: readonly ToolCallId[],
  decides: boolean,
): number {
  const result = events.find(
    ({ type, toolCallId }) => type === 'tool_result' && toolCallIds.some((id) => id === toolCallId),
  )
  if (result) return result.seq - 1
  const findLastSeq = (type: RuntimeEvent['type']): number | undefined =>
    events.findLast((event) => event.type === type)?.seq
  if (toolCallIds.length > 0) return findLastSeq('tool_started') ?? 0
  return (decides ? findLastSeq('approval_requested') : undefined) ?? findLastSeq('input_received') ?? 0
}

function findStartedCall(
  events: readonly RuntimeEvent[],
  given: string,
  { runId, programName, ledgerPath }: Place & { readonly runId: RunId },
): ToolCallId {
  const started = events.flatMap(({ type, toolCallId }) =>
    type === 'tool_started' && toolCallId?.endsWith(given) ? [toolCallId] : [],
  )
  const [call, ...others] = new Set(started)
  if (call !== undefined && others.length === 0) return call
  const show = formatCommand(programName, 'show', ledgerPath, runId)
  const what = call === undefined ? 'no tool call' : `${others.length + 1} tool calls`
  throw new CommandError(
    call === undefined ? 'not_found' : 'usage',
    `Run ${runId} has started ${what} whose id ends in ${given}. See its calls: ${show}`,
  )
}

/**
 * Reads the first input of each run, as text; of a fork that was given another input, that one. Runs whose input cannot be read,
 * or was removed, are left out.
 */
export async function readInputTexts(
  ledger: Ledger,
  runs: readonly RunSummary[],
): Promise<ReadonlyMap<RunId, string>> {
  const inputs = await readFirstInputs(
    ledger,
    runs.map(({ runId }) => runId),
  )
  const texts = new Map<RunId, string>()
  for (const run of runs) {
    const message = (await readForkInput(ledger, run)) ?? inputs.get(run.runId)?.message
    if (message) texts.set(run.runId, formatContent(message.parts))
  }
  return texts
}

/** Reads the message that a fork puts in place of an input, with its first event of its own. */
async function readForkInput(
  ledger: Ledger,
  { runId, parent }: RunSummary,
): Promise<UserMessage | undefined> {
  if (parent?.relation !== 'fork') return undefined
  const seq = parent.seq + 1
  try {
    for await (const event of ledger.read(runId, { fromSeq: seq, toSeq: seq })) {
      if (event.type !== 'history_edited') return undefined
      const replaced = event.edits.flatMap(({ message }) => (message?.role === 'user' ? [message] : []))
      return replaced.at(-1)
    }
  } catch (error) {
    if (!(error instanceof TallystickError)) throw error
  }
  return undefined
}
