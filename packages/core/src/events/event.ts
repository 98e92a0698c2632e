import {
  type AgentDefinition,
  agentDefinition,
  givenModel,
  recordingPolicy,
  requestAddition,
  type RequestAddition,
  type RunGiven,
  type RunRule,
  runRule,
} from './agent-definition.ts'
import {
  type AssistantPart,
  assistantPart,
  type Message,
  message,
  type ModelRef,
  modelRef,
  type Opaque,
  type Outcome,
  outcome,
  providerState,
  type ProviderState,
  requestedFields,
  type ResultPart,
  resultPart,
  type StopReason,
  stopReason,
  toolCallId,
  userMessage,
  type UserMessage,
} from './content.ts'
import {
  type Approver,
  type Approvers,
  approvers,
  type Attribution,
  type CallEventType,
  callEventTypes,
  type CarriedHistory,
  type Cause,
  childTotals,
  type ChildTotals,
  collectedCall,
  type CollectedCall,
  deliveries,
  type Delivery,
  deltaFields,
  type EventEnvelope,
  envelopeFields,
  failure,
  finishReasons,
  type FinishReason,
  guardedThings,
  type GuardedThing,
  type GuardrailAction,
  guardrailActions,
  type HistoryEdit,
  moment,
  parent,
  type ParentRef,
  type ReplyDelta,
  type ResumeReason,
  missedPolicies,
  resumeReasons,
  runId,
  type Schedule,
  preparedCall,
  type PreparedCall,
  type SessionEdit,
  sessionEdits,
  shownChange,
  type ShownChange,
  spending,
  type Spending,
  type StandingApproval,
  standingApproval,
  type StandingOptions,
  standingOptions,
  toolSpending,
  type ToolSpending,
  writtenPart,
  type WrittenPart,
} from './event-parts.ts'
import {
  type Grant,
  grant,
  type LimitName,
  limitNames,
  type Limits,
  limits,
  type OnLimit,
  onLimits,
  retry,
  type RetryPolicy,
} from './limits.ts'
import {
  type ModelRefusal,
  modelSettings,
  refusal,
  toolChoice,
  type ToolChoice,
  type ToolEffect,
  toolEffects,
} from './model-request.ts'
import {
  counted,
  money,
  price,
  type Price,
  usage,
  type Usage,
  type UsageField,
  usageFields,
} from './usage.ts'
import { LedgerDamagedError, type ModelFailure, UnknownEventError } from '../values/errors.ts'
import type { RunId, ToolCallId } from '../values/ids.ts'
import type { Json, JsonObject } from '../values/json.ts'
import {
  amount,
  count,
  exactly,
  type Fault,
  flag,
  json,
  jsonObject,
  listOf,
  maybe,
  objectOf,
  ordinal,
  type Schema,
  type Shape,
  type ShapeOf,
  text,
  withShape,
  wordOf,
} from '../values/schema.ts'

export * from './event-parts.ts'

/**
 * THE EVENT VOCABULARY: every fact that a ledger may hold, by type, with its body. `eventTraits` lists where each is
 * visible. Joined text deltas are the message.
 */
