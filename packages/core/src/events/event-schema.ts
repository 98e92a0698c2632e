import * as z from 'zod'
import {
  amount,
  count,
  exactly,
  faultOf,
  flag,
  isObjectOf,
  json,
  jsonObject,
  listOf,
  objectOf,
  optional,
  ordinal,
  type QuickCheck,
  type Schema,
  type Shape,
  text,
  wordOf,
} from '../values/schema.ts'
import { causes } from './event-parts.ts'
import { counted, money, price, usage } from './usage.ts'
import {
  assistantPart,
  message,
  modelRef,
  outcome,
  providerState,
  requestedFields,
  type ResultPart,
  resultPart,
  stopReason,
  toolCallId,
  userMessage,
  type UserPart,
  userPart,
} from './content.ts'
import {
  type Attribution,
  callEventTypes,
  deliveries,
  type EventBodies,
  type EventEnvelope,
  type EventType,
  finishReasons,
  guardedThings,
  guardrailActions,
  type HistoryEdit,
  isKnown,
  type Removed,
  resumeReasons,
  type RuntimeEvent,
} from './event.ts'
import { limitNames, limits, onLimits, retry } from './limits.ts'
import {
  agentDefinition,
  givenModel,
  recordingPolicy,
  requestAddition,
  type RunLabels,
} from './agent-definition.ts'
import { modelSettings, refusal, toolEffects } from './model-request.ts'
import {
  childTotals,
  collectedCall,
  failure,
  grant,
  moment,
  parent,
  replyDelta,
  runId,
  shownChange,
  spending,
  toolChoice,
  toolSpending,
  usageFieldNames,
  writtenPart,
} from './event-parts-schema.ts'
import { LedgerDamagedError, UnknownEventError } from '../values/errors.ts'
import { type OutsideCommand, outsideCommand } from './commands.ts'

/** The fields of every event, of any type. */
export const envelopeSchema: Schema<EventEnvelope> = objectOf<EventEnvelope>({
  runId,
  seq: ordinal,
  epoch: ordinal,
  turn: count,
  at: moment,
  v: ordinal,
  toolCallId: optional(toolCallId),
  cause: optional(wordOf(causes)),
  inboxKey: optional(text),
  draining: optional(exactly(true)),
  removed: optional(
    objectOf<Removed>({
      kind: wordOf(['redacted', 'expired', 'erased', 'sealed']),
      at: optional(moment),
      by: optional(text),
      reason: optional(text),
    }),
  ),
})

/** The fields of every event that always concerns one tool call. */
export const callEnvelopeSchema: Schema<{ readonly toolCallId: string }> = objectOf({ toolCallId })

const runLabels = objectOf<RunLabels>({
  workflowName: optional(text),
  traceId: optional(text),
  groupId: optional(text),
  tags: optional(listOf(text)),
  metadata: optional(jsonObject),
})

const runSchemas = {
  run_started: objectOf<EventBodies['run_started']>({
    givenModel: optional(givenModel),
    modelSettings: optional(modelSettings),
    toolChoice: optional(toolChoice),
    parallelToolCalls: optional(flag),
    recording: optional(recordingPolicy),
    providerState: optional(providerState),
    labels: optional(runLabels),
    deadlineAt: optional(moment),
    idempotencyKey: optional(text),
    givenLimits: optional(limits),
    owner: optional(text),
    agent: text,
    definition: agentDefinition,
    limits,
    retry,
    sessionId: optional(text),
    sessionPlace: optional(ordinal),
    parent: optional(parent),
    subject: optional(text),
    withContext: optional(exactly(true)),
  }),
  history_carried: objectOf<EventBodies['history_carried']>({
    messages: listOf(message),
    uncheckedFrom: optional(count),
    missing: optional(count),
  }),
  history_edited: objectOf<EventBodies['history_edited']>({
    edits: listOf(objectOf<HistoryEdit>({ index: count, message: optional(message) })),
    by: optional(text),
    reason: optional(text),
  }),
  run_resumed: objectOf<EventBodies['run_resumed']>({
    why: wordOf(resumeReasons),
    inDoubt: listOf(toolCallId),
    definition: optional(agentDefinition),
  }),
  run_finished: objectOf<EventBodies['run_finished']>({
    reason: wordOf(finishReasons),
    turns: count,
    toolCalls: count,
    usage,
    costUsd: optional(money),
    detail: optional(text),
  }),
  input_received: objectOf<EventBodies['input_received']>({
    message: userMessage,
    delivery: wordOf(deliveries),
    receipt: optional(text),
  }),
  input_settled: objectOf<EventBodies['input_settled']>({
    receipt: text,
    delivered: flag,
    why: optional(text),
  }),
}

