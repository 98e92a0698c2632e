import { type ModelFailure, failureClasses } from '../values/errors.ts'
import { parseRunId, type RunId, type ToolCallId } from '../values/ids.ts'
import type { JsonObject } from '../values/json.ts'
import {
  amount,
  count,
  exactly,
  flag,
  jsonObject,
  listOf,
  maybe,
  objectOf,
  ordinal,
  type Schema,
  type ShapeOf,
  text,
  valueThat,
  wordOf,
} from '../values/schema.ts'
import {
  type Message,
  message,
  type ModelRef,
  modelRef,
  type Outcome,
  outcome,
  type ReasoningPart,
  type TextPart,
  toolCallId,
  writtenContent,
} from './content.ts'
import {
  type Background,
  backgrounds,
  type Grant,
  grant,
  type Repeats,
  repeats,
  retry,
  type RetryPolicy,
} from './limits.ts'
import {
  modelSettings,
  type ModelSettings,
  recoveries,
  type Recovery,
  type ToolDefinition,
  type ToolChoice,
  toolChoice,
  toolDefinition,
  type ToolEffect,
  toolEffects,
} from './model-request.ts'
import { money, usage, type Usage } from './usage.ts'

export const runId: Schema<RunId> = valueThat(
  'a run id',
  (value) => typeof value === 'string' && parseRunId(value) !== undefined,
)
/** A failed model call, as data. */
export const failure: Schema<ModelFailure> = objectOf({
  class: wordOf(failureClasses),
  message: text,
  retryable: flag,
  retryAfterMs: maybe(amount),
  status: maybe(amount),
  requestId: maybe(text),
})

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

/** What is done to a session beside its runs. */
export const sessionEdits = ['append', 'pop', 'clear', 'branch', 'withdraw'] as const
export type SessionEdit = (typeof sessionEdits)[number]

/** Work of the stopped process that a resume found in flight. */
export const resumeReasons = ['command', 'crash', 'takeover'] as const
export type ResumeReason = (typeof resumeReasons)[number]

/** What becomes of the times of a schedule at which nothing was there to fire it: none, one for all, or each of them. */
export const missedPolicies = ['skip', 'once', 'each'] as const
export type MissedPolicy = (typeof missedPolicies)[number]

/** When a schedule starts runs: by a cron pattern, once, or again and again. Times are in milliseconds since 1970 UTC. */
export interface Schedule {
  readonly name?: string
  /** Five fields: minute, hour, day of the month, month, day of the week. */
  readonly cron?: string
  /** Of the cron pattern, such as `Europe/Berlin`. */
  readonly timeZone?: string
  readonly onceAt?: number
  /** From the start of the schedule on. */
  readonly everyMs?: number
  readonly missed: MissedPolicy
}

/** How a collected call continues: it runs, a person decides first, or it is settled without running. */
export const callPlans = ['run', 'ask', 'settle'] as const
export type CallPlan = (typeof callPlans)[number]

/** Where the conversation goes: to another agent or, without one, to the caller that started the run. */
export interface Handoff {
  readonly to: string
  /** The run ends as `handed_back`. */
  readonly back?: true
}

/** The result of a call that is not started. */
export interface CallRefusal {
  readonly outcome: Outcome
  readonly text: string
  /** The stack of the exception that a check or a policy threw, with its causes; the model does not see it. */
  readonly error?: string
}

/** Who may approve a call. */
export interface Approvers {
  /** How many different people have to approve it, none of them the owner of the run. Default: 1. */
  readonly count?: number
  /** Roles of which each of them has at least one. Default: any. */
  readonly roles?: readonly string[]
}
const aRole = valueThat('a list with at least one role', (value) => (value as readonly unknown[]).length > 0)
const someRoles: Schema<readonly string[]> = (value) => listOf(text)(value) ?? aRole(value)
/** The most people that a call may need. */
const mostApprovers = 100
export const approvers: Schema<Approvers> = objectOf({
  count: maybe(
    valueThat(
      `a whole number from 1 to ${mostApprovers}`,
      (value) => Number.isInteger(value) && (value as number) >= 1 && (value as number) <= mostApprovers,
    ),
  ),
  roles: maybe(someRoles),
})

/** A person who approved, with the roles that the application knew them to have. */
export interface Approver {
  readonly by: string
  readonly roles?: readonly string[]
}

/** The calls that a standing approval covers: all of its tool in the session, or those with an equal input. */
export const standingScopes = ['session', 'equal_input'] as const
export type StandingScope = (typeof standingScopes)[number]