export interface EventBodies {
  /** The run exists. Nothing was sent yet. */
  run_started: RunGiven & {
    readonly agent: string
    readonly definition: AgentDefinition
    readonly limits: Limits
    readonly retry: RetryPolicy
    /** The conversation of the run, and the run's place in it: 1, 2, 3 …, each taken once. */
    readonly sessionId?: string
    readonly sessionPlace?: number
    readonly parent?: ParentRef
    /** The standing approvals of its session. */
    readonly standing?: readonly StandingApproval[]
    /** The person the run is about, under a name that reveals nothing. A ledger with keys encrypts the content for them. */
    readonly subject?: string
    /** The application gave the run a context, which is not recorded: a resume has to pass one. */
    readonly withContext?: true
  }
  /**
   * The run is a schedule: it calls no model, and starts runs with its own agent, options and input instead. From here on it does
   * so at these times, or is paused.
   */
  schedule_set: Schedule &
    Attribution & {
      readonly paused?: true
      /** The next time, in milliseconds since 1970 UTC; absent while it is paused. */
      readonly nextAt?: number
    }
  /** A time of the schedule has come. The run that it starts is on record before this. */
  schedule_fired: {
    /** Which time, in milliseconds since 1970 UTC. */
    readonly scheduledAt: number
    /** Absent if nothing was started, since the time was missed. */
    readonly startedRun?: RunId
    /** How many earlier times were missed, and start nothing. */
    readonly missed?: number
    /** The next time; absent after the last. */
    readonly nextAt?: number
  }
  /** The messages before the run: of its session, or of the run from which it branches. */
  history_carried: CarriedHistory
  /** Past messages were changed or removed for the model. The ledger keeps them. */
  history_edited: Attribution & { readonly edits: readonly HistoryEdit[] }
  /**
   * The run is an edit of its session: it takes a place in it, and talks to no model. `append` adds messages, `pop` and
   * `clear` take messages from the end of what the next run begins with; the runs before keep them. `branch` begins a
   * session with what another has.
   */
  session_edited: Attribution & {
    readonly edit: SessionEdit
    /** Those that are added. */
    readonly messages?: readonly Message[]
    /** How many are taken. */
    readonly count?: number
    /** The standing approval that is withdrawn, by the call that was approved then. */
    readonly standing?: ToolCallId
    /** The place of the first message that no guardrail has checked. */
    readonly uncheckedFrom?: number
  }
  /**
   * A process took the run over. What was in flight before is given up; started calls without a result are in doubt.
   */
  run_resumed: {
    readonly why: ResumeReason
    readonly inDoubt: readonly ToolCallId[]
    /** The agent's definition as of today's code, if it differs from that of the start. */
    readonly definition?: AgentDefinition
    /** Code of the run that this process was not given. */
    readonly lacks?: readonly RunRule[]
  }
  /** The end, with the reason and the totals. Only feedback follows. */
  run_finished: {
    readonly reason: FinishReason
    readonly turns: number
    readonly toolCalls: number
    readonly usage: Usage
    readonly costUsd?: number
    readonly detail?: string
  }
  /** A user's message: the first enters the history at once, later ones when `input_settled` says so. */
  input_received: {
    readonly message: UserMessage
    readonly delivery: Delivery
    readonly receipt?: string
    /** The function that joined it with the history of its session: both are as it returned them. */
    readonly onInput?: { readonly name: string; readonly digest: string }
  }
  /** Input that arrived during the run entered the history here, or did not, and why. `receipt` is its id. */
  input_settled: { readonly receipt: string; readonly delivered: boolean; readonly why?: string }
  /** A model call starts. Everything that it sends is already in the ledger; the digest is of its request. */
  model_call_started: {
    readonly attempt: number
    readonly model: ModelRef
    readonly requestDigest: string
    readonly toolChoice: ToolChoice
    readonly finalizing: boolean
    /** The most that the call may use. */
    readonly grant: Grant
    readonly maxOutputTokens?: number
    /** The turn's own part of the request, in place of the agent's definition or the history. */
    readonly change?: ShownChange
    /** Fields that the adapter's options add to the request or replace in it. Values are not recorded. */
    readonly additions?: readonly RequestAddition[]
  }
  /** The model began to answer. */
  assistant_started: {
    readonly attempt: number
    readonly providerMessageId?: string
    readonly servedModel?: string
    /** Parts of the request that the service cannot take, and that were left out. */
    readonly warnings?: readonly string[]
  }
  /** More text of the part at place `part` of the reply. */
  assistant_text_delta: ReplyDelta
  /** More reasoning of the part at place `part` of the reply. */
  assistant_reasoning_delta: ReplyDelta
  /** More of a tool call's input, as raw JSON text. Left out where all of it, as `JSON.stringify` writes the input, arrives together with the request. */
  tool_input_delta: {
    readonly attempt: number
    readonly part: number
    readonly name: string
    readonly text: string
  }
  /** The model's request for a tool call is complete: the first half of the tally. */
  tool_request_ready: {
    readonly attempt: number
    readonly part: number
    readonly providerCallId: string
    readonly name: string
    readonly input: JsonObject
    readonly malformed?: { readonly text: string; readonly error: string }
    readonly opaque?: Opaque
  }
  /** Tokens of this attempt so far. Totals: a later event replaces an earlier one. */
  usage_updated: {
    readonly attempt: number
    readonly usage: Usage
    /**
     * Tokens of the conversation including the reply, if they differ from the billed ones: input and output of its
     * last step.
     */
    readonly contextTokens?: number
    /** US dollars for this attempt so far, by `price`. Never computed again. */
    readonly costUsd?: number
    readonly price?: Price
    /** Fields that the runtime estimated, because the provider reported nothing believable and a limit counts them. */
    readonly estimated?: readonly UsageField[]
    /** Fields that the provider reported but that are not token counts; `usage` leaves them out. */
    readonly refused?: readonly UsageField[]
    readonly raw?: Json
  }
  /** The reply as it enters the history: whole, or marked as partial if it was cut off. */
  assistant_message_finished: {
    readonly attempt: number
    readonly stopReason: StopReason
    readonly rawStopReason?: string
    readonly partial: boolean
    readonly parts: readonly AssistantPart[]
    /** The `part` of each part's deltas. Absent if they are 0, 1, 2 … */
    readonly places?: readonly number[]
    /** The text that the model wrote, for parts that the agent's `outputStream` changed. */
    readonly written?: readonly WrittenPart[]
    readonly providerMessageId?: string
    /** Where the provider keeps the conversation so far, if it does. */
    readonly providerState?: ProviderState
    /** The vendor's reason for a refused reply. */
    readonly refusal?: ModelRefusal
  }
  /** A model call failed. `retryAt` says when the next attempt starts, if there is one. */
  model_stream_failed: {
    readonly attempt: number
    readonly failure: ModelFailure
    readonly retryAt?: number
    /** The vendor's reason, if the model refused and a fallback is tried; empty if it gave none. */
    readonly refusal?: ModelRefusal
  }
  /** Lists the calls of the message, and what will happen to each. */
  tool_requests_collected: { readonly calls: readonly CollectedCall[] }
  /** A person has to decide about a call with these arguments. */
  approval_requested: {
    readonly name: string
    /** The start of the call that is asked about: 1, or more if a call in doubt would be started again. */
    readonly attempt: number
    readonly inputDigest: string
    /** When it counts as denied. Does not apply in a fork that shares the question, since a fork asks again. */
    readonly expiresAt?: number
    readonly reason?: string
    /** Who may approve it: each of these has to be satisfied. */
    readonly approvers?: readonly Approvers[]
  }
  /** One of several people approved the call, which still waits for the others. */
  approval_added: Approver & {
    readonly attempt: number
    readonly inputDigest: string
    readonly via?: string
    readonly reason?: string
    /** In a fork: the approval was given in the run from which it was forked, and does not count in the fork. */
    readonly elsewhere?: true
  }
  /** The decision, bound to the call and its arguments, and who made it. `input` replaces the arguments. */
  approval_decided: {
    readonly attempt: number
    readonly approved: boolean
    readonly by: string
    readonly inputDigest: string
    /** How the decision was made, as the application names it, such as `prompt`. */
    readonly via?: string
    readonly input?: JsonObject
    /** The text that the model reads before the result, if the input was changed. */
    readonly note?: string
    readonly reason?: string
    /** The roles that the application knew the person to have. */
    readonly roles?: readonly string[]
    /** The approval also covers later calls, until it expires or is withdrawn. */
    readonly standing?: StandingOptions
    /** In a fork: the decision was made in the run from which it was forked, and starts nothing in the fork. */
    readonly elsewhere?: true
  }
  /** A standing approval lets the call run, so nobody is asked. */
  approval_applied: {
    readonly attempt: number
    readonly inputDigest: string
    /** The person who gave the standing approval. */
    readonly by: string
    /** The call that was approved then, by which the standing approval is known. */
    readonly standing: ToolCallId
  }
  /** A standing approval ended before its time. */
  approval_withdrawn: {
    readonly standing: ToolCallId
    readonly by: string
    readonly reason?: string
  }
  /** From here on a tool may have an effect. The key is the same for every attempt. */
  tool_started: {
    readonly name: string
    readonly attempt: number
    readonly idempotencyKey: string
    readonly effect: ToolEffect
    /** Digest of the input that runs; if a person was asked, the digest that was approved. Older releases omitted it. */
    readonly inputDigest?: string
    /** The child run that does the work, if the tool is an agent. The same for every attempt. */
    readonly child?: RunId
    /** In a fork that begins before the call's start: the call of the source run whose recorded result answers it. */
    readonly recorded?: ToolCallId
    /** The most that the child run may use; its limits are within it. The same for every attempt. */
    readonly grant?: Grant
  }
  /** A running tool reports progress, or a model call that it made, which counts as a turn of the run. */
  tool_progress: { readonly attempt: number; readonly data: Json; readonly spent?: ToolSpending }
  /** The call continues outside, under the id `receipt`, and is settled later; at the deadline it counts as timed out. */
  tool_deferred: { readonly attempt: number; readonly receipt: string; readonly deadlineAt?: number }
  /** An attempt of a call failed. The next one starts at `retryAt` under the same idempotency key. */
  tool_attempt_failed: {
    readonly name: string
    readonly attempt: number
    readonly outcome: Outcome
    readonly content: readonly ResultPart[]
    readonly durationMs: number
    readonly retryAt: number
    /** How long the tool asked to wait, in milliseconds. */
    readonly retryAfterMs?: number
    /** The stack of the exception that the tool threw, with its causes; the model does not see it. */
    readonly error?: string
  }
  /** How a call ended, and what the model reads: the second half of the tally. */
  tool_result: {
    readonly name: string
    readonly outcome: Outcome
    /** The whole result. */
    readonly content: readonly ResultPart[]
    /** The form for the model, from the tool's `toModel`. */
    readonly projected?: readonly ResultPart[]
    /** For a text too long for the model: its beginning, a note of what was left out, and its end. */
    readonly shown?: readonly ResultPart[]
    readonly durationMs?: number
    /** The totals of the child run, if the tool is an agent. */
    readonly child?: ChildTotals
    /** In a fork: the call of the source run whose recorded result was reused. Nothing ran. */
    readonly reused?: ToolCallId
    /** The stack of the exception that the tool threw, with its causes; the model does not see it. */
    readonly error?: string
    /** Who settled a deferred call, and why. */
    readonly settled?: Attribution
    /** This is a handle: the call goes on beside the run, and `background_ended` has its result. */
    readonly background?: true
  }
  /**
   * Work in the background has ended. The model reads the result as a message, like input that steers the run: before its next turn,
   * and `input_settled` says when.
   */
  background_ended: {
    readonly name: string
    readonly attempt: number
    readonly outcome: Outcome
    /** The whole result. */
    readonly content: readonly ResultPart[]
    /** The message for the model. Absent where the run ended without it. */
    readonly message?: UserMessage
    readonly durationMs?: number
    /** The stack of the exception that the tool threw, with its causes; the model does not see it. */
    readonly error?: string
  }
  /** The results entered the history as one block, in request order. */
  tool_results_injected: { readonly toolCallIds: readonly ToolCallId[] }
  /** A model is asked to summarise older history. The digest is of its request. */
  compaction_started: {
    readonly model: ModelRef
    readonly replacedMessages: number
    readonly requestDigest: string
    /** The most that the call may use. */
    readonly grant: Grant
    readonly maxOutputTokens?: number
    /** As in `model_call_started`. */
    readonly additions?: readonly RequestAddition[]
    /** Estimated usage of an earlier call for this summary, whose process stopped before the answer. */
    readonly interrupted?: Spending
  }
  /** A summary replaced older history for the model. The ledger keeps the history. */
  context_compacted: {
    readonly summary: UserMessage
    readonly replacedMessages: number
    /** The index, among the replaced messages, of the user's task, which stays after the summary. */
    readonly taskAt?: number
    readonly tokensBefore?: number
    readonly tokensAfter?: number
    /** Usage of the model that summarised. */
    readonly usage?: Usage
    readonly costUsd?: number
    readonly price?: Price
    /** Why that model did not answer. Older messages were left out instead. */
    readonly failure?: ModelFailure
    /** The runtime gave up that model call, and left older messages out. */
    readonly abandoned?: true
  }
  /** Another agent took over the conversation. */
  agent_handed_off: {
    readonly from: string
    readonly to: string
    readonly definition: AgentDefinition
    /** The past messages that the next agent sees, if they differ from the history. */
    readonly messages?: readonly Message[]
  }
  /** A guardrail found something. */
  guardrail_tripped: {
    readonly guardrail: string
    readonly on: GuardedThing
    readonly action: GuardrailAction
    readonly detail?: string
    /** On input: the place of the message in the history, from 0. */
    readonly index?: number
    /** Replaces the message or the result; a replaced tool input is in the collected call. */
    readonly replacement?: readonly ResultPart[]
  }
  /** Guardrails have finished checking. Their findings come before this event. */
  guardrails_checked: { readonly on: GuardedThing; readonly guardrails: readonly string[] }
  /** The answer was checked against the agent's schema. */
  output_checked: {
    readonly valid: boolean
    /** The answer as JSON: unwrapped, and without nulls for omitted fields. */
    readonly output?: Json
    /** The mismatch, in words. */
    readonly error?: string
    /** The message that asks the model to repair the answer, if it may try again. */
    readonly repair?: UserMessage
  }
  /** A limit of the run was reached. `policy` says what happens next. */
  limit_reached: {
    readonly limit: LimitName
    readonly max: number
    readonly used: number
    /** The share of the limit that is reserved for the call that writes the answer. */
    readonly held?: number
    readonly policy: OnLimit
    /** The call that the limit prevents, where the agent's code had prepared another one than the run's own. */
    readonly prepared?: PreparedCall
  }
  /** A caller raised a limit. */
  limit_raised: {
    readonly limit: LimitName
    readonly max: number
    readonly by: string
    readonly reason?: string
  }
  /** A caller asked the run to stop. */
  cancel_requested: Attribution
  /** Someone judged the run after its end. The only event that follows `run_finished`. It has a score, a note, or both. */
  feedback_given: {
    readonly by: string
    /** Higher is better; the scale is the application's. `evaluate` and its scorers use 0 to 1. */
    readonly score?: number
    readonly note?: string
  }
}

