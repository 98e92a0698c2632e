import type { AgentDefinition, RequestAddition } from '../events/agent-definition.ts'
import type { AssistantPart, Message, ResultPart, UserMessage, UserPart } from '../events/content.ts'
import {
  type CollectedCall,
  removedText,
  type ShownChange,
  type ShownPiece,
  type StandingApproval,
} from '../events/event-parts.ts'
import {
  type EventBodies,
  type EventOf,
  type EventType,
  requireKnown,
  type RuntimeEvent,
} from '../events/event.ts'
import type { ModelRefusal, ModelSettings, ToolDefinition } from '../events/model-request.ts'
import type { ModelFailure } from '../values/errors.ts'
import { type JsonObject, omitUndefined } from '../values/json.ts'

/** These fields of a value stay as they are; those that it lacks are left out. */
function keep<Value extends object, Name extends keyof Value>(
  value: Value,
  ...names: readonly Name[]
): Pick<Value, Name> {
  const kept = names.flatMap((name) => (value[name] === undefined ? [] : [[name, value[name]] as const]))
  return Object.fromEntries(kept) as Pick<Value, Name>
}

/** These fields of a value stay, masked; those that it lacks are left out. */
function mask<Value extends object, Name extends keyof Value>(
  value: Value,
  masks: { readonly [Each in Name]: (field: Exclude<Value[Each], undefined>) => Value[Each] },
): Pick<Value, Name> {
  const masked = (Object.keys(masks) as Name[]).flatMap((name) => {
    const field = value[name]
    return field === undefined ? [] : [[name, masks[name](field as Exclude<Value[Name], undefined>)] as const]
  })
  return Object.fromEntries(masked) as Pick<Value, Name>
}

/** A text that is gone. What was empty said nothing. */
function redactText(text: string): string {
  return text === '' ? '' : removedText
}

const redactInput = (): JsonObject => ({})

/** Parts of a user or a tool become as many parts of text. */
function redactParts(
  parts: readonly (UserPart | ResultPart)[],
): readonly { readonly type: 'text'; readonly text: string }[] {
  return parts.map((part) => ({
    type: 'text',
    text: part.type === 'text' ? redactText(part.text) : removedText,
  }))
}

/**
 * Texts are masked; reasoning and blocks of the vendor are left out, since their proofs hold for the whole
 * only. Calls stay, under their names and ids, so that each still has its result.
 */
export function redactReply(parts: readonly AssistantPart[]): readonly AssistantPart[] {
  const redacted = parts.flatMap((part): AssistantPart[] => {
    if (part.type === 'text') return [{ type: 'text', text: redactText(part.text) }]
    if (part.type !== 'tool_call') return []
    return [{ ...keep(part, 'type', 'toolCallId', 'providerCallId', 'name'), input: {} }]
  })
  return redacted.length > 0 || parts.length === 0 ? redacted : [{ type: 'text', text: removedText }]
}

function redactUserMessage({ role, parts }: UserMessage): UserMessage {
  return { role, parts: redactParts(parts) }
}

/** A message of the history, with the calls and results that it pairs. */
export function redactMessage(message: Message): Message {
  if (message.role === 'user') return redactUserMessage(message)
  if (message.role === 'assistant') {
    return {
      ...keep(message, 'role', 'model', 'stopReason', 'partial'),
      ...mask(message, { parts: redactReply }),
    }
  }
  const results = message.results.map((result) => ({
    ...keep(result, 'toolCallId', 'name', 'outcome'),
    content: redactParts(result.content),
  }))
  return { role: 'tool', results }
}

const redactMessages = (messages: readonly Message[]): readonly Message[] => messages.map(redactMessage)

/** Names, models, numbers, the digest of the whole, and how runs are driven stay: a run that continues goes by them. */
export function redactDefinition(definition: AgentDefinition): AgentDefinition {
  return {
    ...keep(definition, 'model', 'parallelToolCalls', 'digest', 'maxOutputTokens', 'maxWebSearches', 'price'),
    ...keep(definition, 'onRefusal', 'fallbacks', 'guardrails', 'handoffs'),
    ...mask(definition, {
      instructions: redactText,
      tools: (tools) => tools.map(redactTool),
      modelSettings: redactSettings,
      output: (output) => ({ ...keepNumbers(output), schema: {} }),
      summarizer: (summarizer) => ({ ...summarizer, instructions: removedText }),
      policy: (policy) => ({
        ...keep(
          policy,
          'limits',
          'retry',
          'timeouts',
          'compaction',
          'maxResultChars',
          'approval',
          'recording',
        ),
        ...keep(policy, 'outputStream'),
      }),
    }),
  }
}

