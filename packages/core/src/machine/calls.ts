import type { Call, CallStatus, ExecutingState, RunState } from './state.ts'
import type { CallRefusal, FactOf, RuntimeEvent } from '../events/event.ts'
import type { Approver, Approvers } from '../events/event-parts.ts'
import {
  deriveChildRunId,
  deriveIdempotencyKey,
  parseToolCallId,
  type RunId,
  type ToolCallId,
} from '../values/ids.ts'
import { omitUndefined } from '../values/json.ts'
import { computeDigest } from '../values/digest.ts'
import type { ModelRef, Outcome, TextPart } from '../events/content.ts'
import type { FallbackModel } from '../events/agent-definition.ts'
import type { MaxWebSearches, Price } from '../events/usage.ts'
import type { ToolChoice } from '../events/model-request.ts'

/** Counts over the calls of a turn, so that the controller looks at single calls only if it has to. */
interface CallsSummary {
  readonly counts: Readonly<Record<CallStatus, number>>
  /** How many reads are started. */
  readonly runningReads: number
  /** How many calls are for child runs. */
  readonly ofChildren: number
}

/** Summaries by the calls that they are of: arrays of calls never change. */
const summaries = new WeakMap<readonly Call[], CallsSummary>()

export function summarizeCalls(calls: readonly Call[]): CallsSummary {
  const known = summaries.get(calls)
  if (known) return known
  const counts = {
    requested: 0,
    to_settle: 0,
    to_ask: 0,
    awaiting_approval: 0,
    ready: 0,
    to_retry: 0,
    started: 0,
    in_doubt: 0,
    deferred: 0,
    settled: 0,
  }
  let [runningReads, ofChildren] = [0, 0]
  for (const { status, effect, child, grant } of calls) {
    counts[status]++
    if (status === 'started' && effect === 'read') runningReads++
    if (child !== undefined || grant !== undefined) ofChildren++
  }
  const summary = { counts, runningReads, ofChildren }
  summaries.set(calls, summary)
  return summary
}

/** The key that equal calls share: tool and input. `undefined` for a call that is not collected yet. */
export function toCallKey({ inputDigest, name }: Pick<Call, 'name' | 'inputDigest'>): string | undefined {
  return inputDigest === undefined ? undefined : `${inputDigest} ${name}`
}

/** The place of a call; -1 if no call has the id. The number at the end of an id is nearly always the place. */
export function findCallPlace(calls: readonly Call[], toolCallId: string): number {
  const ordinal = Number(toolCallId.slice(toolCallId.lastIndexOf('_') + 1))
  if (calls[ordinal - 1]?.toolCallId === toolCallId) return ordinal - 1
  for (let place = calls.length - 1; place >= 0; place--)
    if (calls[place]?.toolCallId === toolCallId) return place
  return -1
}

/**
 * The fact that lets a call's effect begin. The key names the run and the call's place in it, and no attempt: every
 * attempt has the same, and a fork, being another run, has another even for a call that it shares.
 */
export function toToolStarted(
  runId: RunId,
  call: Call,
  here: { readonly turn: number; readonly toolCallId: Call['toolCallId'] },
): FactOf<'tool_started'> {
  const { toolCallId, name, attempts, effect = 'write', inputDigest = computeDigest(call.input) } = call
  const attempt = attempts + 1
  const idempotencyKey = deriveIdempotencyKey(runId, toolCallId)
  const start = { type: 'tool_started' as const, ...here, name, attempt, idempotencyKey, effect, inputDigest }
  if (call.child === undefined && call.grant === undefined) return start
  const child = call.child === undefined ? undefined : deriveChildRunId(runId, toolCallId)
  return { ...start, ...omitUndefined({ child, grant: call.grant }) }
}