/** The type of an event, as the ledger stores it. */
export type EventType = keyof EventBodies

/** An event of one type: envelope and body, flat. */
export type EventOf<T extends EventType> = EventEnvelope & { readonly type: T } & EventBodies[T] &
  (T extends CallEventType ? { readonly toolCallId: ToolCallId } : unknown)

/** An immutable fact about a run. */
export type RuntimeEvent = { [T in EventType]: EventOf<T> }[EventType]

/** An event as the machine decides it: not yet numbered, dated and signed by its writer. */
export type FactOf<T extends EventType> = { readonly type: T; readonly turn: number } & EventBodies[T] &
  (T extends CallEventType ? { readonly toolCallId: ToolCallId } : unknown)
export type Fact = { [T in EventType]: FactOf<T> }[EventType]

/** Where an event of a type is visible, and what it costs to keep. */
export interface EventTraits<T extends EventType = EventType> {
  /** The version that is written now. */
  readonly v: number
  /** How it adds to what the model is shown: itself, only as part of the finished message, or not at all. */
  readonly modelHistory: 'yes' | 'as_message' | 'no'
  /** Facts decide something and are kept; deltas only show progress, may be appended lazily and kept shorter. */
  readonly retention: 'facts' | 'deltas'
  /**
   * `barrier`: the append that holds it must be durable before anything follows from it. The result of a call that may run
   * again is lazy, and so is the first start of one that also only reads.
   */
  readonly durability: 'barrier' | 'lazy'
  /** The cause of an event that records none: always the same one, or read from its body. */
  readonly cause: Cause | ((fact: FactOf<T>) => Cause)
  /** The schemas of the fields of its body, for events from outside: an import, another's store. */
  readonly fields: ShapeOf<EventBodies[T]>
}

