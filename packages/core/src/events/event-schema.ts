import {
  amount,
  count,
  exactly,
  type Fault,
  flag,
  json,
  jsonObject,
  listOf,
  objectOf,
  maybe,
  ordinal,
  type Schema,
  type Shape,
  text,
  withShape,
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
  resultPart,
  stopReason,
  toolCallId,
  userMessage,
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

/** The fields of every event, of any type. */
export const envelopeSchema: Schema<EventEnvelope> = objectOf<EventEnvelope>({
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
    objectOf<Removed>({
      kind: wordOf(['redacted', 'expired', 'erased', 'sealed']),
      at: maybe(moment),
      by: maybe(text),
      reason: maybe(text),
    }),
  ),
})

/** The fields of every event that always concerns one tool call. */
export const callEnvelopeSchema: Schema<{ readonly toolCallId: string }> = objectOf({ toolCallId })

const runLabels = objectOf<RunLabels>({
  workflowName: maybe(text),
  traceId: maybe(text),
  groupId: maybe(text),
  tags: maybe(listOf(text)),
  metadata: maybe(jsonObject),
})

const runSchemas = {
  run_started: objectOf<EventBodies['run_started']>({
    givenModel: maybe(givenModel),
    modelSettings: maybe(modelSettings),
    toolChoice: maybe(toolChoice),
    parallelToolCalls: maybe(flag),
    recording: maybe(recordingPolicy),
    providerState: maybe(providerState),
    labels: maybe(runLabels),
    deadlineAt: maybe(moment),
    idempotencyKey: maybe(text),
    givenLimits: maybe(limits),
    owner: maybe(text),
    agent: text,
    definition: agentDefinition,
    limits,
    retry,
    sessionId: maybe(text),
    sessionPlace: maybe(ordinal),
    parent: maybe(parent),
    subject: maybe(text),
    withContext: maybe(exactly(true)),
  }),
  history_carried: objectOf<EventBodies['history_carried']>({
    messages: listOf(message),
    uncheckedFrom: maybe(count),
    missing: maybe(count),
  }),
  history_edited: objectOf<EventBodies['history_edited']>({
    edits: listOf(objectOf<HistoryEdit>({ index: count, message: maybe(message) })),
    by: maybe(text),
    reason: maybe(text),
  }),
  run_resumed: objectOf<EventBodies['run_resumed']>({
    why: wordOf(resumeReasons),
    inDoubt: listOf(toolCallId),
    definition: maybe(agentDefinition),
  }),
  run_finished: objectOf<EventBodies['run_finished']>({
    reason: wordOf(finishReasons),
    turns: count,
    toolCalls: count,
    usage,
    costUsd: maybe(money),
    detail: maybe(text),
  }),
  input_received: objectOf<EventBodies['input_received']>({
    message: userMessage,
    delivery: wordOf(deliveries),
    receipt: maybe(text),
  }),
  input_settled: objectOf<EventBodies['input_settled']>({
    receipt: text,
    delivered: flag,
    why: maybe(text),
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
    maxOutputTokens: maybe(amount),
    change: maybe(shownChange),
    additions: maybe(listOf(requestAddition)),
  }),
  assistant_started: objectOf<EventBodies['assistant_started']>({
    attempt: ordinal,
    providerMessageId: maybe(text),
    servedModel: maybe(text),
    warnings: maybe(listOf(text)),
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
    contextTokens: maybe(counted),
    costUsd: maybe(money),
    price: maybe(price),
    raw: maybe(json),
    estimated: maybe(usageFieldNames),
    refused: maybe(usageFieldNames),
  }),
  assistant_message_finished: objectOf<EventBodies['assistant_message_finished']>({
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
  model_stream_failed: objectOf<EventBodies['model_stream_failed']>({
    attempt: ordinal,
    failure,
    retryAt: maybe(moment),
    refusal: maybe(refusal),
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
    expiresAt: maybe(moment),
    reason: maybe(text),
  }),
  approval_decided: objectOf<EventBodies['approval_decided']>({
    attempt: ordinal,
    approved: flag,
    by: text,
    inputDigest: text,
    via: maybe(text),
    input: maybe(jsonObject),
    note: maybe(text),
    reason: maybe(text),
    elsewhere: maybe(exactly(true)),
  }),
  tool_started: objectOf<EventBodies['tool_started']>({
    name: text,
    attempt: ordinal,
    idempotencyKey: text,
    effect: wordOf(toolEffects),
    child: maybe(runId),
    inputDigest: maybe(text),
    recorded: maybe(toolCallId),
    grant: maybe(grant),
  }),
  tool_deferred: objectOf<EventBodies['tool_deferred']>({
    attempt: ordinal,
    receipt: text,
    deadlineAt: maybe(moment),
  }),
  tool_progress: objectOf<EventBodies['tool_progress']>({
    attempt: ordinal,
    data: json,
    spent: maybe(toolSpending),
  }),
  tool_attempt_failed: objectOf<EventBodies['tool_attempt_failed']>({
    name: text,
    attempt: ordinal,
    outcome,
    content: listOf(resultPart),
    durationMs: amount,
    retryAt: moment,
    retryAfterMs: maybe(amount),
    error: maybe(text),
  }),
  tool_result: objectOf<EventBodies['tool_result']>({
    name: text,
    outcome,
    content: listOf(resultPart),
    projected: maybe(listOf(resultPart)),
    shown: maybe(listOf(resultPart)),
    durationMs: maybe(amount),
    child: maybe(childTotals),
    reused: maybe(toolCallId),
    error: maybe(text),
    settled: maybe(objectOf<Attribution>({ by: maybe(text), reason: maybe(text) })),
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
    maxOutputTokens: maybe(amount),
    additions: maybe(listOf(requestAddition)),
    grant,
    interrupted: maybe(spending),
  }),
  context_compacted: objectOf<EventBodies['context_compacted']>({
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
  agent_handed_off: objectOf<EventBodies['agent_handed_off']>({
    from: text,
    to: text,
    definition: agentDefinition,
    messages: maybe(listOf(message)),
  }),
  guardrail_tripped: objectOf<EventBodies['guardrail_tripped']>({
    guardrail: text,
    on: wordOf(guardedThings),
    action: wordOf(guardrailActions),
    detail: maybe(text),
    index: maybe(count),
    replacement: maybe(listOf(resultPart)),
  }),
  guardrails_checked: objectOf<EventBodies['guardrails_checked']>({
    on: wordOf(guardedThings),
    guardrails: listOf(text),
  }),
  output_checked: objectOf<EventBodies['output_checked']>({
    valid: flag,
    output: maybe(json),
    error: maybe(text),
    repair: maybe(userMessage),
  }),
  limit_reached: objectOf<EventBodies['limit_reached']>({
    limit: wordOf(limitNames),
    max: amount,
    used: amount,
    held: maybe(amount),
    policy: wordOf(onLimits),
  }),
  limit_raised: objectOf<EventBodies['limit_raised']>({
    limit: wordOf(limitNames),
    max: amount,
    by: text,
    reason: maybe(text),
  }),
  cancel_requested: objectOf<EventBodies['cancel_requested']>({ by: maybe(text), reason: maybe(text) }),
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
 * Reads an event from outside: an import, or a store of other people's. Returns the value that it was given, unknown
 * fields included. Throws an `UnknownEventError` for a type, or a version of a type, that this release does not know,
 * and a `LedgerDamagedError` that names the place for anything else that is not an event.
 */
export function parseEvent(value: unknown): RuntimeEvent {
  requireSound(envelopeSchema(value), 'An event')
  const { type, v, seq, runId } = value as { type?: unknown; v: number; seq: number; runId: string }
  const subject = `Event ${seq} of run ${runId}`
  if (typeof type !== 'string') throw damaged(subject, { path: 'type', what: 'is not a text' })
  if (!isKnown(type, v)) throw new UnknownEventError(runId, seq, `${type} v${v}`)
  requireSound(wholeSchemaOf(type)(value), subject)
  return value as RuntimeEvent
}

/**
 * The first field of an event that does not have the shape of its type; `undefined` where every field fits, and for
 * types and versions that this release does not know. Of an event whose content was removed only what is left is
 * checked: its envelope. The value of the field is not shown.
 */
export function shapeFaultOf(event: RuntimeEvent): Fault | undefined {
  const { type, v, removed } = event
  if (removed === undefined && isKnown(type, v)) return wholeSchemaOf(type)(event)
  const fault = envelopeSchema(event)
  return fault ?? (isKnown(type, v) && callTypes.has(type) ? callEnvelopeSchema(event) : undefined)
}

const wholeSchemas = new Map<EventType, Schema>()

/** The schema of an event of a type with all its fields, which are checked in one pass. */
function wholeSchemaOf(type: EventType): Schema {
  const known = wholeSchemas.get(type)
  if (known) return known
  const schemas = [envelopeSchema, eventBodies[type], ...(callTypes.has(type) ? [callEnvelopeSchema] : [])]
  const shapes = schemas.map(({ kind }) => (kind?.is === 'object' ? kind.fields : {}))
  const whole = withShape(Object.assign({}, ...shapes) as Shape)
  wholeSchemas.set(type, whole)
  return whole
}

function requireSound(fault: Fault | undefined, subject: string): void {
  if (fault) throw damaged(subject, fault)
}

function damaged(subject: string, { path, what }: Fault): LedgerDamagedError {
  return new LedgerDamagedError(
    `${subject} is damaged at ${path || 'its root'}: it ${what}. What follows from a damaged event cannot be trusted, so it was not ` +
      `read. Run verify on the ledger that it comes from, or export it there again.`,
  )
}