/** The text for the model if the runtime ended a call, not the tool: what happened, and how to take it. */
const texts: { readonly [O in Outcome]: string } = {
  success: 'Done.',
  invalid_input: 'The input does not fit the schema of this tool. Nothing was run.',
  unknown_tool: 'There is no tool of that name. Nothing was run.',
  denied: 'This call was denied. Nothing was run.',
  failed: 'The tool failed.',
  timed_out: 'The tool was given up because it took too long. It may have had an effect all the same.',
  cancelled: 'The run was cancelled before this call was complete.',
  interrupted:
    'The process stopped while this tool ran, and nobody recorded how it ended. It may have taken effect. Find out before you ask for it again.',
  repeated: 'The same call was made before, with the same result.',
  limit_reached: 'A limit of this run does not allow this call. Nothing was run.',
  skipped: 'The reply that asked for this call was not complete. Nothing was run.',
}

/** The content of a result that the runtime itself gives. */
export function toTextContent(outcome: Outcome, text: string = texts[outcome]): readonly TextPart[] {
  return [{ type: 'text', text }]
}

/** Law 13: what becomes of a call whose input was removed from the record before it was started. */
export const removedInput: CallRefusal = {
  outcome: 'skipped',
  text: 'The input of this call was removed from the record before the call was started. Nothing was run; ask for it again if it is still needed.',
}

/** The text for the model if such a call was started once and is not started again. */
export const removedInputInDoubt =
  'The process stopped while this tool ran, and the input of the call was removed from the record since, so it was not started again. It may have taken effect. Find out before you ask for it again.'

/** Why the child run of such a call is told to stop. */
export const removedInputReason = 'The input of the call was removed from the record.'

/** The model that the run uses now. */
export function getCurrentModel(state: RunState): ModelRef {
  return state.model ?? state.definition.model
}

/** The price of one of the agent's models; `undefined` if it is unknown or the agent has no such model. */
export function getPrice(state: RunState, model: ModelRef): Price | undefined {
  return findModelInfo(state, model)?.price
}

/** How many web searches one call may hold: none if its provider runs none, or the call allows no tool. */
export function getMaxWebSearches(
  state: RunState,
  { model, toolChoice }: { readonly model: ModelRef; readonly toolChoice: ToolChoice },
): MaxWebSearches {
  return toolChoice.type === 'none' ? 0 : (findModelInfo(state, model)?.maxWebSearches ?? 0)
}

function findModelInfo({ definition }: RunState, { modelId, provider }: ModelRef): FallbackModel | undefined {
  const models: readonly FallbackModel[] = [definition, ...(definition.fallbacks ?? [])]
  return models.find(({ model }) => model.modelId === modelId && model.provider === provider)
}

/** The calls of the turn that are not yet part of the history. */
export function openTurnCalls(state: RunState): readonly Call[] {
  switch (state.phase) {
    case 'collecting':
    case 'executing':
      return state.calls
    case 'streaming':
      return state.attempt.calls
    case 'idle':
    case 'injecting':
    case 'done':
      return []
  }
}

export function listCallsAwaitingChild(state: RunState): readonly Call[] {
  return openTurnCalls(state).filter(({ status, child }) => status === 'deferred' && child !== undefined)
}

/** The id of the result of work in the background, among the input that waits for its place. */
export function toBackgroundInputId(toolCallId: ToolCallId): string {
  return `background ${toolCallId}`
}

/** The name of work in the background for the model: the numbers of its call, which are the same in a fork. */
export function toBackgroundName(toolCallId: ToolCallId): string {
  return `background ${toolCallId.split('_').slice(2).join('_')}`
}

/** Returns whether input that waits for its place, or took it, is the result of work in the background. */
export function isBackgroundInput(inputId: string): boolean {
  return (
    inputId.startsWith('background ') && parseToolCallId(inputId.slice('background '.length)) !== undefined
  )
}

/** Finds a call of the current turn, or one that goes on beside the run. */
export function findCall(state: RunState, toolCallId: string): Call | undefined {
  const beside = state.background?.find((call) => call.toolCallId === toolCallId)
  if (beside) return beside
  const calls = openTurnCalls(state)
  return calls[findCallPlace(calls, toolCallId)]
}