function keeping(
  kept: Omit<EventTraits, 'cause' | 'fields'>,
): <T extends EventType>(
  cause: EventTraits<NoInfer<T>>['cause'],
  fields: EventTraits<NoInfer<T>>['fields'],
) => EventTraits<T> {
  return (cause, fields) => ({ ...kept, cause, fields })
}

const fact = keeping({ v: 1, modelHistory: 'no', retention: 'facts', durability: 'barrier' })
const noted = keeping({ v: 1, modelHistory: 'no', retention: 'facts', durability: 'lazy' })
const history = keeping({ v: 1, modelHistory: 'yes', retention: 'facts', durability: 'barrier' })
const notedHistory = keeping({ v: 1, modelHistory: 'yes', retention: 'facts', durability: 'lazy' })
const delta = keeping({ v: 1, modelHistory: 'no', retention: 'deltas', durability: 'lazy' })
const textDelta = keeping({ v: 1, modelHistory: 'as_message', retention: 'deltas', durability: 'lazy' })

/** Every event type once. All are on the UI stream and in the ledger. */
export const eventTraits: { readonly [T in EventType]: EventTraits<T> } = {
  run_started: fact('start', {
    givenModel: maybe(givenModel),
    modelSettings: maybe(modelSettings),
    toolChoice: maybe(toolChoice),
    parallelToolCalls: maybe(flag),
    recording: maybe(recordingPolicy),
    providerState: maybe(providerState),
    labels: maybe(
      objectOf({
        workflowName: maybe(text),
        traceId: maybe(text),
        groupId: maybe(text),
        tags: maybe(listOf(text)),
        metadata: maybe(jsonObject),
      }),
    ),
    deadlineAt: maybe(moment),
    idempotencyKey: maybe(text),
    givenLimits: maybe(limits),
    owner: maybe(text),
    rules: maybe(listOf(runRule)),
    tracing: maybe(exactly(false)),
    traceContent: maybe(exactly(false)),
    agent: text,
    definition: agentDefinition,
    limits,
    retry,
    sessionId: maybe(text),
    sessionPlace: maybe(ordinal),
    parent: maybe(parent),
    subject: maybe(text),
    standing: maybe(listOf(standingApproval)),
    withContext: maybe(exactly(true)),
  }),
  schedule_set: fact('start', {
    name: maybe(text),
    cron: maybe(text),
    timeZone: maybe(text),
    onceAt: maybe(moment),
    everyMs: maybe(amount),
    missed: wordOf(missedPolicies),
    paused: maybe(exactly(true)),
    nextAt: maybe(moment),
    by: maybe(text),
    reason: maybe(text),
  }),
  schedule_fired: fact('controller', {
    scheduledAt: moment,
    startedRun: maybe(runId),
    missed: maybe(count),
    nextAt: maybe(moment),
  }),
  history_carried: history('start', {
    messages: listOf(message),
    uncheckedFrom: maybe(count),
    missing: maybe(count),
  }),
  history_edited: history('start', {
    edits: listOf(objectOf({ index: count, message: maybe(message) })),
    by: maybe(text),
    reason: maybe(text),
  }),
  session_edited: history('start', {
    edit: wordOf(sessionEdits),
    messages: maybe(listOf(message)),
    count: maybe(count),
    standing: maybe(toolCallId),
    uncheckedFrom: maybe(count),
    by: maybe(text),
    reason: maybe(text),
  }),
  run_resumed: fact('resume', {
    why: wordOf(resumeReasons),
    inDoubt: listOf(toolCallId),
    definition: maybe(agentDefinition),
    lacks: maybe(listOf(runRule)),
  }),
  run_finished: fact('controller', {
    reason: wordOf(finishReasons),
    turns: count,
    toolCalls: count,
    usage,
    costUsd: maybe(money),
    detail: maybe(text),
  }),
  input_received: history(({ delivery }) => delivery, {
    message: userMessage,
    delivery: wordOf(deliveries),
    receipt: maybe(text),
    onInput: maybe(objectOf({ name: text, digest: text })),
  }),
  input_settled: history('controller', {
    receipt: text,
    delivered: flag,
    why: maybe(text),
  }),
  model_call_started: fact('controller', {
    attempt: ordinal,
    model: modelRef,
    requestDigest: text,
    toolChoice,
    finalizing: flag,
    grant,
    maxOutputTokens: maybe(amount),
    change: maybe(shownChange),
    additions: maybe(listOf(requestAddition)),
  }),
  assistant_started: noted('model_started', {
    attempt: ordinal,
    providerMessageId: maybe(text),
    servedModel: maybe(text),
    warnings: maybe(listOf(text)),
  }),
  assistant_text_delta: textDelta('model_text', deltaFields),
  assistant_reasoning_delta: textDelta('model_reasoning', deltaFields),
  tool_input_delta: delta('model_tool_input', {
    attempt: ordinal,
    part: count,
    text,
    name: text,
  }),
  tool_request_ready: notedHistory('model_tool_request', {
    attempt: ordinal,
    part: count,
    ...requestedFields,
  }),
  usage_updated: noted('model_usage', {
    attempt: ordinal,
    usage,
    contextTokens: maybe(counted),
    costUsd: maybe(money),
    price: maybe(price),
    raw: maybe(json),
    estimated: maybe(listOf(wordOf(usageFields))),
    refused: maybe(listOf(wordOf(usageFields))),
  }),
  assistant_message_finished: notedHistory(({ partial }) => (partial ? 'controller' : 'model_finished'), {
    attempt: ordinal,
    stopReason,
    rawStopReason: maybe(text),
    partial: flag,
    parts: listOf(assistantPart),
    places: maybe(listOf(count)),
    written: maybe(listOf(writtenPart)),
    providerMessageId: maybe(text),
    providerState: maybe(providerState),
    refusal: maybe(refusal),
  }),
  model_stream_failed: fact('model_failed', {
    attempt: ordinal,
    failure,
    retryAt: maybe(moment),
    refusal: maybe(refusal),
  }),
  tool_requests_collected: noted('calls_checked', {
    calls: listOf(collectedCall),
  }),
  approval_requested: fact('controller', {
    name: text,
    attempt: ordinal,
    inputDigest: text,
    expiresAt: maybe(moment),
    reason: maybe(text),
    approvers: maybe(listOf(approvers)),
  }),
  approval_added: fact('approve', {
    attempt: ordinal,
    by: text,
    roles: maybe(listOf(text)),
    inputDigest: text,
    via: maybe(text),
    reason: maybe(text),
    elsewhere: maybe(exactly(true)),
  }),
  approval_decided: fact(({ approved }) => (approved ? 'approve' : 'deny'), {
    attempt: ordinal,
    approved: flag,
    by: text,
    inputDigest: text,
    via: maybe(text),
    input: maybe(jsonObject),
    note: maybe(text),
    reason: maybe(text),
    roles: maybe(listOf(text)),
    standing: maybe(standingOptions),
    elsewhere: maybe(exactly(true)),
  }),
  approval_applied: fact('controller', {
    attempt: ordinal,
    inputDigest: text,
    by: text,
    standing: toolCallId,
  }),
  approval_withdrawn: fact('withdraw', {
    standing: toolCallId,
    by: text,
    reason: maybe(text),
  }),
  tool_started: fact('controller', {
    name: text,
    attempt: ordinal,
    idempotencyKey: text,
    effect: wordOf(toolEffects),
    child: maybe(runId),
    inputDigest: maybe(text),
    recorded: maybe(toolCallId),
    grant: maybe(grant),
  }),
  tool_progress: delta('tool_progressed', {
    attempt: ordinal,
    data: json,
    spent: maybe(toolSpending),
  }),
  tool_deferred: fact('tool_deferred', {
    attempt: ordinal,
    receipt: text,
    deadlineAt: maybe(moment),
  }),
  tool_attempt_failed: fact('tool_ended', {
    name: text,
    attempt: ordinal,
    outcome,
    content: listOf(resultPart),
    durationMs: amount,
    retryAt: moment,
    retryAfterMs: maybe(amount),
    error: maybe(text),
  }),
  // Only a tool's own ending says how long it took.
  tool_result: history(({ durationMs }) => (durationMs === undefined ? 'controller' : 'tool_ended'), {
    name: text,
    outcome,
    content: listOf(resultPart),
    projected: maybe(listOf(resultPart)),
    shown: maybe(listOf(resultPart)),
    durationMs: maybe(amount),
    child: maybe(childTotals),
    reused: maybe(toolCallId),
    error: maybe(text),
    settled: maybe(objectOf({ by: maybe(text), reason: maybe(text) })),
    background: maybe(exactly(true)),
  }),
  background_ended: history(({ durationMs }) => (durationMs === undefined ? 'controller' : 'tool_ended'), {
    name: text,
    attempt: ordinal,
    outcome,
    content: listOf(resultPart),
    message: maybe(userMessage),
    durationMs: maybe(amount),
    error: maybe(text),
  }),
  tool_results_injected: noted('controller', {
    toolCallIds: listOf(toolCallId),
  }),
  compaction_started: fact('controller', {
    model: modelRef,
    replacedMessages: count,
    requestDigest: text,
    maxOutputTokens: maybe(amount),
    additions: maybe(listOf(requestAddition)),
    grant,
    interrupted: maybe(spending),
  }),
  context_compacted: history('controller', {
    summary: userMessage,
    replacedMessages: count,
    taskAt: maybe(count),
    tokensBefore: maybe(amount),
    tokensAfter: maybe(amount),
    usage: maybe(usage),
    costUsd: maybe(money),
    price: maybe(price),
    failure: maybe(failure),
    abandoned: maybe(exactly(true)),
  }),
  agent_handed_off: history('controller', {
    from: text,
    to: text,
    definition: agentDefinition,
    messages: maybe(listOf(message)),
  }),
  guardrail_tripped: history(({ on }) => (on === 'tool_input' ? 'calls_checked' : 'guardrails_checked'), {
    guardrail: text,
    on: wordOf(guardedThings),
    action: wordOf(guardrailActions),
    detail: maybe(text),
    index: maybe(count),
    replacement: maybe(listOf(resultPart)),
  }),
  guardrails_checked: fact('guardrails_checked', {
    on: wordOf(guardedThings),
    guardrails: listOf(text),
  }),
  output_checked: history('output_checked', {
    valid: flag,
    output: maybe(json),
    error: maybe(text),
    repair: maybe(userMessage),
  }),
  limit_reached: fact('controller', {
    limit: wordOf(limitNames),
    max: amount,
    used: amount,
    held: maybe(amount),
    policy: wordOf(onLimits),
    prepared: maybe(preparedCall),
  }),
  limit_raised: fact('raise_limit', {
    limit: wordOf(limitNames),
    max: amount,
    by: text,
    reason: maybe(text),
  }),
  cancel_requested: fact('cancel', { by: maybe(text), reason: maybe(text) }),
  feedback_given: fact('feedback', { by: text, score: maybe(amount), note: maybe(text) }),
}