/** The numbers of an object, by whatever name a version of the event has for them. */
function keepNumbers<Value extends object>(value: Value): Value {
  return Object.fromEntries(Object.entries(value).filter(([, field]) => typeof field === 'number')) as Value
}

/** How models write, without what may say something: the texts that end a reply, and the options of one provider. */
function redactSettings(settings: ModelSettings): ModelSettings {
  return keep(settings, 'temperature', 'topP', 'seed', 'maxOutputTokens', 'reasoningEffort')
}

/** How a model call failed, without the vendor's words. */
function redactFailure(failure: ModelFailure): ModelFailure {
  return { ...failure, message: redactText(failure.message) }
}

/** A tool with nothing but its name left. */
function redactTool({ name }: ToolDefinition): ToolDefinition {
  return { name, description: removedText, inputSchema: { type: 'object' } }
}

/** The names of what an adapter adds to requests stay. */
function redactAdditions(additions: readonly RequestAddition[]): readonly RequestAddition[] {
  return additions.map(({ digest: _digest, ...names }) => names)
}

/** Keeps what a refusal asks for, and masks what it says. */
function redactRefusal(refusal: ModelRefusal): ModelRefusal {
  return { ...refusal, ...mask(refusal, { reason: redactText }) }
}

/** A digest that names the call and says nothing of its input. */
function nameRemovedDigest(toolCallId: string): string {
  return `removed ${toolCallId}`
}

/** An approval for equal input then covers no call: without its digest it would cover all. */
function redactStanding(standing: StandingApproval): StandingApproval {
  const { toolCallId, inputDigest } = standing
  return inputDigest === undefined ? standing : { ...standing, inputDigest: nameRemovedDigest(toolCallId) }
}

function redactCall(call: CollectedCall): CollectedCall {
  return {
    ...keep(call, 'toolCallId', 'name', 'plan', 'effect', 'recovery', 'retry', 'serial', 'maxConcurrency'),
    ...keep(call, 'repeats', 'background', 'child', 'handoff', 'recorded', 'approvers'),
    inputDigest: nameRemovedDigest(call.toolCallId),
    ...mask(call, {
      reason: redactText,
      input: redactInput,
      repairs: (repairs) => repairs.map(redactText),
      refusal: ({ outcome, text }) => ({ outcome, text: redactText(text) }),
    }),
  }
}

function redactPiece(piece: ShownPiece): ShownPiece {
  return 'messages' in piece ? { messages: redactMessages(piece.messages) } : piece
}

/** What a turn's code changed, without what it says. */
function redactChange(change: ShownChange): ShownChange {
  return {
    ...keep(change, 'tools', 'maxOutputTokens', 'parallelToolCalls'),
    ...mask(change, {
      instructions: redactText,
      sourced: (tools) => tools.map(redactTool),
      messages: redactMessages,
      shown: ({ pieces }) => ({ digest: removedText, pieces: pieces.map(redactPiece) }),
      modelSettings: redactSettings,
    }),
  }
}

/**
 * Returns an event without its content: its facts (who, which, when, how much, how it ended), with markers in place
 * of content, so that it still folds. Only listed fields stay: a field that this release does not know is removed. A
 * digest of content is removed too, since it would confirm a guess at the content. Throws an `UnknownEventError` for a
 * type, or a version of one, that this release does not know.
 */
export function redactEvent(event: RuntimeEvent): EventBodies[EventType] {
  requireKnown(event)
  const redact = redactions[event.type] as (event: RuntimeEvent) => EventBodies[EventType]
  return { ...redact(event), ...keep(event, 'cause', 'inboxKey', 'draining') }
}

