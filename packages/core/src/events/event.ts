import type { AgentDefinition, RequestAddition, RunGiven } from './agent-definition.ts'
import type {
  AssistantPart,
  Message,
  ModelRef,
  Opaque,
  Outcome,
  ProviderState,
  ResultPart,
  StopReason,
  UserMessage,
} from './content.ts'
import type {
  Attribution,
  CallEventType,
  CarriedHistory,
  Cause,
  ChildTotals,
  CollectedCall,
  Delivery,
  EventEnvelope,
  FinishReason,
  GuardedThing,
  GuardrailAction,
  HistoryEdit,
  ParentRef,
  ReplyDelta,
  ResumeReason,
  ShownChange,
  Spending,
  ToolSpending,
  WrittenPart,
} from './event-parts.ts'
import { type ModelFailure, UnknownEventError } from '../values/errors.ts'
import type { Grant, LimitName, Limits, OnLimit, RetryPolicy } from './limits.ts'
import { parseRunId, parseToolCallId, type RunId, type ToolCallId } from '../values/ids.ts'
import { getOwn, type Json, type JsonObject } from '../values/json.ts'
import type { Price, Usage, UsageField } from './usage.ts'
import type { ModelRefusal, ToolChoice, ToolEffect } from './model-request.ts'

export * from './event-parts.ts'

/**
 * THE EVENT VOCABULARY: every fact that a ledger may hold, by type, with its body. `eventTraits` lists where each
 * is visible. Text deltas, put together, are the message.
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
    /** The person the run is about, under a name that reveals nothing. A ledger with keys encrypts the content for them. */
    readonly subject?: string
    /** The application gave the run a context, which is not recorded: a resume has to pass one. */
    readonly withContext?: true
  }
  /** The messages before the run: of its session, or of the run from which it branches. */
  history_carried: CarriedHistory
  /** Past messages were changed or removed for the model. The ledger keeps them. */
  history_edited: { readonly edits: readonly HistoryEdit[]; readonly by?: string; readonly reason?: string }
  /**
   * A process took the run over. What was in flight before is given up; started calls without a result are in doubt.
   */
  run_resumed: {
    readonly why: ResumeReason
    readonly inDoubt: readonly ToolCallId[]
    /** The agent's definition as of today's code, if it differs from that of the start. */
    readonly definition?: AgentDefinition
  }
  /** The end, with the reason and the totals. Nothing follows. */
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
    /** What the model saw this turn in place of the agent's definition or the history. */
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
  /** More of a tool call's input, as raw JSON text. */
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
    /** In a fork: the decision was made in the run from which it was forked, and starts nothing in the fork. */
    readonly elsewhere?: true
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
    /** What does not match. */
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
  }
  /** A caller raised a limit. */
  limit_raised: {
    readonly limit: LimitName
    readonly max: number
    readonly by: string
    readonly reason?: string
  }
  /** A caller asked the run to stop. */
  cancel_requested: { readonly by?: string; readonly reason?: string }
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
  /** What decides it, where nothing else is on record: always the same, or what its body says. */
  readonly cause: Cause | ((fact: FactOf<T>) => Cause)
}

type Kept = Omit<EventTraits, 'cause'>

const fact: Kept = { v: 1, modelHistory: 'no', retention: 'facts', durability: 'barrier' }
const noted: Kept = { ...fact, durability: 'lazy' }
const history: Kept = { ...fact, modelHistory: 'yes' }
const delta: Kept = { v: 1, modelHistory: 'as_message', retention: 'deltas', durability: 'lazy' }

/** Every event type once. All are on the UI stream and in the ledger. */
export const eventTraits: { readonly [T in EventType]: EventTraits<T> } = {
  run_started: { ...fact, cause: 'start' },
  history_carried: { ...history, cause: 'start' },
  history_edited: { ...history, cause: 'start' },
  run_resumed: { ...fact, cause: 'resume' },
  run_finished: { ...fact, cause: 'controller' },
  input_received: { ...history, cause: ({ delivery }) => delivery },
  input_settled: { ...history, cause: 'controller' },
  model_call_started: { ...fact, cause: 'controller' },
  assistant_started: { ...noted, cause: 'model_started' },
  assistant_text_delta: { ...delta, cause: 'model_text' },
  assistant_reasoning_delta: { ...delta, cause: 'model_reasoning' },
  tool_input_delta: { ...delta, modelHistory: 'no', cause: 'model_tool_input' },
  tool_request_ready: { ...history, durability: 'lazy', cause: 'model_tool_request' },
  usage_updated: { ...noted, cause: 'model_usage' },
  assistant_message_finished: {
    ...history,
    durability: 'lazy',
    cause: ({ partial }) => (partial ? 'controller' : 'model_finished'),
  },
  model_stream_failed: { ...fact, cause: 'model_failed' },
  tool_requests_collected: { ...noted, cause: 'calls_checked' },
  approval_requested: { ...fact, cause: 'controller' },
  approval_decided: { ...fact, cause: ({ approved }) => (approved ? 'approve' : 'deny') },
  tool_started: { ...fact, cause: 'controller' },
  tool_progress: { ...delta, modelHistory: 'no', cause: 'tool_progressed' },
  tool_deferred: { ...fact, cause: 'tool_deferred' },
  tool_attempt_failed: { ...fact, cause: 'tool_ended' },
  // Only a tool's own ending says how long it took.
  tool_result: {
    ...history,
    cause: ({ durationMs }) => (durationMs === undefined ? 'controller' : 'tool_ended'),
  },
  tool_results_injected: { ...noted, cause: 'controller' },
  compaction_started: { ...fact, cause: 'controller' },
  context_compacted: { ...history, cause: 'controller' },
  agent_handed_off: { ...history, cause: 'controller' },
  guardrail_tripped: {
    ...history,
    cause: ({ on }) => (on === 'tool_input' ? 'calls_checked' : 'guardrails_checked'),
  },
  guardrails_checked: { ...fact, cause: 'guardrails_checked' },
  output_checked: { ...history, cause: 'output_checked' },
  limit_reached: { ...fact, cause: 'controller' },
  limit_raised: { ...fact, cause: 'raise_limit' },
  cancel_requested: { ...fact, cause: 'cancel' },
}

