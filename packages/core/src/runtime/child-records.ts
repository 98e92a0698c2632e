import { type AgentTool, isAgentTool } from '../agent/agent-tool.ts'
import type { OutsideCommand, StartCommand } from '../events/commands.ts'
import type { ResultPart } from '../events/content.ts'
import type { ChildTotals, EventOf } from '../events/event.ts'
import type { FinishReason } from '../events/event-parts.ts'
import { limitReasons } from '../events/limits.ts'
import { toolSignalSchema } from '../events/signals.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { toEvent } from '../machine/advance.ts'
import { assumeChildTotals, limitChild, settleUsage } from '../machine/limits.ts'
import { listCallsAwaitingChild, findCall, openTurnCalls, textContent } from '../machine/calls.ts'
import { evolve } from '../machine/evolve.ts'
import { isSuspended } from '../machine/next-action.ts'
import { type Call, type ExecutingState, type RunState, withChildTotals } from '../machine/state.ts'
import { childRunIdOf, type RunId, type ToolCallId } from '../values/ids.ts'
import { omitUndefined } from '../values/json.ts'
import { answerOf } from '../values/option.ts'
import { textOfError } from '../values/text.ts'
import { toResult, type RunResult, readStart, loadState, readResult } from './run-result.ts'
import type { RuntimeParts } from './runtime-parts.ts'
import { resolveOptions, toUserMessage, startCommand, withDefaults } from './start-run.ts'

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

/** A child run that has ended. */
export type ChildEnding = Extract<ChildStop, { readonly kind: 'ended' }>

/** The command that settles a call of the parent with the ending of its child run. */
export function toSettleCommand(
  toolCallId: string,
  { outcome, content, totals: child }: ChildEnding,
): Extract<OutsideCommand, { readonly type: 'settle' }> {
  return { type: 'settle', toolCallId, outcome: outcome === 'success' ? 'success' : 'failed', content, child }
}

export function toChildStop(result: RunResult): ChildStop {
  if (result.status !== 'done') return { kind: 'waits' }
  const { outcome, text } = endingText(result)
  return { kind: 'ended', outcome, content: [{ type: 'text', text }], totals: totalsOf(result) }
}

/** The usage of a run and of its child runs. */
function totalsOf(result: RunResult): ChildTotals {
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

function endingText({ reason = 'model_failed', detail, text }: RunResult): {
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
    const totals = withChildTotals(state.totals, await leftTotals(ledger, state, call))
    state = { ...state, totals }
  }
  return { totals: totalsOf(toResult(state)), isFinal }
}