const modelSchemas = {
  model_call_started: objectOf<EventBodies['model_call_started']>({
    attempt: ordinal,
    model: modelRef,
    requestDigest: text,
    toolChoice,
    finalizing: flag,
    grant,
    maxOutputTokens: optional(amount),
    change: optional(shownChange),
    additions: optional(listOf(requestAddition)),
  }),
  assistant_started: objectOf<EventBodies['assistant_started']>({
    attempt: ordinal,
    providerMessageId: optional(text),
    servedModel: optional(text),
    warnings: optional(listOf(text)),
  }),
  assistant_text_delta: replyDelta,
  assistant_reasoning_delta: replyDelta,
  tool_input_delta: objectOf<EventBodies['tool_input_delta']>({
    attempt: ordinal,
    part: count,
    text,
    name: text,
  }),
  tool_request_ready: objectOf<EventBodies['tool_request_ready']>({
    attempt: ordinal,
    part: count,
    ...requestedFields,
  }),
  usage_updated: objectOf<EventBodies['usage_updated']>({
    attempt: ordinal,
    usage,
    contextTokens: optional(counted),
    costUsd: optional(money),
    price: optional(price),
    raw: optional(json),
    estimated: optional(usageFieldNames),
    refused: optional(usageFieldNames),
  }),
  assistant_message_finished: objectOf<EventBodies['assistant_message_finished']>({
    attempt: ordinal,
    stopReason,
    rawStopReason: optional(text),
    partial: flag,
    parts: listOf(assistantPart),
    places: optional(listOf(count)),
    written: optional(listOf(writtenPart)),
    providerMessageId: optional(text),
    providerState: optional(providerState),
    refusal: optional(refusal),
  }),
  model_stream_failed: objectOf<EventBodies['model_stream_failed']>({
    attempt: ordinal,
    failure,
    retryAt: optional(moment),
    refusal: optional(refusal),
  }),
}

const toolSchemas = {
  tool_requests_collected: objectOf<EventBodies['tool_requests_collected']>({
    calls: listOf(collectedCall),
  }),
  approval_requested: objectOf<EventBodies['approval_requested']>({
    name: text,
    attempt: ordinal,
    inputDigest: text,
    expiresAt: optional(moment),
    reason: optional(text),
  }),
  approval_decided: objectOf<EventBodies['approval_decided']>({
    attempt: ordinal,
    approved: flag,
    by: text,
    inputDigest: text,
    via: optional(text),
    input: optional(jsonObject),
    note: optional(text),
    reason: optional(text),
    elsewhere: optional(exactly(true)),
  }),
  tool_started: objectOf<EventBodies['tool_started']>({
    name: text,
    attempt: ordinal,
    idempotencyKey: text,
    effect: wordOf(toolEffects),
    child: optional(runId),
    inputDigest: optional(text),
    recorded: optional(toolCallId),
    grant: optional(grant),
  }),
  tool_deferred: objectOf<EventBodies['tool_deferred']>({
    attempt: ordinal,
    receipt: text,
    deadlineAt: optional(moment),
  }),
  tool_progress: objectOf<EventBodies['tool_progress']>({
    attempt: ordinal,
    data: json,
    spent: optional(toolSpending),
  }),
  tool_attempt_failed: objectOf<EventBodies['tool_attempt_failed']>({
    name: text,
    attempt: ordinal,
    outcome,
    content: listOf(resultPart),
    durationMs: amount,
    retryAt: moment,
    retryAfterMs: optional(amount),
    error: optional(text),
  }),
  tool_result: objectOf<EventBodies['tool_result']>({
    name: text,
    outcome,
    content: listOf(resultPart),
    projected: optional(listOf(resultPart)),
    shown: optional(listOf(resultPart)),
    durationMs: optional(amount),
    child: optional(childTotals),
    reused: optional(toolCallId),
    error: optional(text),
    settled: optional(objectOf<Attribution>({ by: optional(text), reason: optional(text) })),
  }),
  tool_results_injected: objectOf<EventBodies['tool_results_injected']>({
    toolCallIds: listOf(toolCallId),
  }),
}

const steeringSchemas = {
  compaction_started: objectOf<EventBodies['compaction_started']>({
    model: modelRef,
    replacedMessages: count,
    requestDigest: text,
    maxOutputTokens: optional(amount),
    additions: optional(listOf(requestAddition)),
    grant,
    interrupted: optional(spending),
  }),
  context_compacted: objectOf<EventBodies['context_compacted']>({
    summary: userMessage,
    replacedMessages: count,
    taskAt: optional(count),
    tokensBefore: optional(amount),
    tokensAfter: optional(amount),
    usage: optional(usage),
    costUsd: optional(money),
    price: optional(price),
    failure: optional(failure),
    abandoned: optional(exactly(true)),
  }),
  agent_handed_off: objectOf<EventBodies['agent_handed_off']>({
    from: text,
    to: text,
    definition: agentDefinition,
    messages: optional(listOf(message)),
  }),
  guardrail_tripped: objectOf<EventBodies['guardrail_tripped']>({
    guardrail: text,
    on: wordOf(guardedThings),
    action: wordOf(guardrailActions),
    detail: optional(text),
    index: optional(count),
    replacement: optional(listOf(resultPart)),
  }),
  guardrails_checked: objectOf<EventBodies['guardrails_checked']>({
    on: wordOf(guardedThings),
    guardrails: listOf(text),
  }),
  output_checked: objectOf<EventBodies['output_checked']>({
    valid: flag,
    output: optional(json),
    error: optional(text),
    repair: optional(userMessage),
  }),
  limit_reached: objectOf<EventBodies['limit_reached']>({
    limit: wordOf(limitNames),
    max: amount,
    used: amount,
    held: optional(amount),
    policy: wordOf(onLimits),
  }),
  limit_raised: objectOf<EventBodies['limit_raised']>({
    limit: wordOf(limitNames),
    max: amount,
    by: text,
    reason: optional(text),
  }),
  cancel_requested: objectOf<EventBodies['cancel_requested']>({ by: optional(text), reason: optional(text) }),
}