/** Every event type once, in the order of `eventTraits`. */
export const eventTypes = Object.keys(eventTraits) as readonly EventType[]

const envelopeSchema = withShape(envelopeFields)
/** The envelope of an event that always concerns one tool call. */
const callEnvelopeSchema = withShape({ ...envelopeFields, toolCallId })
const callTypes: ReadonlySet<string> = new Set(callEventTypes)

export const eventBodies = Object.fromEntries(
  eventTypes.map((type) => [type, withShape(eventTraits[type].fields)]),
) as { readonly [T in EventType]: Schema<EventBodies[T]> }

const eventSchemas = Object.fromEntries(
  eventTypes.map((type) => {
    const ofCall: Shape = callTypes.has(type) ? { toolCallId } : {}
    return [type, withShape({ ...envelopeFields, ...eventTraits[type].fields, ...ofCall })]
  }),
) as { readonly [T in EventType]: Schema<EventOf<T>> }

/** Returns the cause of a fact that records none. */
export function deriveCause(fact: Fact | RuntimeEvent): Cause {
  const { cause } = eventTraits[fact.type] as EventTraits
  return typeof cause === 'function' ? cause(fact) : cause
}

/** Returns true if the run has ended with this event, or had ended before it. */
export function isAfterEnd({ type }: { readonly type: EventType }): boolean {
  return type === 'run_finished' || type === 'feedback_given'
}

