import {
  estimateDefinitionTokens,
  estimateMessageTokens,
  filterOfferedTools,
  type SourcedTools,
} from './tokens.ts'
import type { AgentDefinition, RunGiven } from '../events/agent-definition.ts'
import type {
  AssistantMessage,
  Message,
  ModelRef,
  Opaque,
  Outcome,
  ProviderState,
  ResultPart,
  ToolResult,
  UserMessage,
} from '../events/content.ts'
import type {
  CallRefusal,
  ChildTotals,
  ToolSpending,
  FinishReason,
  GuardedThing,
  Handoff,
  ParentRef,
  Schedule,
  ShownChange,
} from '../events/event.ts'
import type { Approver, Approvers, SessionEdit } from '../events/event-parts.ts'
import type { KnownStanding } from './approvals.ts'
import type { ModelFailure } from '../values/errors.ts'
import type { Background, Grant, LimitName, Limits, OnLimit, Repeats, RetryPolicy } from '../events/limits.ts'
import { type RunId, extractTime, type ToolCallId } from '../values/ids.ts'
import { deepFreeze, type Json, type JsonObject } from '../values/json.ts'
import type { ModelRefusal, Recovery, ToolChoice, ToolEffect } from '../events/model-request.ts'
import {
  appendMessage,
  type CallLog,
  readCalls,
  emptyCallLog,
  type History,
  createHistory,
  countHistoryTokens,
  logCall,
  type LoggedCall,
  readMessages,
} from './history.ts'
import { addUsage, type Usage } from '../events/usage.ts'

/** The phases of a run, in the order in which a run without retries comes through them. */
export const phases = ['idle', 'streaming', 'collecting', 'executing', 'injecting', 'done'] as const
export type Phase = (typeof phases)[number]

/** A limit that was met and that was not raised since. */
export interface MetLimit {
  readonly limit: LimitName
  readonly policy: OnLimit
  readonly at: number
}

/** The parts of the state that every phase has. */
export interface RunBase extends RunGiven {
  readonly runId: RunId
  /** The last event's number, epoch and time. */
  readonly seq: number
  readonly epoch: number
  readonly at: number
  readonly turn: number
  readonly startedAt: number
  readonly agent: string
  readonly definition: AgentDefinition
  /** The tools of the agent's source that the last model call was offered; absent without any. */
  readonly sourced?: SourcedTools
  readonly limits: Limits
  readonly retry: RetryPolicy
  readonly sessionId?: string
  readonly sessionPlace?: number
  readonly parent?: ParentRef
  readonly subject?: string
  /** Approvals that later calls may rest on. */
  readonly standing?: readonly KnownStanding[]
  /** It was started with a context of its application, which no ledger holds. */
  readonly withContext?: true
  /** The first event whose content is gone from the ledger: what follows from content can no longer be judged. */
  readonly removedFrom?: number
  /** The messages of the next model call. All of their calls have results. */
  readonly history: History
  readonly totals: Totals
  /** Where the present exchange begins in the history: at the user's first message after the last answer. */
  readonly exchangeFrom: number
  /** About how many input tokens the next request has: what was billed last, and an estimate of what came since. */
  readonly contextTokens: number
  /** The part of `contextTokens` that a provider has reported; the rest is estimated. */
  readonly reportedTokens: number
  /** The factor of token estimates, at least 1, learned from the reports of providers. */
  readonly estimateFactor: number
  /** Milliseconds in which nothing was in flight and the run waited for a person, or for a process. */
  readonly waitedMs: number
  /** Answers of calls that change nothing: those that a repeated call is compared with. */
  readonly callLog: CallLog
  /** The calls since the last event that may change an answer: all change nothing, or got answers that were known. */
  readonly standstill: {
    /** The place in the call log at which it begins. */
    readonly from: number
    /** The place at which the answers of the last reply begin: they come together, so none is news to another. */
    readonly replyFrom: number
    /** Calls that were not run in it, since their recorded answer was served. */
    readonly served: number
  }
  /** When each poll was answered last, by its tool and input: its tool sets how soon it may be made again. Absent without any. */
  readonly polls?: { readonly [call: string]: number }
  /** How often each tool has failed with the same error in a row. */
  readonly errorStreaks: { readonly [tool: string]: ErrorStreak }
  /** Input that came while the run was at work, and has not entered the history yet. */
  readonly pendingInputs: readonly PendingInput[]
  /** True if a user's message comes after the last reply. */
  readonly inputSinceReply: boolean
  /** The turn in which the history was last shortened. */
  readonly compactedTurn?: number
  /** Take-overs that found something in flight, since a reply or a result was last recorded. */
  readonly takeOvers: number
  /** The model in use, where it is not the definition's. */
  readonly model?: ModelRef
  readonly metLimit?: MetLimit
  /** Where the provider keeps the conversation up to the last reply. */
  readonly keptState?: ProviderState
  /** Guardrails that have not looked yet at what the user said last. */
  readonly inputCheck?: InputCheck
  /** The guardrail that ends the run. */
  readonly blocked?: { readonly guardrail: string; readonly on: GuardedThing; readonly detail?: string }
  /** A model sums up this many of the oldest messages. */
  readonly compacting?: Compacting
  /** How far a fork has come on the other run's record. */
  readonly fork?: {
    /** Calls of the other run whose recorded results were served. */
    readonly reused: readonly string[]
    /** The turn in which a tool ran for real; what is asked for in later turns is answered by no record. */
    readonly divergedIn?: number
    /** Calls that have a result of the fork's own, such as one that was edited: no record answers them. */
    readonly own: readonly { readonly name: string; readonly inputDigest: string }[]
  }
  /** Answers that did not fit the schema, and that the model was asked to write again. */
  readonly repairs: number
  /** The text of the model's last message, `''` without one; of a wrapped answer, its own JSON. */
  readonly lastText: string
  /** The answer, as JSON that fits the schema. */
  readonly output?: { readonly value: Json }
  /** Calls that go on beside the run; their handles are in the history. Absent without any. */
  readonly background?: readonly BackgroundCall[]
  /** The run is an edit of its session. */
  readonly sessionEdit?: { readonly edit: SessionEdit; readonly uncheckedFrom?: number }
  /** The run is a schedule: what it was set to, its next time, and what it has started. */
  readonly schedule?: ScheduleState
  readonly cancel?: { readonly at: number; readonly by?: string; readonly reason?: string }
}