/** What later calls an approval covers, and for how long. */
export interface StandingOptions {
  readonly for: StandingScope
  /** In milliseconds. */
  readonly expiresInMs: number
}
export const standingOptions: Schema<StandingOptions> = objectOf({
  for: wordOf(standingScopes),
  expiresInMs: amount,
})

/**
 * An approval that also lets later calls of the same tool and agent run, in its run and the later runs of its session about the
 * same subject, until it expires or is withdrawn. Forks, branches and child runs have none of it.
 */
export interface StandingApproval extends Approver {
  /** The call that was approved, by which the standing approval is known. */
  readonly toolCallId: ToolCallId
  readonly agent: string
  /** The tool. */
  readonly name: string
  /** The digest of the tool as the model was shown it, and of its effect: a changed tool is asked about again. */
  readonly toolDigest: string
  /** The input that calls must have; absent if it may be any. */
  readonly inputDigest?: string
  /** Milliseconds since 1970 UTC. */
  readonly expiresAt: number
}
/** One call as `tool_requests_collected` names it. Digests are SHA-256 over the canonical JSON of the input, in hex. */
export interface CollectedCall {
  readonly toolCallId: ToolCallId
  readonly name: string
  readonly plan: CallPlan
  readonly inputDigest: string
  /** The effect of the tool with that name. */
  readonly effect?: ToolEffect
  readonly recovery?: Recovery
  /** How failed attempts are retried. */
  readonly retry?: RetryPolicy
  /** Calls with one key run one at a time. */
  readonly serial?: string
  /** How many calls of the tool run at the same time. */
  readonly maxConcurrency?: number
  /** Present for a tool that is meant to be called repeatedly, such as a poll. */
  readonly repeats?: Repeats
  /** The call goes on beside the run; its first result is a handle. */
  readonly background?: Background
  /** The agent that does the work, in a child run. */
  readonly child?: string
  /** Its success hands the conversation over. */
  readonly handoff?: Handoff
  /** The input that replaces the model's, from a guardrail or a repair. */
  readonly input?: JsonObject
  /** The repairs of the model's input. */
  readonly repairs?: readonly string[]
  /** Why a person is asked, or why the call runs without that. */
  readonly reason?: string
  /** Who may approve it: each of these has to be satisfied. */
  readonly approvers?: readonly Approvers[]
  /** In a fork: the call of the source run whose recorded result answers this one, so that nothing runs. */
  readonly recorded?: ToolCallId
  /** The result of a call that is settled without running. */
  readonly refusal?: CallRefusal
}
export const collectedCall: Schema<CollectedCall> = objectOf({
  toolCallId,
  name: text,
  plan: wordOf(callPlans),
  inputDigest: text,
  effect: maybe(wordOf(toolEffects)),
  recovery: maybe(wordOf(recoveries)),
  retry: maybe(retry),
  serial: maybe(text),
  maxConcurrency: maybe(amount),
  repeats: maybe(repeats),
  background: maybe(wordOf(backgrounds)),
  reason: maybe(text),
  approvers: maybe(listOf(approvers)),
  child: maybe(text),
  input: maybe(jsonObject),
  repairs: maybe(listOf(text)),
  recorded: maybe(toolCallId),
  handoff: maybe(objectOf({ to: text, back: maybe(exactly(true)) })),
  refusal: maybe(objectOf({ outcome, text, error: maybe(text) })),
})

/** More of a text, or of the reasoning, of a reply. */
export interface ReplyDelta {
  readonly attempt: number
  readonly part: number
  readonly text: string
  /** The text replaces all earlier text of the part, which its provider withdrew at the end. */
  readonly replaces?: true
  /** The text that the model wrote, if the agent's `outputStream` showed `text` instead; `''` if it had held `text` back. */
  readonly written?: string
}
export const deltaFields: ShapeOf<ReplyDelta> = {
  attempt: ordinal,
  part: count,
  text,
  replaces: maybe(exactly(true)),
  written: maybe(text),
}

/** A part of a reply as the model wrote it, by its index in the message that shows another text. */
export interface WrittenPart {
  readonly index: number
  readonly part: TextPart | ReasoningPart
}
export const writtenPart: Schema<WrittenPart> = objectOf({ index: count, part: writtenContent })

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
   * The parent counted before the child had ended: everything that was granted or, without a grant, what it had used so far.
   */
  readonly estimated?: true
}
/** Amounts below 0 are invalid: no provider pays back. */
export const childTotals: Schema<ChildTotals> = objectOf({
  runId,
  turns: count,
  toolCalls: count,
  usage,
  costUsd: maybe(money),
  estimated: maybe(exactly(true)),
})