/** The kind of message that decided an event. */
export function findCause(event: RuntimeEvent): Cause {
  return event.cause ?? deriveCause(event)
}

/** A field of an event that should hold an id, and holds something else. */
export interface IdFault {
  /** The path in the event, such as `parent.runId`. */
  readonly path: string
  readonly expected: 'a run id' | 'a tool call id'
  readonly found: unknown
}

/** Where the events of a type hold an id: the steps that lead to it, `*` to the items of a list. */
interface IdPlace extends Pick<IdFault, 'expected'> {
  readonly steps: readonly string[]
  readonly check: Schema
}

/** The ids within messages are content, and a choice of schemas is always content. */
function findIdPlaces(field: Shape[string]): readonly IdPlace[] {
  const schema = field.present ?? field
  if (schema === runId) return [{ steps: [], expected: 'a run id', check: field }]
  if (schema === toolCallId) return [{ steps: [], expected: 'a tool call id', check: field }]
  const { kind } = schema
  const inner: Shape = kind?.is === 'list' ? { '*': kind.item } : kind?.is === 'object' ? kind.fields : {}
  return Object.entries(inner).flatMap(([step, each]) =>
    findIdPlaces(each).map((place) => ({ ...place, steps: [step, ...place.steps] })),
  )
}

const envelopeIds = findIdPlaces(envelopeSchema)
const bodyIds = new Map<string, readonly IdPlace[]>(
  eventTypes.map((type) => [type, findIdPlaces(eventBodies[type])]),
)