/** A schedule: its times, and how far it has come. */
export interface ScheduleState extends Schedule {
  readonly paused?: true
  /** In milliseconds since 1970 UTC; absent if it is paused, or its last time has come. */
  readonly nextAt?: number
  /** How many runs it has started, and the last of them. */
  readonly started: number
  readonly lastRun?: { readonly runId: RunId; readonly scheduledAt: number }
}

/** Input to be checked before the run may act on it. */
export interface InputCheck {
  /** The event by which the last of it entered the history, or moved in it. */
  readonly seq: number
  /** Its first message, by its place in the history from 0. */
  readonly from: number
  /** Names of the guardrails that have not looked yet. */
  readonly guardrails: readonly string[]
}

/** A summary that is being written. */
export interface Compacting {
  readonly model: ModelRef
  readonly replacedMessages: number
  /** The most that the call may use. */
  readonly grant: Grant
  readonly maxOutputTokens?: number
  /** The process that made the call has stopped: it is made once more, or given up. */
  readonly interrupted?: true
}

/** Input that waits for its place. */
export interface PendingInput {
  /** The id that the sender gave the input; `input_settled` names it. */
  readonly inputId: string
  readonly delivery: 'steer' | 'queue'
  readonly message: UserMessage
}

/** Failures of one tool with the same error, without anything else from it in between. */
export interface ErrorStreak {
  readonly resultDigest: string
  readonly count: number
}

/** A part of a reply that is still coming. */
export interface PartDraft {
  readonly part: number
  readonly kind: 'text' | 'reasoning'
  readonly text: string
  /** The model's own text, if `outputStream` of its agent showed another one. */
  readonly written?: string
}