/** The estimated use of a model call whose provider did not report it. */
export interface Spending {
  readonly usage: Usage
  readonly costUsd?: number
}
const spendingFields: ShapeOf<Spending> = { usage, costUsd: maybe(money) }
export const spending: Schema<Spending> = objectOf(spendingFields)

/** Usage of one model call that a tool made while it ran. */
export interface ToolSpending extends Spending {
  readonly model: ModelRef
}
export const toolSpending: Schema<ToolSpending> = objectOf({ model: modelRef, ...spendingFields })

/** Messages that a turn showed, recorded as the difference from the history. */
export interface ShownMessages {
  /** The running digest of all of them. */
  readonly digest: string
  /** All of them, in order. */
  readonly pieces: readonly ShownPiece[]
}

/** A range of the history, its end not included, or messages of the turn itself. */
export type ShownPiece =
  | { readonly from: number; readonly to: number }
  | { readonly messages: readonly Message[] }
/** Checked as one object, so that a fault names its place. */
const shownPiece = objectOf<{
  readonly from?: number
  readonly to?: number
  readonly messages?: readonly Message[]
}>({ from: maybe(count), to: maybe(count), messages: maybe(listOf(message)) }) as Schema<ShownPiece>

/** A turn's own instructions, tools or history, in place of those of the definition and the run. */
export interface ShownChange {
  readonly instructions?: string
  /** Names of the offered tools, if not all were. */
  readonly tools?: readonly string[]
  /** The tools of the agent's source from this turn on; absent if they did not change. */
  readonly sourced?: readonly ToolDefinition[]
  /** The messages that were shown, if they differ from the history. */
  readonly shown?: ShownMessages
  /** All of them in full, as older releases recorded them. */
  readonly messages?: readonly Message[]
  /** Each setting overrides that of the run and of the agent. */
  readonly modelSettings?: ModelSettings
  readonly parallelToolCalls?: boolean
  /** The most output tokens that the turn asked for. */
  readonly maxOutputTokens?: number
}
export const shownChange: Schema<ShownChange> = objectOf({
  instructions: maybe(text),
  tools: maybe(listOf(text)),
  sourced: maybe(listOf(toolDefinition)),
  shown: maybe(objectOf({ digest: text, pieces: listOf(shownPiece) })),
  messages: maybe(listOf(message)),
  modelSettings: maybe(modelSettings),
  parallelToolCalls: maybe(flag),
  maxOutputTokens: maybe(amount),
})

/** A turn's call as the agent's code has prepared it: what differs from the run's own. */
export interface PreparedCall {
  readonly model?: ModelRef
  readonly toolChoice?: ToolChoice
  readonly change: ShownChange
}
export const preparedCall: Schema<PreparedCall> = objectOf({
  model: maybe(modelRef),
  toolChoice: maybe(toolChoice),
  change: shownChange,
})

/** A change of the past: replaces or removes the message at an index of the history. */
export interface HistoryEdit {
  readonly index: number
  /** Absent: the message is removed. */
  readonly message?: Message
}

/** The content that a guardrail checks. */
export const guardedThings = ['input', 'output', 'tool_input', 'tool_output'] as const
export type GuardedThing = (typeof guardedThings)[number]

/**
 * The action of a guardrail on a finding:
 * - `block`: on input and output the run ends as `guardrail`; a tool call is not run, or its result is withheld
 * - `replace`: the replacement is used from here on
 * - `record`: the finding is only recorded
 */
export const guardrailActions = ['block', 'replace', 'record'] as const
export type GuardrailAction = (typeof guardrailActions)[number]

/**
 * How a fork treats a write that no recorded result answers:
 * - `ask`: it waits for an approval
 * - `stub`: it is not performed, and the model is told so
 * - `run`: it is performed, if its approval is not asked for
 */
export const forkWrites = ['ask', 'stub', 'run'] as const
export type ForkWrites = (typeof forkWrites)[number]

/**
 * The run from which a run comes: a `fork` shares its first events, up to `seq`; a `child` does the work of one of its calls; a
 * `session` run follows it; a `branch` begins with its history up to `seq`.
 */
