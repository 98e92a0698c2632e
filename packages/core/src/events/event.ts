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
import type { Json, JsonObject } from '../values/json.ts'
import type { Price, Usage, UsageField } from './usage.ts'
import type { ModelRefusal, ToolChoice, ToolEffect } from './model-request.ts'

export * from './event-parts.ts'
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
    /** The conversation that the run belongs to, and which of its runs it is: 1, 2, 3 …, each place taken once. */
    readonly sessionId?: string
    readonly sessionPlace?: number
    readonly parent?: ParentRef
    /** Whom the run is about, by a name that reveals nothing: a ledger with keys encrypts the run's content for them. */
    readonly subject?: string
    /** The run has a context of its application, which is not recorded: a resume has to pass one. */
    readonly withContext?: true
  }
  /** What was said before the run, in the runs of its session or in the run that it branches from. */
  history_carried: CarriedHistory
  /** Messages of the past were changed or removed in what the model sees; nothing leaves the ledger. */
  history_edited: { readonly edits: readonly HistoryEdit[]; readonly by?: string; readonly reason?: string }
  /**
   * A process took the run over: it gives up what was in flight before; started calls without a result are in doubt.
   */
  run_resumed: {
    readonly why: ResumeReason
    readonly inDoubt: readonly ToolCallId[]
    /** The definition of the agent's code now, if it differs from the one that the run was started with. */
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
  /** Input that arrived while the run was at work entered the history here, or why it did not. `receipt` is its id. */
  input_settled: { readonly receipt: string; readonly delivered: boolean; readonly why?: string }
  /** A model call starts; everything that it sends is in the ledger before it. The digest is that of the request. */
  model_call_started: {
    readonly attempt: number
    readonly model: ModelRef
    readonly requestDigest: string
    readonly toolChoice: ToolChoice
    readonly finalizing: boolean
    /** What the call may use. */
    readonly grant: Grant
    readonly maxOutputTokens?: number
    /** What this turn showed the model instead of the agent's definition and the history. */
    readonly change?: ShownChange
    /** What options of the adapter add to the request, or replace in it. Values are not on record. */
    readonly additions?: readonly RequestAddition[]
  }
  /** The model began to answer. */
  assistant_started: {
    readonly attempt: number
    readonly providerMessageId?: string
    readonly servedModel?: string
    /** The parts of the request that the wire could not carry, and that were left out. */
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
  /** The model asked for a tool, and the request is whole: the first half of the tally. */
  tool_request_ready: {
    readonly attempt: number
    readonly part: number
    readonly providerCallId: string
    readonly name: string
    readonly input: JsonObject
    readonly malformed?: { readonly text: string; readonly error: string }
    readonly opaque?: Opaque
  }
  /** Tokens of this attempt so far: totals, so a later one replaces an earlier one. */
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
    /** Fields that the provider reported and that are no count of tokens; they are not in `usage`. */
    readonly refused?: readonly UsageField[]
    readonly raw?: Json
  }
  /** The reply as it enters the history, whole, or marked as partial where it was cut off. */
  assistant_message_finished: {
    readonly attempt: number
    readonly stopReason: StopReason
    readonly rawStopReason?: string
    readonly partial: boolean
    readonly parts: readonly AssistantPart[]
    /** The place of each part, as deltas name it. Absent where they are 0, 1, 2 … */
    readonly places?: readonly number[]
    /** What the model wrote in parts of which `outputStream` of its agent showed another text. */
    readonly written?: readonly WrittenPart[]
    readonly providerMessageId?: string
    /** Where the provider keeps the conversation up to here, if it does. */
    readonly providerState?: ProviderState
    /** The vendor's reason for a refused reply. */
    readonly refusal?: ModelRefusal
  }
  /** A model call failed. `retryAt` says when the next attempt starts, if there is one. */
  model_stream_failed: {
    readonly attempt: number
    readonly failure: ModelFailure
    readonly retryAt?: number
    /** The model refused, and a fallback is asked instead: the vendor's reason, empty if it gives none. */
    readonly refusal?: ModelRefusal
  }
  /** Every call of the message by name, and what will happen to it. */
  tool_requests_collected: { readonly calls: readonly CollectedCall[] }
  /** A person has to decide about a call with these arguments. */
  approval_requested: {
    readonly name: string
    /** Which start of the call it is about: 1, or more where a call in doubt would be started again. */
    readonly attempt: number
    readonly inputDigest: string
    /** When it counts as denied. In a fork that shares the question it does not count: the fork asks anew. */
    readonly expiresAt?: number
    readonly reason?: string
  }
  /** The decision, bound to the call and its arguments, with who took it; `input` runs in their place. */
  approval_decided: {
    readonly attempt: number
    readonly approved: boolean
    readonly by: string
    readonly inputDigest: string
    /** How the decision was made, such as `prompt`, in the words of the deciding application. */
    readonly via?: string
    readonly input?: JsonObject
    /** The text that the model reads before the result, if the input was changed. */
    readonly note?: string
    readonly reason?: string
    /** In a fork: given in the run that it shares its first events with. It lets nothing start in the fork. */
    readonly elsewhere?: true
  }
  /** A tool's effect may begin from here on. The key is the same at every attempt. */
  tool_started: {
    readonly name: string
    readonly attempt: number
    readonly idempotencyKey: string
    readonly effect: ToolEffect
    /** Of the input that runs: the digest that was approved, where a person was asked. Older releases left it out. */
    readonly inputDigest?: string
    /** The run that does the work, where the tool is an agent. The same at every attempt. */
    readonly child?: RunId
    /** In a fork that begins before the call's start: the call of the source run whose recorded result answers it. */
    readonly recorded?: ToolCallId
    /** What that run may use; its limits are within it. The same at every attempt. */
    readonly grant?: Grant
  }
  /** A running tool reports its progress, or one model call that it has made: a turn that counts as the run's own. */
  tool_progress: { readonly attempt: number; readonly data: Json; readonly spent?: ToolSpending }
  /** The call continues outside, under the id `receipt`, and is settled later; at the deadline it counts as timed out. */
  tool_deferred: { readonly attempt: number; readonly receipt: string; readonly deadlineAt?: number }
  /** An attempt of a call failed, and the next one starts at `retryAt`, under the same idempotency key. */
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
  /** How a call ended, and what the model will read: the second half of the tally. */
  tool_result: {
    readonly name: string
    readonly outcome: Outcome
    /** The whole result. */
    readonly content: readonly ResultPart[]
    /** What the tool makes of it for the model. */
    readonly projected?: readonly ResultPart[]
    /** The beginning and the end of a text too long for the model, and between them what was left out. */
    readonly shown?: readonly ResultPart[]
    readonly durationMs?: number
    /** The totals of the child run, if the tool is an agent. */
    readonly child?: ChildTotals
    /** In a fork: the call of the source run whose recorded result was served; nothing ran. */
    readonly reused?: ToolCallId
    /** The stack of the exception that the tool threw, with its causes; the model does not see it. */
    readonly error?: string
    /** Who settled a deferred call, and why. */
    readonly settled?: Attribution
  }
  /** The results entered the history as one block, in request order. */
  tool_results_injected: { readonly toolCallIds: readonly ToolCallId[] }
  /** A model is asked to sum up older history. The digest is that of the request. */
  compaction_started: {
    readonly model: ModelRef
    readonly replacedMessages: number
    readonly requestDigest: string
    /** What the call may use. */
    readonly grant: Grant
    readonly maxOutputTokens?: number
    /** As of a `model_call_started`. */
    readonly additions?: readonly RequestAddition[]
    /** What a call for the same summary, that a stopped process left without its answer, is taken to have used. */
    readonly interrupted?: Spending
  }
  /** Older history was replaced by a summary in what the model sees; nothing leaves the ledger. */
  context_compacted: {
    readonly summary: UserMessage
    readonly replacedMessages: number
    /** The place, among the replaced messages, of the user's task: it stays, after the summary. */
    readonly taskAt?: number
    readonly tokensBefore?: number
    readonly tokensAfter?: number
    /** What the summarizing model used. */
    readonly usage?: Usage
    readonly costUsd?: number
    readonly price?: Price
    /** Why that model did not answer; older messages were left out instead. */
    readonly failure?: ModelFailure
    /** The runtime gave the call of that model up, and left older messages out. */
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
  /** A guardrail found something, and what it did about it. */
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
  /** Guardrails have checked; their findings come before this event. */
  guardrails_checked: { readonly on: GuardedThing; readonly guardrails: readonly string[] }
  /** Whether the answer fits the schema that the agent asks for. */
  output_checked: {
    readonly valid: boolean
    /** The answer as JSON: unwrapped, and without nulls for what was left out. */
    readonly output?: Json
    /** What does not fit. */
    readonly error?: string
    /** The message that asks the model to repair the answer, if it may try again. */
    readonly repair?: UserMessage
  }
  /** A limit of the run was met, and what follows from it. */
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
  /** Whether it adds to what the model is shown: itself, only as part of the finished message, or not at all. */
  readonly modelHistory: 'yes' | 'as_message' | 'no'
  /** Facts decide something and are kept; deltas only show progress, may be appended lazily and kept shorter. */
  readonly retention: 'facts' | 'deltas'
  /**
   * Whether the append that holds it must be durable before anything follows from it. The result of a call that may run
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

/** The ids that events of a type carry beside their envelope. */
const inBody: { readonly [T in EventType]?: (event: EventOf<T>) => IdFault | undefined } = {
  run_started: ({ parent }) => (parent ? runId('parent.runId', parent.runId) : undefined),
  run_resumed: ({ inDoubt }) => each('inDoubt', inDoubt),
  tool_requests_collected: ({ calls }) =>
    each('calls', Array.isArray(calls) ? calls.map((call) => call?.toolCallId) : calls) ??
    each('calls.recorded', Array.isArray(calls) ? calls.flatMap((call) => call?.recorded ?? []) : calls),
  tool_started: ({ child, recorded }) => maybeRunId('child', child) ?? maybeToolCallId('recorded', recorded),
  tool_result: ({ child, reused }) =>
    (child ? runId('child.runId', child.runId) : undefined) ?? maybeToolCallId('reused', reused),
  tool_results_injected: ({ toolCallIds }) => each('toolCallIds', toolCallIds),
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
  if (fault !== undefined || !Object.hasOwn(inBody, event.type)) return fault
  return (inBody[event.type] as (event: RuntimeEvent) => IdFault | undefined)(event)
}

/** Whether this release knows what an event of that type and version means. */
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