/** Reads what a parent counts of a started child run: its usage if it has ended, otherwise no less than its grant. */
export async function leftTotals(
  ledger: Ledger,
  parent: Pick<RunState, 'runId'>,
  call: Call,
): Promise<ChildTotals> {
  // One that cannot be read counts like one that is not there yet.
  const found = await readChildTotals(ledger, childRunIdOf(parent.runId, call.toolCallId)).catch(
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
 * True if a run that waits for an answer, its own or one of a child run, has got one, or waits for a child run that
 * has ended. With `withChildren`, also if one of them is under way.
 */
export async function canContinue(ledger: Ledger, runId: RunId, withChildren: boolean): Promise<boolean> {
  const state = await loadState(ledger, runId)
  return state !== undefined && state.phase !== 'done' && (await isWaitOver(ledger, state, withChildren))
}

async function isWaitOver(ledger: Ledger, state: RunState, withChildren: boolean): Promise<boolean> {
  if (!isSuspended(state)) return withChildren
  if ((await ledger.inbox(state.runId)).length > 0) return true
  for (const { toolCallId } of listCallsAwaitingChild(state)) {
    const child = await loadState(ledger, childRunIdOf(state.runId, toolCallId))
    if (child === undefined) continue
    // The report of its end may be lost: its process may have died before it.
    if (child.phase === 'done' || (await isWaitOver(ledger, child, withChildren))) return true
  }
  return false
}

/** Returns how a child run ended, as its ledger says; `undefined` where it has not. */
export async function readChildEnding(ledger: Ledger, childId: RunId): Promise<ChildEnding | undefined> {
  // Only a run that has ended is folded whole.
  if (!(await hasEnded(ledger, childId))) return undefined
  const state = await loadState(ledger, childId)
  const stop: ChildStop | undefined = state && toChildStop(toResult(state))
  return stop?.kind === 'ended' ? stop : undefined
}

/** Returns how the child run of a call ended, as its ledger says; `undefined` where it has not. */
export async function readRecordedEnding(
  parent: RunState,
  toolCallId: ToolCallId,
  parts: Pick<RuntimeParts, 'agents' | 'ledger'>,
): Promise<ChildEnding | undefined> {
  const ending = await readChildEnding(parts.ledger, childRunIdOf(parent.runId, toolCallId))
  return ending && (await readAnswer(parent, toolCallId, ending, parts))
}

async function hasEnded(ledger: Ledger, runId: RunId): Promise<boolean> {
  const { seq = 0 } = (await ledger.head(runId)) ?? {}
  for await (const { type } of ledger.read(runId, { fromSeq: seq })) return type === 'run_finished'
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
function agentToolOf(
  { agent }: RunState,
  { name }: Pick<Call, 'name'>,
  { find }: Pick<RuntimeParts['agents'], 'find'>,
): AgentTool | undefined {
  const tool = find(agent)?.tools.find((each) => each.name === name)
  return tool && isAgentTool(tool) ? tool : undefined
}

/** Returns the command that starts the child run of a call. */
export async function buildChildStart(
  state: ExecutingState,
  call: Call,
  { agents, defaults }: Pick<RuntimeParts, 'agents' | 'defaults'>,
  context: unknown,
): Promise<StartCommand> {
  const { register, find } = agents
  const childId = childRunIdOf(state.runId, call.toolCallId)
  const tool = agentToolOf(state, call, { find })
  if (tool === undefined) {
    throw new TypeError(`the agent ${state.agent} has no tool ${call.name} any more that is an agent`)
  }
  const started = await tool.taskOf(call.input)
  if ('fault' in started)
    throw new TypeError(`the input of ${call.name} does not fit any more: ${started.fault}`)
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
  const { subject, owner, labels } = state
  return { ...command, limits, parent, ...omitUndefined({ subject, owner, labels }) }
}

/**
 * Returns the ending of a child run with what the calling model reads of its answer, where the tool of the call says so. Only the
 * process that drives the parent asks: it knows the tool.
 */
export async function readAnswer(
  parent: RunState,
  toolCallId: ToolCallId,
  ending: ChildEnding,
  { agents, ledger }: Pick<RuntimeParts, 'agents' | 'ledger'>,
): Promise<ChildEnding> {
  const call = findCall(parent, toolCallId)
  const tool = call && agentToolOf(parent, call, agents)
  if (tool?.answerOf === undefined || ending.outcome !== 'success') return ending
  const child = await loadState(ledger, childRunIdOf(parent.runId, toolCallId))
  if (child?.phase !== 'done' || child.reason !== 'answered') return ending
  try {
    const { text, output, turns, toolCalls } = await readResult(child, ledger, agents.find(child.agent))
    const subject = `output of agentTool (${tool.name})`
    const read: unknown = answerOf(subject, () => tool.answerOf?.({ text, output, turns, toolCalls }))
    const content: unknown = typeof read === 'string' ? [{ type: 'text', text: read }] : read
    const fault = toolSignalSchema({ type: 'tool_ended', outcome: 'success', content })
    if (fault) throw new TypeError(`${subject} answered neither a text nor parts of a result`)
    return { ...ending, content: content as readonly ResultPart[] }
  } catch (error) {
    const text = `The work was done, and its answer could not be read: ${textOfError(error)}`
    return { ...ending, outcome: 'failed', content: textContent('failed', text) }
  }
}