/** What each event carries beside its envelope, for what comes from outside: an import, another's store. */
export const eventBodies: { readonly [T in EventType]: Schema<EventBodies[T]> } = {
  ...runSchemas,
  ...modelSchemas,
  ...toolSchemas,
  ...steeringSchemas,
}

const callTypes: ReadonlySet<string> = new Set(callEventTypes)

/**
 * Reads an event from outside: an import, or a store of other people's. Answers the value that it was given, unknown
 * fields included. Throws an `UnknownEventError` for a type, or a version of a type, that this release does not know,
 * and a `LedgerDamagedError` that names the place for anything else that is no event.
 */
export function parseEvent(value: unknown): RuntimeEvent {
  requireValid(envelopeSchema, value, 'An event')
  const { type, v, seq, runId } = value as { type?: unknown; v: number; seq: number; runId: string }
  const subject = `Event ${seq} of run ${runId}`
  if (typeof type !== 'string') throw damaged(subject, 'type', 'expected string')
  if (!isKnown(type, v)) throw new UnknownEventError(runId, seq, `${type} v${v}`)
  if (callTypes.has(type)) requireValid(callEnvelopeSchema, value, subject)
  requireValid(eventBodies[type], value, subject)
  return value as RuntimeEvent
}

/**
 * The first field of an event that does not have the shape of its type; `undefined` where every field fits, and for
 * types and versions that this release does not know. Of an event whose content was taken away only what is left is
 * checked: its envelope. The value of the field is not shown.
 */
export function shapeFaultOf(
  event: RuntimeEvent,
): { readonly path: string; readonly what: string } | undefined {
  const { type, v, removed } = event
  if (removed === undefined && isKnown(type, v) && wholeCheckOf(type)(event)) return undefined
  const envelopeFault = faultOf(envelopeSchema, event)
  if (envelopeFault || !isKnown(type, v)) return envelopeFault
  // A call that is named was checked with the envelope.
  const isNameless = callTypes.has(type) && event.toolCallId === undefined
  if (isNameless) return faultOf(callEnvelopeSchema, event)
  return removed === undefined ? faultOf(eventBodies[type], event) : undefined
}

const wholeChecks = new Map<EventType, QuickCheck>()

/** The check of an event of a type with all its fields, in one pass over them. */
function wholeCheckOf(type: EventType): QuickCheck {
  const known = wholeChecks.get(type)
  if (known) return known
  const schemas = [envelopeSchema, ...(callTypes.has(type) ? [callEnvelopeSchema] : []), eventBodies[type]]
  const check = isObjectOf(Object.assign({}, ...schemas.map(({ fields }) => fields)) as Shape)
  wholeChecks.set(type, check)
  return check
}

function requireValid(schema: Schema<unknown>, value: unknown, subject: string): void {
  const fault = faultOf(schema, value)
  if (fault) throw damaged(subject, fault.path, fault.what)
}

function damaged(subject: string, path: string, fault: string): LedgerDamagedError {
  return new LedgerDamagedError(
    `${subject} is damaged at ${path}: ${fault}. What follows from a damaged event cannot be trusted, so it was not ` +
      `read. Run verify on the ledger that it comes from, or export it there again.`,
  )
}

/**
 * What each event carries beside its envelope, as schemas for what comes from outside. Fields that are not named are kept.
 * A schema is built when its field is first read.
 */
export const eventSchemas: { readonly [T in EventType]: z.ZodType<EventBodies[T]> } = Object.defineProperties(
  {} as typeof eventSchemas,
  Object.fromEntries(
    Object.entries(eventBodies).map(([type, get]) => [type, { get, enumerable: true }] as const),
  ),
)

/** What may lie in a run's inbox. */
export const outsideCommandSchema: z.ZodType<OutsideCommand> = z.lazy(outsideCommand)

/** A part of a tool result, and of what a user says. */
export const resultPartSchema: z.ZodType<ResultPart> = z.lazy(resultPart)
export const userPartSchema: z.ZodType<UserPart> = z.lazy(userPart)