/**
 * Returns the first invalid id of an event: of its run, of its tool call, of the runs and calls that its body names.
 * `undefined` if every id is valid or missing. Stores check it on every event that they read, since ids become part
 * of file names, commands and generated code. Messages are content, and are not checked.
 */
export function findEventIdFault(event: RuntimeEvent): IdFault | undefined {
  for (const places of [envelopeIds, bodyIds.get(event.type) ?? []])
    for (const place of places) {
      const fault = findIdFault(event, place)
      if (fault) return fault
    }
  return undefined
}

function findIdFault(value: unknown, place: IdPlace, at = 0, path = ''): IdFault | undefined {
  const { steps, check, expected } = place
  const step = steps[at]
  if (step === undefined) return check(value) && { path, expected, found: value }
  // Where content was removed, the object or the list around an id may be missing.
  if (value === undefined) return undefined
  const below = path === '' ? '' : `${path}.`
  if (step !== '*')
    return findIdFault((Object(value) as Record<string, unknown>)[step], place, at + 1, below + step)
  for (const [index, item] of Array.isArray(value) ? value.entries() : []) {
    const fault = findIdFault(item, place, at + 1, below + String(index))
    if (fault) return fault
  }
  return undefined
}

/** Returns whether this release knows what an event of that type and version means. */
function isKnown(type: string, v: number): type is EventType {
  return Object.hasOwn(eventTraits, type) && v <= eventTraits[type as EventType].v
}