/** One try of a model call. */
export interface Attempt {
  readonly number: number
  readonly model: ModelRef
  readonly toolChoice: ToolChoice
  /** The one call past a limit, which writes the answer. */
  readonly finalizing: boolean
  /** The most that it may use. */
  readonly grant: Grant
  readonly maxOutputTokens?: number
  readonly change?: ShownChange
  readonly requestDigest: string
  readonly drafts: readonly PartDraft[]
  /** About how many tokens of text, reasoning and tool input have streamed. */
  readonly streamedTokens: number
  /** Places of the reply that hold calls, in the order in which they were first seen. */
  readonly callParts: readonly number[]
  readonly calls: readonly Call[]
  /** Tokens of the conversation after the reply, where the provider says them beside what it bills. */
  readonly contextTokens?: number
  readonly providerMessageId?: string
  /** Present once the attempt has failed. */
  readonly failed?: FailedAttempt
}

export interface FailedAttempt {
  readonly failure: ModelFailure
  readonly retryAt?: number
  /** The history was shortened since: the same call is worth another try. */
  readonly shortened?: true
}

/**
 * The status of a call.
 * - `requested`: the model asked
 * - `to_settle`: gets the result in `refusal`, without being started
 * - `to_ask`, `awaiting_approval`: a person has to decide; was asked
 * - `ready`: may be started
 * - `to_retry`: an attempt failed, and the next one starts when its time has come
 * - `started`: its effect may have begun
 * - `in_doubt`: was started by a writer that is gone, and its end was not recorded
 * - `deferred`: continues outside, and is settled later
 * - `settled`: has its result
 */
export type CallStatus =
  | 'requested'
  | 'to_settle'
  | 'to_ask'
  | 'awaiting_approval'
  | 'ready'
  | 'to_retry'
  | 'started'
  | 'in_doubt'
  | 'deferred'
  | 'settled'

/** The attempts of a call that may be tried again. */
export interface Tries {
  /** When the first one started. */
  readonly since: number
  /** Those that failed and were to be followed by another. Not counted: what a dying process interrupted. */
  readonly failures: number
  /** How the last one failed, and when the next one starts; present while the call waits for it. */
  readonly failed?: {
    readonly outcome: Outcome
    readonly content: readonly ResultPart[]
    readonly retryAt: number
  }
}

/** A tool call of the current turn. */
export interface Call {
  readonly toolCallId: ToolCallId
  readonly part: number
  readonly providerCallId: string
  readonly name: string
  /** As the model wrote it, or as the approver changed it. */
  readonly input: JsonObject
  /** The input was removed from the record, and `input` is none: the call never starts (law 13). */
  readonly inputRemoved?: true
  readonly malformed?: { readonly text: string; readonly error: string }
  readonly opaque?: Opaque
  readonly status: CallStatus
  readonly effect?: ToolEffect
  readonly recovery?: Recovery
  readonly retry?: RetryPolicy
  readonly serial?: string
  readonly maxConcurrency?: number
  /** How the tool is meant to be asked again, as a poll is. */
  readonly repeats?: Repeats
  /** It is to go on beside the run, once it has started. */
  readonly background?: Background
  /** Of a call with a retry policy, once it was started. */
  readonly tries?: Tries
  /** The agent that does the work in a run of its own. */
  readonly child?: string
  /** The most that the child run may use; set when it starts. */
  readonly grant?: Grant
  /** Whom its success hands the conversation to. */
  readonly handoff?: Handoff
  /** Of the input that the model wrote, or that a guardrail put in its place. */
  readonly inputDigest?: string
  /** In a fork: the other run's call whose recorded result answers this one. */
  readonly recorded?: ToolCallId
  /** The event in which a person last let it run. */
  readonly approvedSeq?: number
  /** Why a person is asked. */
  readonly askReason?: string
  /** Who may approve it: each of these has to be satisfied. */
  readonly approvers?: readonly Approvers[]
  /** The people who have approved it while it waits for more. */
  readonly approvals?: readonly Approver[]
  /** Its input was repaired. */
  readonly repaired?: true
  /** When an approval that is asked for counts as denied. */
  readonly expiresAt?: number
  /** It waits for an approval that was asked for before the fork began, with a time limit: the fork asks again. */
  readonly askedElsewhere?: true
  /** The text for the model in front of the result, if an approver changed the input. */
  readonly changeNote?: string
  readonly refusal?: CallRefusal
  /** Of a call that continues outside. */
  readonly deferred?: { readonly externalId: string; readonly deadlineAt?: number }
  /** Starts so far. */
  readonly attempts: number
  /** Model calls that its tool has reported, where there are any. */
  readonly modelCalls?: number
  readonly result?: ToolResult
}