/** Returns whether a call can still report: a child run that waits, or that no process drives any more, ends once it is stopped. */
export function isAtWork({ status, child }: Call): boolean {
  return status === 'started' || (child !== undefined && (status === 'deferred' || status === 'in_doubt'))
}

/** The two halves, counted. The books balance when `open` is empty. */
export interface Tally {
  readonly requests: number
  readonly results: number
  readonly open: readonly ToolCallId[]
}

/** Counts the halves in a ledger's events. */
export function tallyCalls(events: Iterable<RuntimeEvent>): Tally {
  const open = new Set<ToolCallId>()
  let requests = 0
  let results = 0
  for (const event of events) {
    if (event.type === 'tool_request_ready') {
      requests++
      open.add(event.toolCallId)
    } else if (event.type === 'tool_result') {
      results++
      open.delete(event.toolCallId)
    }
  }
  return { requests, results, open: [...open] }
}

/** A call that waits for a person. */
export interface PendingApproval {
  /** The run that asks; it may be a child run. */
  readonly runId: RunId
  readonly toolCallId: ToolCallId
  readonly name: string
  /** The attempt that waits: 1, or more if a call in doubt would be started again. */
  readonly attempt: number
  readonly input: Call['input']
  /** The digest of the input, to which a decision is bound. */
  readonly inputDigest: string
  readonly reason?: string
  /** Who may approve it: each of these has to be satisfied. Absent if anybody may. */
  readonly approvers?: readonly Approvers[]
  /** The people who have approved it; it waits for more. */
  readonly approvals?: readonly Approver[]
}

/** A call that continues outside, until the application settles it. */
export interface DeferredCall {
  /** The run that waits; it may be a child run. */
  readonly runId: RunId
  readonly toolCallId: ToolCallId
  readonly name: string
  /** The input of the call, for the outside system that does its work. */
  readonly input: Call['input']
  /** The id of the call in the system outside, as its tool reported it. */
  readonly externalId: string
  /** Milliseconds since 1970 UTC, after which it counts as timed out. */
  readonly deadlineAt?: number
}

const eventReceipt = 'event '

/** The external id of a call that waits for an event of a name, whoever sends that. */
export function toEventReceipt(name: string): string {
  return eventReceipt + name
}

/** The name of the event that a deferred call waits for; `undefined` if it waits for something else. */
export function parseEventReceipt(externalId: string): string | undefined {
  return externalId.startsWith(eventReceipt) ? externalId.slice(eventReceipt.length) : undefined
}

/** Returns the calls of a run that wait to be settled. */
export function listDeferredCalls(state: RunState): readonly DeferredCall[] {
  return openTurnCalls(state).flatMap(({ toolCallId, name, input, status, deferred }) =>
    status === 'deferred' && deferred ? [{ runId: state.runId, toolCallId, name, input, ...deferred }] : [],
  )
}

/** Returns the calls of a run that wait for a person. */
export function listPendingApprovals(state: RunState): readonly PendingApproval[] {
  return openTurnCalls(state).flatMap((call) => {
    const { toolCallId, name, input, inputDigest, askReason, status, attempts } = call
    // Nobody can decide about what is not there.
    if (status !== 'awaiting_approval' || inputDigest === undefined || call.inputRemoved) return []
    const { runId } = state
    const attempt = attempts + 1
    const { approvers, approvals = [] } = call
    return [
      {
        ...{ runId, toolCallId, name, attempt, input, inputDigest },
        ...omitUndefined({ reason: askReason, approvers }),
        ...(approvals.length > 0 && { approvals }),
      },
    ]
  })
}

export function isUnstarted({ attempts, status }: Call): boolean {
  return attempts === 0 && (status === 'ready' || status === 'to_ask' || status === 'awaiting_approval')
}

/** The calls that were not started yet and may be. */
export function listUnstarted({ calls }: ExecutingState): readonly Call[] {
  const { ready, to_ask, awaiting_approval } = summarizeCalls(calls).counts
  return ready + to_ask + awaiting_approval === 0 ? [] : calls.filter(isUnstarted)
}