/** Stops a fold at an event that this release does not know, with an `UnknownEventError`. */
export function requireKnown({
  runId,
  seq,
  type,
  v,
}: {
  readonly runId: string
  readonly seq: number
  readonly type: string
  readonly v: number
}): void {
  if (!isKnown(type, v)) throw new UnknownEventError(runId, seq, `${type} v${v}`)
}

/**
 * Reads an event from outside: an import, or a store of other people's. Returns the value that it was given, unknown
 * fields included. Throws an `UnknownEventError` for a type, or a version of a type, that this release does not know,
 * and a `LedgerDamagedError` that names the place for anything else that is not an event.
 */
export function parseEvent(value: unknown): RuntimeEvent {
  requireSound(envelopeSchema(value), 'An event')
  const { type, v, seq, runId } = value as { type?: unknown; v: number; seq: number; runId: string }
  const subject = `Event ${seq} of run ${runId}`
  if (typeof type !== 'string') throw createDamagedError(subject, { path: 'type', what: 'is not a text' })
  if (!isKnown(type, v)) throw new UnknownEventError(runId, seq, `${type} v${v}`)
  requireSound(eventSchemas[type](value), subject)
  return value as RuntimeEvent
}

/**
 * The first field of an event that does not have the shape of its type; `undefined` if every field fits, and for
 * types and versions that this release does not know. Of an event whose content was removed only what is left is
 * checked: its envelope. The value of the field is not shown.
 */
export function findEventShapeFault(event: RuntimeEvent): Fault | undefined {
  const { type, v, removed } = event
  if (removed === undefined && isKnown(type, v)) return eventSchemas[type](event)
  const isOfCall = callTypes.has(type) && isKnown(type, v)
  return (isOfCall ? callEnvelopeSchema : envelopeSchema)(event)
}

function requireSound(fault: Fault | undefined, subject: string): void {
  if (fault) throw createDamagedError(subject, fault)
}

function createDamagedError(subject: string, { path, what }: Fault): LedgerDamagedError {
  return new LedgerDamagedError(
    `${subject} is damaged at ${path || 'its root'}: it ${what}. What follows from a damaged event cannot be trusted, so it was not ` +
      `read. Run verify on the ledger that it comes from, or export it there again.`,
  )
}