/** A call that goes on beside the run, started or in doubt. */
export interface BackgroundCall extends Call {
  /** The turn that asked for it, and the agent that did. */
  readonly turn: number
  readonly agent: string
}

/** The run exists, and nothing was sent. */
export type IdleState = RunBase & { readonly phase: 'idle' }
/** A model call is in flight, or its attempt has failed and the next one is due. */
export type StreamingState = RunBase & {
  readonly phase: 'streaming'
  readonly attempt: Attempt
  /** Attempts of this turn that failed, not counting those that a dying process interrupted. */
  readonly failures: number
  /** When the first attempt of the turn started. */
  readonly turnStartedAt: number
}
/** The reply is complete, and its calls are being checked. */
export type CollectingState = RunBase & {
  readonly phase: 'collecting'
  readonly reply: Reply
  readonly calls: readonly Call[]
}
/** Calls run, wait for their turn, or wait for a person. */
export type ExecutingState = RunBase & {
  readonly phase: 'executing'
  readonly reply: Reply
  readonly calls: readonly Call[]
  /** Guardrails have looked at the results. */
  readonly resultsChecked?: true
}
/** The results are in the history, and the controller decides whether there is another turn. */
export type InjectingState = RunBase & {
  readonly phase: 'injecting'
  readonly reply: Reply
  /** A pending handoff: a call of the turn asks that another agent takes the conversation over. */
  readonly handoff?: Handoff & { readonly tool: string }
}
/** The end. Nothing follows. */
export type DoneState = RunBase & {
  readonly phase: 'done'
  readonly reason: FinishReason
  readonly endedAt: number
  readonly detail?: string
}

/** The parts of the turn's reply that the controller needs. */
export interface Reply {
  readonly message: AssistantMessage
  readonly finalizing: boolean
  readonly failure?: ModelFailure
  readonly refusal?: ModelRefusal
  /** Names of the tools that were offered, where not all of them were. */
  readonly offered?: readonly string[]
  /** The result of the check against the schema, once there is one. */
  readonly fit?: { readonly valid: boolean; readonly error?: string }
  /** Guardrails have looked at the answer. */
  readonly guarded?: true
  /** Nothing of it is in the history: `outputStream` showed nothing of it, and later turns show what was shown. */
  readonly leftOut?: true
}

/** Everything that is known of a run: a fold of its events, nothing else. */
export type RunState =
  | IdleState
  | StreamingState
  | CollectingState
  | ExecutingState
  | InjectingState
  | DoneState

type KeysOf<State> = State extends unknown ? keyof State : never

/** Every field that belongs to a phase. The compiler refuses a phase with a field that is missing here. */
const phaseFields: { readonly [Field in Exclude<KeysOf<RunState>, keyof RunBase>]: true } = {
  phase: true,
  attempt: true,
  failures: true,
  turnStartedAt: true,
  reply: true,
  endedAt: true,
  calls: true,
  resultsChecked: true,
  handoff: true,
  reason: true,
  detail: true,
}

/** The state without what belongs to its phase. */
export function toBase(state: RunState): RunBase {
  // Copied field by field: an object that fields were deleted from is slow wherever it is read or copied again.
  const base: Record<string, unknown> = {}
  for (const field in state) {
    if (!Object.hasOwn(phaseFields, field)) base[field] = state[field as keyof RunState]
  }
  return base as unknown as RunBase
}

export function withMessage<State extends RunState>(state: State, message: Message): State {
  const contextTokens = state.contextTokens + Math.ceil(estimateMessageTokens(message) * state.estimateFactor)
  return { ...state, contextTokens, history: appendMessage(state.history, message) }
}

/** The state with another history, and with what its next request then has. */
export function withHistory<State extends RunState>(state: State, history: History): State {
  const shown = { ...state.definition, tools: filterOfferedTools(state, undefined) }
  const tokens = estimateDefinitionTokens(shown) + countHistoryTokens(history)
  return { ...state, contextTokens: Math.ceil(tokens * state.estimateFactor), reportedTokens: 0, history }
}