/** Every event type once, in the order of `eventTraits`. */
export const eventTypes = Object.keys(eventTraits) as readonly EventType[]

/** What decides a fact of this type and body, where nothing else is on record. */
export function usualCause(fact: Fact | RuntimeEvent): Cause {
  const { cause } = eventTraits[fact.type] as EventTraits
  return typeof cause === 'function' ? cause(fact) : cause
}

/** What decided an event. */
export function causeOf(event: RuntimeEvent): Cause {
  return event.cause ?? usualCause(event)
}

/** A field of an event that should hold an id, and holds something else. */
export interface IdFault {
  /** The path in the event, such as `parent.runId`. */
  readonly path: string
  readonly expected: 'a run id' | 'a tool call id'
  readonly found: unknown
}

type Check = (path: string, value: unknown) => IdFault | undefined

const runId: Check = (path, value) =>
  typeof value === 'string' && parseRunId(value) !== undefined
    ? undefined
    : { path, expected: 'a run id', found: value }

const toolCallId: Check = (path, value) =>
  typeof value === 'string' && parseToolCallId(value) !== undefined
    ? undefined
    : { path, expected: 'a tool call id', found: value }

/** A field that may be missing. */
function unless(check: Check): Check {
  return (path, value) => (value === undefined ? undefined : check(path, value))
}

const maybeRunId = unless(runId)
const maybeToolCallId = unless(toolCallId)

/** Each of a list; where content was taken away the list may be missing. */
function each(path: string, values: readonly unknown[] | undefined): IdFault | undefined {
  if (!Array.isArray(values)) return undefined
  const place = values.findIndex((value) => toolCallId(path, value) !== undefined)
  return place === -1 ? undefined : toolCallId(`${path}.${place}`, values[place])
}

/** Checks the ids that events of a type carry beside their envelope; `null` where they carry none. */
const inBody: { readonly [T in EventType]: ((event: EventOf<T>) => IdFault | undefined) | null } = {
  run_started: ({ parent }) => (parent ? runId('parent.runId', parent.runId) : undefined),
  history_carried: null,
  history_edited: null,
  run_resumed: ({ inDoubt }) => each('inDoubt', inDoubt),
  run_finished: null,
  input_received: null,
  input_settled: null,
  model_call_started: null,
  assistant_started: null,
  assistant_text_delta: null,
  assistant_reasoning_delta: null,
  tool_input_delta: null,
  tool_request_ready: null,
  usage_updated: null,
  assistant_message_finished: null,
  model_stream_failed: null,
  tool_requests_collected: ({ calls }) =>
    each('calls', Array.isArray(calls) ? calls.map((call) => call?.toolCallId) : calls) ??
    each('calls.recorded', Array.isArray(calls) ? calls.flatMap((call) => call?.recorded ?? []) : calls),
  approval_requested: null,
  approval_decided: null,
  tool_started: ({ child, recorded }) => maybeRunId('child', child) ?? maybeToolCallId('recorded', recorded),
  tool_progress: null,
  tool_deferred: null,
  tool_attempt_failed: null,
  tool_result: ({ child, reused }) =>
    (child ? runId('child.runId', child.runId) : undefined) ?? maybeToolCallId('reused', reused),
  tool_results_injected: ({ toolCallIds }) => each('toolCallIds', toolCallIds),
  compaction_started: null,
  context_compacted: null,
  agent_handed_off: null,
  guardrail_tripped: null,
  guardrails_checked: null,
  output_checked: null,
  limit_reached: null,
  limit_raised: null,
  cancel_requested: null,
}

/**
 * Returns the first invalid id of an event: of its run, of its tool call, of the runs and calls that its body names.
 * `undefined` if every id is valid or missing. Stores check it on every event that they read, since ids become part
 * of file names, commands and generated code. Messages are content, and are not checked.
 */
export function idFaultOf(event: RuntimeEvent): IdFault | undefined {
  // Most events are deltas of a reply, and name no more than their run.
  const known = typeof event.runId === 'string' && parseRunId(event.runId) !== undefined
  const envelope = known ? undefined : runId('runId', event.runId)
  const call = event.toolCallId === undefined ? undefined : toolCallId('toolCallId', event.toolCallId)
  const fault = envelope ?? call
  if (fault !== undefined) return fault
  return (getOwn(inBody, event.type) as ((event: RuntimeEvent) => IdFault | undefined) | null | undefined)?.(
    event,
  )
}

/** Returns whether this release knows what an event of that type and version means. */
export function isKnown(type: string, v: number): type is EventType {
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
