import type { ModelSettings, Recovery, ToolDefinition, ToolEffect } from './model-request.ts'
import type { Message, ModelRef, Outcome, ReasoningPart, TextPart } from './content.ts'
import type { Grant, Repeats, RetryPolicy } from './limits.ts'
import type { RunId, ToolCallId } from '../values/ids.ts'
import type { JsonObject } from '../values/json.ts'
import type { Usage } from './usage.ts'

/** Why a run ended. */
export const finishReasons = [
  'answered',
  'turn_limit',
  'tool_call_limit',
  'token_limit',
  'cost_limit',
  'time_limit',
  'repeat_limit',
  'cancelled',
  'refused',
  'output_truncated',
  'context_overflow',
  'guardrail',
  'handed_back',
  'model_failed',
  'empty_reply',
  'output_invalid',
  'stopped',
] as const
export type FinishReason = (typeof finishReasons)[number]

/** How a user message reached the run: its first input, into the next injection, or after the answer. */
export const deliveries = ['start', 'steer', 'queue'] as const
export type Delivery = (typeof deliveries)[number]

/** What a resume found in flight when the process before it stopped. */
export const resumeReasons = ['command', 'crash', 'takeover'] as const
export type ResumeReason = (typeof resumeReasons)[number]

/** What happens to a collected call: it runs, a person decides first, or it is settled without running. */
export const callPlans = ['run', 'ask', 'settle'] as const
export type CallPlan = (typeof callPlans)[number]

/** One call as `tool_requests_collected` names it. Digests are SHA-256 over the canonical JSON of the input, in hex. */
export interface CollectedCall {
  readonly toolCallId: ToolCallId
  readonly name: string
  readonly plan: CallPlan
  readonly inputDigest: string
  /** Of the tool that was found under the name. */
  readonly effect?: ToolEffect
  readonly recovery?: Recovery
  /** How its failed attempts are tried again. */
  readonly retry?: RetryPolicy
  /** Calls with one key run one at a time. */
  readonly serial?: string
  /** How many calls of the tool run at the same time. */
  readonly maxConcurrency?: number
  /** How the tool is meant to be asked again, as a poll is. */
  readonly repeats?: Repeats
  /** The agent that does the work, in a run of its own. */
  readonly child?: string
  /** Its success hands the conversation over. */
  readonly handoff?: Handoff
  /** The input that a guardrail, or a repair, put in the place of the model's. */
  readonly input?: JsonObject
  /** What the tool repaired in the model's input, which did not fit. */
  readonly repairs?: readonly string[]
  /** Why a person is asked. */
  readonly reason?: string
  /** In a fork: the call of the other run whose recorded result answers this one, so that nothing runs. */
  readonly recorded?: ToolCallId
  /** What a call that is settled without running gets for a result. */
  readonly refusal?: CallRefusal
}

/** Where the conversation goes: to another agent or, without one, to the caller that started the run. */
export interface Handoff {
  readonly to: string
  /** The run ends as `handed_back`. */
  readonly back?: true
}

/** More of a text, or of the reasoning, of a reply. */
export interface ReplyDelta {
  readonly attempt: number
  readonly part: number
  readonly text: string
  /** The text replaces all earlier text of the part, which its provider took back at the end. */
  readonly replaces?: true
  /** What the model wrote, where `outputStream` of its agent showed `text` instead; `''` where it held `text` back before. */
  readonly written?: string
}

/** A part of a reply as the model wrote it, by its index among the parts of the message that shows another text. */
export interface WrittenPart {
  readonly index: number
  readonly part: TextPart | ReasoningPart
}

/** Who decided something, and why, in the words of the application. */
export interface Attribution {
  readonly by?: string
  readonly reason?: string
}

/** The totals of a child run, as its parent counts them. */
export interface ChildTotals {
  readonly runId: RunId
  /** Its own and those of its children. */
  readonly turns: number
  readonly toolCalls: number
  readonly usage: Usage
  readonly costUsd?: number
  /**
   * Its parent counted before it had ended: all that it was granted, and where nothing was granted what it had used until
   * then.
   */
  readonly estimated?: true
}

/** The estimated use of a model call whose provider did not report it. */
export interface Spending {
  readonly usage: Usage
  readonly costUsd?: number
}

/** The use of one model call that a tool made while it ran. */
export interface ToolSpending extends Spending {
  readonly model: ModelRef
}

/** The result of a call that is not started. */
export interface CallRefusal {
  readonly outcome: Outcome
  readonly text: string
}

/** What one turn shows a model instead of the definition's instructions and tools, or of the history. */
export interface ShownChange {
  readonly instructions?: string
  /** Names of the tools that were offered, where not all that there are. */
  readonly tools?: readonly string[]
  /** The tools of the agent's source from this turn on, whole; absent where they are those of the turn before. */
  readonly sourced?: readonly ToolDefinition[]
  /** The messages that were shown, where not those of the history. */
  readonly shown?: ShownMessages
  /** The same whole, as older releases recorded it. */
  readonly messages?: readonly Message[]
  /** Each setting overrides that of the run and of the agent. */
  readonly modelSettings?: ModelSettings
  readonly parallelToolCalls?: boolean
  /** Output tokens that the turn asked for, at most. */
  readonly maxOutputTokens?: number
}

/** Messages that a turn showed instead of the history, as what differs from it. */
export interface ShownMessages {
  /** The running digest of all of them. */
  readonly digest: string
  /** All of them, in order. */
  readonly pieces: readonly ShownPiece[]
}

/** Messages of the history, from a place on and up to before another, or messages of the turn's own. */
export type ShownPiece =
  | { readonly from: number; readonly to: number }
  | { readonly messages: readonly Message[] }