/**
 * When a run began, and when its last event was recorded: of a run that has ended, its end. A fork begins when its id is made: its first events are those of
 * the run that it shares them with, and have their times.
 */
export function toRunTimes(
  run: Pick<RunState, 'runId' | 'parent' | 'startedAt' | 'at'> & { readonly endedAt?: number },
): {
  readonly startedAt: number
  readonly lastAt: number
} {
  const forkedAt = run.parent?.relation === 'fork' ? extractTime(run.runId) : undefined
  const startedAt = Math.max(run.startedAt, forkedAt ?? 0)
  return { startedAt, lastAt: Math.max(startedAt, run.endedAt ?? run.at) }
}

/**
 * The state of a run as JSON, from which `deserializeState` makes the same state: what follows is folded onto it as onto
 * the other. Digests that were computed on the way are left out, and computed again when they are asked for. Shares its
 * parts with the state, so it is to be written down, and not to be changed.
 */
export function serializeState(state: RunState): JsonObject {
  const { history, callLog } = state
  return {
    ...(state as unknown as JsonObject),
    history: readMessages(history) as unknown as Json,
    callLog: readCalls(callLog) as unknown as Json,
  }
}

/** The state that `serializeState` wrote down. Anything else is taken as it comes: check before that it is such a state. */
export function deserializeState(json: JsonObject): RunState {
  const calls = json['callLog'] as unknown as readonly LoggedCall[]
  return {
    ...json,
    history: createHistory(json['history'] as unknown as readonly Message[]),
    callLog: calls.reduce(logCall, emptyCallLog),
  } as unknown as RunState
}

/** The usage of a run so far, with the last known totals of every attempt, failed ones included. */
export interface Totals {
  readonly turns: number
  /** Calls that were started, each once however many attempts it took. */
  readonly toolCalls: number
  readonly toolCallsByTool: { readonly [tool: string]: number }
  /** Turns and calls of child runs, and turns for model calls of tools. Their usage and cost are in `usage` and `costUsd`. */
  readonly children: { readonly runs: number; readonly turns: number; readonly toolCalls: number }
  readonly usage: Usage
  readonly costUsd?: number
  /** The part of `usage` and `costUsd` that is not of the latest attempt, whose numbers may still be replaced. */
  readonly settledUsage: Usage
  readonly settledCostUsd?: number
  /** Of the latest attempt. */
  readonly latestUsage: Usage
}

/** The totals of a run that has used nothing yet. Frozen, since every run begins with this object. */
export const noTotals: Totals = deepFreeze({
  turns: 0,
  toolCalls: 0,
  toolCallsByTool: {},
  children: { runs: 0, turns: 0, toolCalls: 0 },
  usage: {},
  settledUsage: {},
  latestUsage: {},
})

/** Adds the usage of others for the run: of a child run, or of a summarizing model. */
export function withSpent(totals: Totals, usage: Usage, costUsd?: number): Totals {
  const spent = {
    ...totals,
    usage: addUsage(totals.usage, usage),
    settledUsage: addUsage(totals.settledUsage, usage),
  }
  if (costUsd === undefined) return spent
  const plus = (sum: number | undefined): number => (sum ?? 0) + costUsd
  return { ...spent, costUsd: plus(totals.costUsd), settledCostUsd: plus(totals.settledCostUsd) }
}

/** Adds a model call that a tool made. It counts as a turn, as one of a child run does. */
export function withToolSpending(totals: Totals, { usage, costUsd }: ToolSpending): Totals {
  const children = { ...totals.children, turns: totals.children.turns + 1 }
  return { ...withSpent(totals, usage, costUsd), children }
}

/** Adds the totals of a child run, with those of its own child runs. */
export function withChildTotals(totals: Totals, child: ChildTotals): Totals {
  const { runs, turns, toolCalls } = totals.children
  const children = { runs: runs + 1, turns: turns + child.turns, toolCalls: toolCalls + child.toolCalls }
  return { ...withSpent(totals, child.usage, child.costUsd), children }
}

/**
 * The version of the fold. It rises whenever the state of any recorded run changes, or is written as other JSON: a
 * store keeps it with each snapshot, and never reads a snapshot of another version. The golden ledgers hold the state
 * of each version, and fail when the states change and the version does not.
 */
export const foldVersion = 8