export interface ParentRef {
  readonly runId: RunId
  readonly seq: number
  readonly relation: 'fork' | 'child' | 'session' | 'branch'
  /** In a fork and its child runs: what happens to writes. Absent: they are performed. */
  readonly writes?: ForkWrites
  /** In a child run: what its parent granted. None of its limits can be raised above that. */
  readonly grant?: Grant
}
export const parent: Schema<ParentRef> = objectOf({
  runId,
  seq: count,
  relation: wordOf(['fork', 'child', 'session', 'branch']),
  writes: maybe(wordOf(forkWrites)),
  grant: maybe(grant),
})

/** The history that a run begins with. */
export interface CarriedHistory {
  readonly messages: readonly Message[]
  /** If content was removed: how many messages came before `messages`. */
  readonly missing?: number
  /** The index of the first message that guardrails have not passed, if any. */
  readonly uncheckedFrom?: number
}

/** Replaces a text that is gone. Never empty, since providers refuse an empty text. */
export const removedText = '[removed]'

/** The first millisecond of the year 0000 and the last of 9999, since 1970 UTC: dates that ISO 8601 writes alike. */
const FIRST_MOMENT = -62_167_219_200_000
export const LAST_MOMENT = 253_402_300_799_999

/**
 * Returns whether a number is a moment: whole milliseconds since 1970 UTC, within the years that every reader of a ledger can
 * write as a date.
 */
export function isMoment(at: unknown): at is number {
  return Number.isSafeInteger(at) && (at as number) >= FIRST_MOMENT && (at as number) <= LAST_MOMENT
}

/** Milliseconds since 1970. */
export const moment: Schema<number> = valueThat('milliseconds of the years 0 to 9999', isMoment, {
  showsText: true,
})

export const standingApproval: Schema<StandingApproval> = objectOf({
  toolCallId,
  by: text,
  roles: maybe(listOf(text)),
  agent: text,
  name: text,
  toolDigest: text,
  inputDigest: maybe(text),
  expiresAt: moment,
})

/** The moment some milliseconds after another, rounded up; a wait that goes past the last moment ends there. */
export function addMs(at: number, ms: number): number {
  return Math.min(at + Math.ceil(ms), LAST_MOMENT)
}

/** Why the content of an event was removed, and by whom. */
export interface Removed {
  /**
   * `redacted` by a caller; `expired` under a rule of retention; `erased` with the key of the run's subject.
   * `sealed`: the content exists, but the reader has no keys.
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
  'approval_added',
  'approval_decided',
  'approval_applied',
  'tool_started',
  'tool_progress',
  'tool_deferred',
  'tool_attempt_failed',
  'tool_result',
  'background_ended',
] as const
export type CallEventType = (typeof callEventTypes)[number]

/**
 * The cause of an event: the type of the command or signal that the machine received, or `controller` if the loop controller
 * decided from the state alone.
 */
export const causes = [
  'start',
  'resume',
  'steer',
  'queue',
  'approve',
  'deny',
  'settle',
  'withdraw',
  'cancel',
  'raise_limit',
  'set_schedule',
  'feedback',
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

/** The fields of every event. `seq` counts 1, 2, 3 … within the run; `at` is milliseconds since 1970 UTC. */
export interface EventEnvelope {
  readonly runId: RunId
  readonly seq: number
  /** The writer that appended it: each take-over of the run raises it. */
  readonly epoch: number
  /** 0 before the first model call. */
  readonly turn: number
  /** Milliseconds since 1970 UTC, in the years 0 to 9999. Never decreases within a run, whatever the clocks do. */
  readonly at: number
  /** The version of this event type's body. */
  readonly v: number
  /** On events that concern one tool call. */
  readonly toolCallId?: ToolCallId
  /** The message that decided the event, if type and body do not say so (`deriveCause`). */
  readonly cause?: Cause
  /** Set if a command in the inbox caused the event: its key, by which the sender finds the decision. */
  readonly inboxKey?: string
  /** The process was draining: it decided what had arrived, and began nothing new. */
  readonly draining?: true
  /** Present if content was removed: the event keeps its facts, with markers in place of content. */
  readonly removed?: Removed
}
export const envelopeFields: ShapeOf<EventEnvelope> = {
  runId,
  seq: ordinal,
  epoch: ordinal,
  turn: count,
  at: moment,
  v: ordinal,
  toolCallId: maybe(toolCallId),
  cause: maybe(wordOf(causes)),
  inboxKey: maybe(text),
  draining: maybe(exactly(true)),
  removed: maybe(
    objectOf({
      kind: wordOf(['redacted', 'expired', 'erased', 'sealed']),
      at: maybe(moment),
      by: maybe(text),
      reason: maybe(text),
    }),
  ),
}