const redactions: { readonly [T in EventType]: (event: EventOf<T>) => EventBodies[T] } = {
  run_started: (event) => ({
    ...keep(event, 'agent', 'limits', 'retry', 'sessionId', 'sessionPlace', 'parent', 'subject', 'owner'),
    ...keep(event, 'toolChoice', 'parallelToolCalls', 'recording', 'deadlineAt', 'withContext'),
    ...keep(event, 'rules', 'tracing', 'traceContent'),
    ...mask(event, {
      definition: redactDefinition,
      standing: (list) => list.map(redactStanding),
      // The adapter's options may hold content.
      givenModel: ({ options: _options, ...model }) => ({
        ...model,
        ...mask(model, { additions: redactAdditions }),
      }),
      // Ids stay, as that of the session does.
      labels: (labels) => keep(labels, 'workflowName', 'traceId', 'groupId'),
      modelSettings: redactSettings,
    }),
  }),
  // With a marker for each message, the runs of a session would grow with its past.
  history_carried: ({ messages, missing = 0, uncheckedFrom }) => ({
    messages: [],
    missing: missing + messages.length,
    ...omitUndefined({ uncheckedFrom }),
  }),
  session_edited: (event) => ({
    ...keep(event, 'edit', 'count', 'standing', 'uncheckedFrom', 'by'),
    ...mask(event, { messages: redactMessages, reason: redactText }),
  }),
  history_edited: (event) => ({
    ...keep(event, 'by'),
    edits: event.edits.map((edit) => ({ ...keep(edit, 'index'), ...mask(edit, { message: redactMessage }) })),
    ...mask(event, { reason: redactText }),
  }),
  run_resumed: (event) => ({
    ...keep(event, 'why', 'inDoubt', 'lacks'),
    ...mask(event, { definition: redactDefinition }),
  }),
  run_finished: (event) => ({
    ...keep(event, 'reason', 'turns', 'toolCalls', 'usage', 'costUsd'),
    ...mask(event, { detail: redactText }),
  }),
  input_received: (event) => ({
    ...keep(event, 'delivery', 'receipt', 'onInput'),
    message: redactUserMessage(event.message),
  }),
  input_settled: (event) => ({ ...keep(event, 'receipt', 'delivered'), ...mask(event, { why: redactText }) }),
  model_call_started: (event) => ({
    ...keep(event, 'attempt', 'model', 'toolChoice', 'finalizing', 'grant', 'maxOutputTokens'),
    requestDigest: removedText,
    ...mask(event, {
      additions: redactAdditions,
      change: redactChange,
    }),
  }),
  assistant_started: (event) => ({
    ...keep(event, 'attempt', 'providerMessageId', 'servedModel'),
    ...mask(event, { warnings: (warnings) => warnings.map(redactText) }),
  }),
  assistant_text_delta: (event) => ({ ...keep(event, 'attempt', 'part', 'replaces'), text: '' }),
  assistant_reasoning_delta: (event) => ({ ...keep(event, 'attempt', 'part', 'replaces'), text: '' }),
  tool_input_delta: (event) => ({ ...keep(event, 'attempt', 'part', 'name'), text: '' }),
  tool_request_ready: (event) => ({ ...keep(event, 'attempt', 'part', 'providerCallId', 'name'), input: {} }),
  usage_updated: (event) =>
    keep(event, 'attempt', 'usage', 'contextTokens', 'costUsd', 'price', 'estimated', 'refused', 'raw'),
  assistant_message_finished: (event) => ({
    ...keep(event, 'attempt', 'stopReason', 'rawStopReason', 'partial', 'places', 'providerMessageId'),
    ...mask(event, { parts: redactReply, refusal: redactRefusal }),
  }),
  model_stream_failed: (event) => ({
    ...keep(event, 'attempt', 'retryAt'),
    ...mask(event, { failure: redactFailure, refusal: redactRefusal }),
  }),
  tool_requests_collected: ({ calls }) => ({ calls: calls.map(redactCall) }),
  approval_requested: (event) => ({
    ...keep(event, 'name', 'attempt', 'expiresAt', 'approvers'),
    inputDigest: nameRemovedDigest(event.toolCallId),
    ...mask(event, { reason: redactText }),
  }),
  approval_added: (event) => ({
    ...keep(event, 'attempt', 'by', 'roles', 'via', 'elsewhere'),
    inputDigest: nameRemovedDigest(event.toolCallId),
    ...mask(event, { reason: redactText }),
  }),
  approval_applied: (event) => ({
    ...keep(event, 'attempt', 'by', 'standing'),
    inputDigest: nameRemovedDigest(event.toolCallId),
  }),
  approval_withdrawn: (event) => ({
    ...keep(event, 'standing', 'by'),
    ...mask(event, { reason: redactText }),
  }),
  approval_decided: (event) => ({
    ...keep(event, 'attempt', 'approved', 'by', 'roles', 'via', 'standing', 'elsewhere'),
    inputDigest: nameRemovedDigest(event.toolCallId),
    ...mask(event, { input: redactInput, note: redactText, reason: redactText }),
  }),
  tool_started: (event) => ({
    ...keep(event, 'name', 'attempt', 'idempotencyKey', 'effect', 'child', 'recorded', 'grant'),
    ...mask(event, { inputDigest: () => nameRemovedDigest(event.toolCallId) }),
  }),
  tool_progress: (event) => ({ ...keep(event, 'attempt', 'spent'), data: null }),
  tool_deferred: (event) => keep(event, 'attempt', 'receipt', 'deadlineAt'),
  tool_attempt_failed: (event) => ({
    ...keep(event, 'name', 'attempt', 'outcome', 'durationMs', 'retryAt', 'retryAfterMs'),
    content: redactParts(event.content),
  }),
  tool_result: (event) => ({
    ...keep(event, 'name', 'outcome', 'durationMs', 'child', 'reused', 'background'),
    ...mask(event, {
      content: redactParts,
      projected: redactParts,
      shown: redactParts,
      settled: (settled) => ({ ...keep(settled, 'by'), ...mask(settled, { reason: redactText }) }),
    }),
  }),
  background_ended: (event) => ({
    ...keep(event, 'name', 'attempt', 'outcome', 'durationMs'),
    content: redactParts(event.content),
    ...mask(event, { message: redactUserMessage }),
  }),
  tool_results_injected: (event) => keep(event, 'toolCallIds'),
  compaction_started: (event) => ({
    ...keep(event, 'model', 'replacedMessages', 'maxOutputTokens', 'grant', 'interrupted'),
    requestDigest: removedText,
    ...mask(event, { additions: redactAdditions }),
  }),
  context_compacted: (event) => ({
    ...keep(event, 'replacedMessages', 'taskAt', 'tokensBefore', 'tokensAfter', 'usage', 'costUsd', 'price'),
    ...keep(event, 'abandoned'),
    ...mask(event, { summary: redactUserMessage, failure: redactFailure }),
  }),
  agent_handed_off: (event) => ({
    ...keep(event, 'from', 'to'),
    ...mask(event, { definition: redactDefinition, messages: redactMessages }),
  }),
  guardrail_tripped: (event) => ({
    ...keep(event, 'guardrail', 'on', 'action', 'index'),
    ...mask(event, { detail: redactText, replacement: redactParts }),
  }),
  guardrails_checked: (event) => keep(event, 'on', 'guardrails'),
  output_checked: (event) => ({
    ...keep(event, 'valid'),
    ...mask(event, { output: () => null, error: redactText, repair: redactUserMessage }),
  }),
  schedule_set: (event) => ({
    ...keep(event, 'name', 'cron', 'timeZone', 'onceAt', 'everyMs', 'missed', 'paused', 'nextAt', 'by'),
    ...mask(event, { reason: redactText }),
  }),
  schedule_fired: (event) => keep(event, 'scheduledAt', 'startedRun', 'missed', 'nextAt'),
  limit_reached: (event) => ({
    ...keep(event, 'limit', 'max', 'used', 'held', 'policy'),
    ...mask(event, {
      prepared: (call) => ({
        ...keep(call, 'model', 'toolChoice'),
        ...mask(call, { change: redactChange }),
      }),
    }),
  }),
  limit_raised: (event) => ({ ...keep(event, 'limit', 'max', 'by'), ...mask(event, { reason: redactText }) }),
  cancel_requested: (event) => ({ ...keep(event, 'by'), ...mask(event, { reason: redactText }) }),
  feedback_given: (event) => ({ ...keep(event, 'by', 'score'), ...mask(event, { note: redactText }) }),
}
