import type { AgentDefinition } from '../vocabulary/agent-definition.ts'
import type { AssistantMessage, ModelRef, Opaque, ToolResult, UserMessage } from '../vocabulary/content.ts'
import type { CallRefusal, FinishReason, ParentRef, ShownChange } from '../vocabulary/event.ts'
import type { ModelFailure } from '../vocabulary/failure.ts'
import type { RunId, ToolCallId } from '../vocabulary/ids.ts'
import type { JsonObject } from '../vocabulary/json.ts'
import type { LimitName, Limits, OnLimit, RetryPolicy } from '../vocabulary/limits.ts'
import type { Price } from '../vocabulary/price.ts'
import type { Recovery, ToolChoice, ToolEffect } from '../vocabulary/tool-definition.ts'
import type { Usage } from '../vocabulary/usage.ts'
import type { CallLog } from './call-log.ts'
import type { History } from './history.ts'

/** The phases of a run, in the order in which a run without retries comes through them. */
export const phases = ['idle', 'streaming', 'collecting', 'executing', 'injecting', 'done'] as const
export type Phase = (typeof phases)[number]

/** What a run has used so far. Usage holds the last known totals of every attempt, failed ones included. */
export interface Totals {
  readonly turns: number
  /** Calls that were started, each once however many attempts it took. */
  readonly toolCalls: number
  readonly toolCallsByTool: { readonly [tool: string]: number }
  /** Calls that were not run because their recorded answer was served. */
  readonly repeated: number
  readonly usage: Usage
  readonly costUsd?: number
  /** The part of `usage` and `costUsd` that is not of the latest attempt, whose numbers may still be replaced. */
  readonly settledUsage: Usage
  readonly settledCostUsd?: number
  /** Of the latest attempt. */
  readonly latestUsage: Usage
}

/** A limit that was met and that nobody has raised since. */
export interface MetLimit {
  readonly limit: LimitName
  readonly policy: OnLimit
  readonly at: number
}

/** What is true of a run in every phase. */
export interface RunFacts {
  readonly runId: RunId
  /** The last event's number, epoch and time. */
  readonly seq: number
  readonly epoch: number
  readonly at: number
  readonly turn: number
  readonly startedAt: number
  readonly agent: string
  readonly definition: AgentDefinition
  readonly limits: Limits
  readonly retry: RetryPolicy
  readonly sessionId?: string
  readonly parent?: ParentRef
  /** What the model is shown at the next call: messages whose calls all have their results. */
  readonly history: History
  readonly totals: Totals
  /** About how many input tokens the next request has: what was billed last, and an estimate of what came since. */
  readonly contextTokens: number
  /** Milliseconds in which nothing was in flight and the run waited for a person, or for a process. */
  readonly waitedMs: number
  readonly callLog: CallLog
  /** How often each tool has failed with the same error in a row. */
  readonly errorStreaks: { readonly [tool: string]: ErrorStreak }
  /** Input that came while the run was at work, and has not entered the history yet. */
  readonly pendingInputs: readonly PendingInput[]
  /** Whether a user's message stands behind the last reply. */
  readonly inputSinceReply: boolean
  /** The turn in which the history was last shortened. */
  readonly compactedTurn?: number
  /** Take-overs that found something in flight, since a reply or a result was last recorded. */
  readonly takeOvers: number
  /** The model in use, where it is not the definition's. */
  readonly model?: ModelRef
  readonly metLimit?: MetLimit
  readonly cancel?: { readonly at: number; readonly by?: string; readonly reason?: string }
}

/** Input that waits for its place. */
export interface PendingInput {
  readonly receipt: string
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
}