/** A change of the past: the message at a place of the history, from 0, is another one, or is gone. */
export interface HistoryEdit {
  readonly index: number
  /** Absent: the message is removed. */
  readonly message?: Message
}

/** What a guardrail checks. */
export const guardedThings = ['input', 'output', 'tool_input', 'tool_output'] as const
export type GuardedThing = (typeof guardedThings)[number]

/**
 * What a guardrail does about a finding:
 * - `block`: on input and output the run ends as `guardrail`; a tool call is not run, or its result withheld
 * - `replace`: the replacement is used from here on
 * - `record`: the finding is only recorded
 */
export const guardrailActions = ['block', 'replace', 'record'] as const
export type GuardrailAction = (typeof guardrailActions)[number]

/**
 * The run that a run comes from: `fork` shares its first events, up to `seq`; `child` does the work of one of its calls; `session` follows
 * it; `branch` begins with its history up to `seq`.
 */
export interface ParentRef {
  readonly runId: RunId
  readonly seq: number
  readonly relation: 'fork' | 'child' | 'session' | 'branch'
  /** Of a fork and its child runs: what happens to writes. Absent: they are performed. */
  readonly writes?: ForkWrites
  /** Of a child run: what its parent granted it. None of its limits is raised above that. */
  readonly grant?: Grant
}

/** The history that a run begins with. */
export interface CarriedHistory {
  readonly messages: readonly Message[]
  /** If content is gone: how many messages came before `messages`. */
  readonly missing?: number
  /** The first message that guardrails have not passed, if there is one: its place, from 0. */
  readonly uncheckedFrom?: number
}

/** Replaces a text that is gone. Never empty, since providers refuse an empty text. */
export const removedText = '[removed]'

/**
 * What happens to a write in a fork that no recorded result answers:
 * - `ask`: it waits for an approval
 * - `stub`: it is not performed, and the model reads so
 * - `run`: it is performed, if its approval is not asked for
 */
export const forkWrites = ['ask', 'stub', 'run'] as const
export type ForkWrites = (typeof forkWrites)[number]

/** Why the content of an event is gone, and who removed it. */
export interface Removed {
  /**
   * `redacted` by a caller; `expired` under a rule of retention; `erased` with the key of the run's subject.
   * `sealed`: the content is there, but the reader has no keys.
   */
  readonly kind: 'redacted' | 'expired' | 'erased' | 'sealed'
  /** Milliseconds since 1970 UTC. Absent for `erased`: no ledger records when a key was destroyed. */
  readonly at?: number
  readonly by?: string
  readonly reason?: string
}

/** Event types that always concern one tool call, and so always name it. */
export const callEventTypes = [
  'tool_input_delta',
  'tool_request_ready',
  'approval_requested',
  'approval_decided',
  'tool_started',
  'tool_progress',
  'tool_deferred',
  'tool_attempt_failed',
  'tool_result',
] as const
export type CallEventType = (typeof callEventTypes)[number]

/** What every event has. `seq` counts 1, 2, 3 … within the run; `at` is milliseconds since 1970 UTC. */
export interface EventEnvelope {
  readonly runId: RunId
  readonly seq: number
  /** Which writer appended it: each take-over of the run raises it. */
  readonly epoch: number
  /** 0 before the first model call. */
  readonly turn: number
  /** Milliseconds since 1970 UTC, in the years 0 to 9999. Never falls within a run, whatever the clocks of its processes do. */
  readonly at: number
  /** The version of this event type's body. */
  readonly v: number
  /** On events that concern one tool call. */
  readonly toolCallId?: ToolCallId
  /** What decided the event, where its type and body do not say it: `usualCause` is what they say. */
  readonly cause?: Cause
  /** The key of the inbox entry that decided the event, where one did: its sender finds the decision by it. */
  readonly inboxKey?: string
  /** The process was being drained: what had arrived was decided, and nothing that followed from it was begun. */
  readonly draining?: true
  /** Present where what was said is gone from the ledger: the event holds its facts, and markers in the place of content. */
  readonly removed?: Removed
}

/**
 * What decides an event: the type of the command or signal that the machine received, or `controller`, where the loop
 * controller found in the state what is pending.
 */
export const causes = [
  'start',
  'resume',
  'steer',
  'queue',
  'approve',
  'deny',
  'settle',
  'cancel',
  'raise_limit',
  'model_started',
  'model_text',
  'model_reasoning',
  'model_tool_input',
  'model_tool_request',
  'model_usage',
  'model_finished',
  'model_failed',
  'calls_checked',
  'tool_progressed',
  'tool_deferred',
  'tool_ended',
  'call_reconciled',
  'guardrails_checked',
  'output_checked',
  'summarized',
  'controller',
] as const
export type Cause = (typeof causes)[number]

/** The first millisecond of the year 0000 and the last of 9999, since 1970 UTC: dates that ISO 8601 writes alike. */
const FIRST_MOMENT = -62_167_219_200_000
export const LAST_MOMENT = 253_402_300_799_999

/**
 * Whether a number is a moment: whole milliseconds since 1970 UTC, within the years that every reader of a ledger can
 * write as a date.
 */
export function isMoment(at: unknown): at is number {
  return Number.isSafeInteger(at) && (at as number) >= FIRST_MOMENT && (at as number) <= LAST_MOMENT
}

/** The moment some milliseconds after another, rounded up; a wait that goes past the last moment ends there. */
export function momentAfter(at: number, ms: number): number {
  return Math.min(at + Math.ceil(ms), LAST_MOMENT)
}
