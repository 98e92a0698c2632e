import type { SourcedTools } from '../messages/sourced-tools.ts'
import type { AgentDefinition } from '../../vocabulary/agent/agent-definition.ts'
import type {
  AssistantMessage,
  ModelRef,
  Opaque,
  Outcome,
  ResultPart,
  ToolResult,
  UserMessage,
} from '../../vocabulary/model/content.ts'
import type {
  CallRefusal,
  FinishReason,
  GuardedThing,
  Handoff,
  ParentRef,
  ShownChange,
} from '../../vocabulary/events/event.ts'
import type { ModelFailure } from '../../vocabulary/model/failure.ts'
import type { Grant } from '../../vocabulary/limits/grant.ts'
import type { RunId, ToolCallId } from '../../vocabulary/values/ids.ts'
import type { Json, JsonObject } from '../../vocabulary/values/json.ts'
import type { LimitName, Limits, OnLimit, RetryPolicy } from '../../vocabulary/limits/limits.ts'
import type { RunGiven } from '../../vocabulary/agent/run-given.ts'
import type { ProviderState } from '../../vocabulary/model/provider-state.ts'
import type { ModelRefusal } from '../../vocabulary/model/refusal.ts'
import type { Recovery, ToolChoice, ToolEffect } from '../../vocabulary/model/tool-definition.ts'
import type { CallLog } from '../messages/call-log.ts'
import type { History } from '../messages/history.ts'
import type { Totals } from './totals.ts'

/** The phases of a run, in the order in which a run without retries comes through them. */
export const phases = ['idle', 'streaming', 'collecting', 'executing', 'injecting', 'done'] as const
export type Phase = (typeof phases)[number]

/** A limit that was met and that was not raised since. */
export interface MetLimit {
  readonly limit: LimitName
  readonly policy: OnLimit
  readonly at: number
}

/** How far a fork has come on the other run's record. */
export interface ForkProgress {
  /** Calls of the other run whose recorded results were served. */
  readonly reused: readonly string[]
  /** The turn in which a tool ran for real; what is asked for in later turns is answered by no record. */
  readonly divergedIn?: number
  /** Calls that have a result of the fork's own, such as one that was edited: no record answers them. */
  readonly own: readonly { readonly name: string; readonly inputDigest: string }[]
}

/** What is true of a run in every phase. */
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
  /** It was started with a context of its application, which no ledger holds. */
  readonly withContext?: true
  /** The first event whose content is gone from the ledger: what follows from content can no longer be judged. */
  readonly removedFrom?: number
  /** What the model is shown at the next call: messages whose calls all have their results. */
  readonly history: History
  readonly totals: Totals
  /** Where the present exchange begins in the history: at the user's first message after the last answer. */
  readonly exchangeFrom: number
  /** About how many input tokens the next request has: what was billed last, and an estimate of what came since. */
  readonly contextTokens: number
  /** The part of `contextTokens` that a provider has reported; the rest is estimated. */
  readonly reportedTokens: number
  /** What estimates are multiplied by, at least 1: learned from what providers reported of them. */
  readonly estimateFactor: number
  /** Milliseconds in which nothing was in flight and the run waited for a person, or for a process. */
  readonly waitedMs: number
  /** Answers of calls that change nothing: those that a repeated call is compared with. */
  readonly callLog: CallLog
  /** What counts as a repeat since anything last happened that may change an answer. */
  readonly standstill: Standstill
  /** How often each tool has failed with the same error in a row. */
  readonly errorStreaks: { readonly [tool: string]: ErrorStreak }
  /** Input that came while the run was at work, and has not entered the history yet. */
  readonly pendingInputs: readonly PendingInput[]
  /** Whether a user's message comes after the last reply. */
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
  readonly fork?: ForkProgress
  /** Answers that did not fit the schema, and that the model was asked to write again. */
  readonly repairs: number
  /** The text of the model's last message, `''` without one; of a wrapped answer, its own JSON. */
  readonly lastText: string
  /** The answer, as JSON that fits the schema. */
  readonly output?: { readonly value: Json }
  readonly cancel?: { readonly at: number; readonly by?: string; readonly reason?: string }
}

/** What is to be looked at before the run may act on it. */
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
  /** What the call may use. */
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

/** A stretch in which nothing happened but calls that change nothing and answers that were known. */
export interface Standstill {
  /** The place in the call log at which it begins. */
  readonly from: number
  /** The place at which the answers of the last reply begin: they come together, so none is news to another. */
  readonly replyFrom: number
  /** Calls that were not run in it, since their recorded answer was served. */
  readonly served: number
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
  /** What the model wrote, where `outputStream` of its agent showed another text. */
  readonly written?: string
}

/** One try of a model call. */
export interface Attempt {
  readonly number: number
  readonly model: ModelRef
  readonly toolChoice: ToolChoice
  /** The one call past a limit, which writes the answer. */
  readonly finalizing: boolean
  /** What it may use. */
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

/** How an attempt failed. */
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
  /** `allowed`: meant to be asked again, such as a poll, so equal answers in a row are no sign of a stuck model. */
  readonly repeats?: 'allowed'
  /** Of a call with a retry policy, once it was started. */
  readonly tries?: Tries
  /** The agent that does the work in a run of its own. */
  readonly child?: string
  /** What that run may use, once it was started. */
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
  /** When an approval that is asked for counts as denied. */
  readonly expiresAt?: number
  /** It waits for an approval that was asked for before the fork began, with a time limit: the fork asks anew. */
  readonly askedElsewhere?: true
  /** What the model reads in front of the result, where an approver changed the input. */
  readonly changeNote?: string
  readonly refusal?: CallRefusal
  /** Of a call that continues outside. */
  readonly deferred?: { readonly externalId: string; readonly deadlineAt?: number }
  /** Starts so far. */
  readonly attempts: number
  readonly result?: ToolResult
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
  readonly detail?: string
}

/** What the controller has to know of the turn's reply. */
export interface Reply {
  readonly message: AssistantMessage
  readonly finalizing: boolean
  readonly failure?: ModelFailure
  readonly refusal?: ModelRefusal
  /** Names of the tools that were offered, where not all of them were. */
  readonly offered?: readonly string[]
  /** Whether the answer fits the schema, once that is known. */
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