/** One try of a model call. */
export interface Attempt {
  readonly number: number
  readonly model: ModelRef
  readonly toolChoice: ToolChoice
  /** The one call past a limit, which writes the answer. */
  readonly finalizing: boolean
  readonly maxOutputTokens?: number
  readonly change?: ShownChange
  readonly requestDigest: string
  readonly drafts: readonly PartDraft[]
  /** Places of the reply that hold calls, in the order in which they were first seen. */
  readonly callParts: readonly number[]
  readonly calls: readonly Call[]
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
 * Where a call stands.
 * - `requested`: the model asked
 * - `to_settle`: gets the result in `refusal`, without being started
 * - `to_ask`, `awaiting_approval`: a person has to decide; was asked
 * - `ready`: may be started
 * - `started`: its effect may have begun
 * - `in_doubt`: was started by a writer that is gone, and nobody recorded its ending
 * - `deferred`: goes on outside, and is settled later
 * - `settled`: has its result
 */
export type CallStatus =
  | 'requested'
  | 'to_settle'
  | 'to_ask'
  | 'awaiting_approval'
  | 'ready'
  | 'started'
  | 'in_doubt'
  | 'deferred'
  | 'settled'

/** A tool call of the current turn. */
export interface Call {
  readonly toolCallId: ToolCallId
  readonly part: number
  readonly providerCallId: string
  readonly name: string
  /** As the model wrote it, or as the approver changed it. */
  readonly input: JsonObject
  readonly malformed?: { readonly text: string; readonly error: string }
  readonly opaque?: Opaque
  readonly status: CallStatus
  readonly effect?: ToolEffect
  readonly recovery?: Recovery
  /** Of the input that the model wrote. */
  readonly inputDigest?: string
  /** Why a person is asked. */
  readonly askReason?: string
  /** When an approval that is asked for counts as denied. */
  readonly expiresAt?: number
  readonly refusal?: CallRefusal
  /** Of a call that goes on outside. */
  readonly deferred?: { readonly receipt: string; readonly deadlineAt?: number }
  /** Starts so far. */
  readonly attempts: number
  readonly result?: ToolResult
}

/** The run exists, and nothing was sent. */
export type IdleState = RunFacts & { readonly phase: 'idle' }
/** A model call is in flight, or its attempt has failed and the next one is due. */
export type StreamingState = RunFacts & {
  readonly phase: 'streaming'
  readonly attempt: Attempt
  /** Attempts of this turn that failed, not counting those that a dying process interrupted. */
  readonly failures: number
  /** When the first attempt of the turn started. */
  readonly turnStartedAt: number
}
/** The reply is complete, and its calls are being checked. */
export type CollectingState = RunFacts & {
  readonly phase: 'collecting'
  readonly reply: Reply
  readonly calls: readonly Call[]
}
/** Calls run, wait for their turn, or wait for a person. */
export type ExecutingState = RunFacts & {
  readonly phase: 'executing'
  readonly reply: Reply
  readonly calls: readonly Call[]
}
/** The results are in the history, and the controller decides whether there is another turn. */
export type InjectingState = RunFacts & { readonly phase: 'injecting'; readonly reply: Reply }
/** The end. Nothing follows. */
export type DoneState = RunFacts & {
  readonly phase: 'done'
  readonly reason: FinishReason
  readonly detail?: string
}

/** What the controller has to know of the turn's reply. */
export interface Reply {
  readonly message: AssistantMessage
  readonly finalizing: boolean
  readonly failure?: ModelFailure
}

/** Everything that is known of a run: a fold of its events, nothing else. */
export type RunState =
  | IdleState
  | StreamingState
  | CollectingState
  | ExecutingState
  | InjectingState
  | DoneState

/** The model that the run uses now. */
export function currentModel(state: RunState): ModelRef {
  return state.model ?? state.definition.model
}

/** What the model in use costs, where that is known. */
export function currentPrice(state: RunState): Price | undefined {
  const { definition } = state
  const { modelId, provider } = state.phase === 'streaming' ? state.attempt.model : currentModel(state)
  const fallback = (definition.fallbacks ?? []).find(
    (other) => other.model.modelId === modelId && other.model.provider === provider,
  )
  return fallback ? fallback.price : definition.price
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

/** Finds a call of the current turn. */
export function findCall(state: RunState, toolCallId: string): Call | undefined {
  return openTurnCalls(state).find((call) => call.toolCallId === toolCallId)
}
