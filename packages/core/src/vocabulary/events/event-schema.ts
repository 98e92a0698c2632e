import {
  amount,
  count,
  exactly,
  flag,
  json,
  jsonObject,
  listOf,
  objectOf,
  optional,
  ordinal,
  type Schema,
  text,
  wordOf,
} from '../values/schema.ts'
import { causes } from './cause.ts'
import { counted, money, price, usage } from '../billing/billing-schema.ts'
import {
  assistantPart,
  message,
  modelRef,
  outcome,
  requestedFields,
  resultPart,
  stopReason,
  toolCallId,
  userMessage,
} from '../model/content-schema.ts'
import {
  deliveries,
  finishReasons,
  guardedThings,
  guardrailActions,
  resumeReasons,
  type Attribution,
  type EventBodies,
  type EventEnvelope,
  type EventType,
  type HistoryEdit,
  type Removed,
} from './event.ts'
import { limitNames, onLimits } from '../limits/limits.ts'
import { limits, retry } from '../limits/limits-schema.ts'
import type { RunLabels } from '../agent/run-given.ts'
import { modelSettings } from '../model/model-settings-schema.ts'
import { providerState } from '../model/provider-state.ts'
import { refusal } from '../model/refusal-schema.ts'
import { recordingPolicy, requestAddition } from '../agent/agent-policy-schema.ts'
import { toolEffects } from '../model/tool-definition.ts'
import { agentDefinition, givenModel } from '../agent/agent-definition-schema.ts'
import {
  runId,
  moment,
  grant,
  parent,
  spending,
  usageFieldNames,
  toolChoice,
  collectedCall,
  replyDelta,
  writtenPart,
  shownChange,
  failure,
  childTotals,
} from './event-parts-schema.ts'

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
  tool_progress: objectOf<EventBodies['tool_progress']>({ attempt: ordinal, data: json }),
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
