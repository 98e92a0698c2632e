import type { Message, RuntimeEvent } from '@tallystick/core'
import {
  type AgentPolicy,
  type CollectedCall,
  omitUndefined,
  removedText,
  type ShownPiece,
} from '@tallystick/core/internal'
import type {
  AgentDefinition,
  AssistantPart,
  EventBodies,
  EventOf,
  EventType,
  GivenModel,
  ModelFailure,
  ModelRefusal,
  ModelSettings,
  RequestAddition,
  ResultPart,
  RunLabels,
  ToolDefinition,
  UserMessage,
  UserPart,
} from '@tallystick/core/vocabulary'

/** A text that is gone. What was empty said nothing. */
function redactText(text: string): string {
  return text === '' ? '' : removedText
}

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
    const { type, toolCallId, providerCallId, name } = part
    return [{ type, toolCallId, providerCallId, name, input: {} }]
  })
  return redacted.length > 0 || parts.length === 0 ? redacted : [{ type: 'text', text: removedText }]
}

function redactUserMessage({ role, parts }: UserMessage): UserMessage {
  return { role, parts: redactParts(parts) }
}

/** A message of the history, with the calls and results that it pairs. */
export function redactMessage(message: Message): Message {
  if (message.role === 'user') return redactUserMessage(message)
  if (message.role === 'tool') {
    const results = message.results.map(({ toolCallId, name, outcome, content }) => {
      return { toolCallId, name, outcome, content: redactParts(content) }
    })
    return { role: 'tool', results }
  }
  const { role, parts, model, stopReason, partial } = message
  return { role, parts: redactReply(parts), model, stopReason, partial }
}

/** Names, models, numbers and the digest of the whole stay. */
export function redactDefinition(definition: AgentDefinition): AgentDefinition {
  const { model, instructions, tools, parallelToolCalls, digest, output, summarizer } = definition
  const { maxOutputTokens, maxWebSearches, modelSettings, onRefusal, price } = definition
  const { fallbacks, guardrails, handoffs, policy } = definition
  return {
    model,
    instructions: redactText(instructions),
    parallelToolCalls,
    digest,
    tools: tools.map(redactTool),
    ...omitUndefined({ maxOutputTokens, maxWebSearches }),
    ...(modelSettings && { modelSettings: redactSettings(modelSettings) }),
    ...(onRefusal && { onRefusal }),
    ...(price && { price }),
    ...(fallbacks && { fallbacks }),
    ...(guardrails && { guardrails }),
    ...(handoffs && { handoffs }),
    ...(output && { output: { ...keepNumbers(output), schema: {} } }),
    ...(summarizer && { summarizer: { ...summarizer, instructions: removedText } }),
    ...(policy && { policy: redactPolicy(policy) }),
  }
}

/** How runs are driven: numbers, flags and names. A run that continues still goes by it. */
function redactPolicy(policy: AgentPolicy): AgentPolicy {
  const { limits, retry, timeouts, compaction, maxResultChars, approval, recording, outputStream } = policy
  return {
    limits,
    ...omitUndefined({ retry, timeouts, compaction, maxResultChars, approval, recording, outputStream }),
  }
}

/** The numbers of an object, by whatever name a version of the event has for them. */
function keepNumbers<Value extends object>(value: Value): Value {
  return Object.fromEntries(Object.entries(value).filter(([, field]) => typeof field === 'number')) as Value
}

/** How models write, without what may say something: the texts that end a reply, and the options of one provider. */
function redactSettings(settings: ModelSettings): ModelSettings {
  const { temperature, topP, seed, maxOutputTokens, reasoningEffort } = settings
  return omitUndefined({ temperature, topP, seed, maxOutputTokens, reasoningEffort })
}

/** How a model call failed, without the vendor's words. */
function redactFailure(failure: ModelFailure): ModelFailure {
  return { ...failure, message: redactText(failure.message) }
}

/** A tool of which only the name is left. */
function redactTool({ name }: ToolDefinition): ToolDefinition {
  return { name, description: removedText, inputSchema: { type: 'object' } }
}

/** The adapter's options may hold content. */
function redactGivenModel({ options: _options, additions, ...model }: GivenModel): GivenModel {
  return { ...model, ...redactAdditions(additions) }
}

/** The names of what an adapter adds to requests stay. */
function redactAdditions(additions: readonly RequestAddition[] | undefined): {
  readonly additions?: readonly RequestAddition[]
} {
  return additions ? { additions: additions.map(({ digest: _digest, ...names }) => names) } : {}
}

/** Ids stay, as that of the session does. */
function redactLabels({ workflowName, traceId, groupId }: RunLabels): RunLabels {
  return omitUndefined({ workflowName, traceId, groupId })
}

type Masks = { readonly [T in EventType]: (event: EventOf<T>) => EventBodies[T] }

/**
 * Returns an event without its content: its facts (who, which, when, how much, how it ended), with markers in place
 * of content, so that it still folds. Only listed fields stay: a field that this release does not know is removed. A
 * digest of content is removed too, since it would confirm a guess at the content.
 */
export function redactEvent(event: RuntimeEvent): EventBodies[EventType] {
  const mask = masks[event.type] as (event: RuntimeEvent) => EventBodies[EventType]
  const { cause, inboxKey, draining } = event
  return { ...mask(event), ...omitUndefined({ cause, inboxKey, draining }) }
}

/** A body without anything to hide: these of its fields stay. */
function keepFields<T extends EventType>(
  ...names: readonly (keyof EventBodies[T] & string)[]
): (event: EventOf<T>) => EventBodies[T] {
  return (event) => {
    const kept = names.flatMap((name) => (event[name] === undefined ? [] : [[name, event[name]]]))
    return Object.fromEntries(kept) as EventBodies[T]
  }
}

/** A digest that names the call and says nothing of its input. */
function nameRemovedDigest(toolCallId: string): string {
  return `removed ${toolCallId}`
}

function redactOptionalText(text: string | undefined): string | undefined {
  return text === undefined ? undefined : redactText(text)
}

/** Keeps what a refusal asks for, and masks what it says. */
function redactRefusal(refusal: ModelRefusal | undefined): { readonly refusal?: ModelRefusal } {
  return refusal
    ? { refusal: { ...refusal, ...omitUndefined({ reason: redactOptionalText(refusal.reason) }) } }
    : {}
}

function redactCall(call: CollectedCall): CollectedCall {
  const { toolCallId, name, plan, effect, recovery, retry, serial, maxConcurrency, repeats } = call
  const { child, handoff, recorded, input, repairs, reason, refusal } = call
  return {
    toolCallId,
    name,
    plan,
    inputDigest: nameRemovedDigest(toolCallId),
    ...omitUndefined({
      effect,
      recovery,
      retry,
      serial,
      maxConcurrency,
      repeats,
      child,
      handoff,
      recorded,
      reason: redactOptionalText(reason),
    }),
    ...(input && { input: {} }),
    ...(repairs && { repairs: repairs.map(redactText) }),
    ...(refusal && { refusal: { outcome: refusal.outcome, text: redactText(refusal.text) } }),
  }
}

function redactPiece(piece: ShownPiece): ShownPiece {
  return 'messages' in piece ? { messages: piece.messages.map(redactMessage) } : piece
}

const masks: Masks = {
  run_started: (event) => ({
    ...keepFields<'run_started'>(
      ...(['agent', 'limits', 'retry', 'sessionId', 'sessionPlace', 'parent', 'subject'] as const),
      ...(['owner', 'toolChoice', 'parallelToolCalls', 'recording', 'deadlineAt'] as const),
      'withContext',
    )(event),
    definition: redactDefinition(event.definition),
    ...(event.givenModel && { givenModel: redactGivenModel(event.givenModel) }),
    ...(event.labels && { labels: redactLabels(event.labels) }),
    ...(event.modelSettings && { modelSettings: redactSettings(event.modelSettings) }),
  }),
  // With a marker for each message, the runs of a session would grow with its past.
  history_carried: ({ messages, missing = 0, uncheckedFrom }) => ({
    messages: [],
    missing: missing + messages.length,
    ...omitUndefined({ uncheckedFrom }),
  }),
  history_edited: ({ edits, by, reason }) => ({
    edits: edits.map(({ index, message }) => ({
      index,
      ...(message && { message: redactMessage(message) }),
    })),
    ...omitUndefined({ by, reason: redactOptionalText(reason) }),
  }),
  run_resumed: ({ why, inDoubt, definition }) => ({
    why,
    inDoubt,
    ...(definition && { definition: redactDefinition(definition) }),
  }),
  run_finished: (event) => ({
    ...keepFields<'run_finished'>(...(['reason', 'turns', 'toolCalls', 'usage', 'costUsd'] as const))(event),
    ...omitUndefined({ detail: redactOptionalText(event.detail) }),
  }),
  input_received: ({ message, delivery, receipt }) => ({
    message: redactUserMessage(message),
    delivery,
    ...omitUndefined({ receipt }),
  }),
  input_settled: ({ receipt, delivered, why }) => ({
    receipt,
    delivered,
    ...omitUndefined({ why: redactOptionalText(why) }),
  }),
  model_call_started: ({ change, ...event }) => ({
    ...keepFields<'model_call_started'>(
      ...(['attempt', 'model', 'toolChoice', 'finalizing', 'grant', 'maxOutputTokens'] as const),
    )(event),
    requestDigest: removedText,
    ...redactAdditions(event.additions),
    ...(change && {
      change: {
        ...omitUndefined({ instructions: redactOptionalText(change.instructions), tools: change.tools }),
        ...omitUndefined({ maxOutputTokens: change.maxOutputTokens }),
        ...(change.sourced && { sourced: change.sourced.map(redactTool) }),
        ...(change.messages && { messages: change.messages.map(redactMessage) }),
        ...(change.shown && {
          shown: { digest: removedText, pieces: change.shown.pieces.map(redactPiece) },
        }),
        ...(change.modelSettings && { modelSettings: redactSettings(change.modelSettings) }),
        ...omitUndefined({ parallelToolCalls: change.parallelToolCalls }),
      },
    }),
  }),
  assistant_started: ({ attempt, providerMessageId, servedModel, warnings }) => ({
    attempt,
    ...omitUndefined({ providerMessageId, servedModel }),
    ...(warnings && { warnings: warnings.map(redactText) }),
  }),
  assistant_text_delta: ({ attempt, part, replaces }) => ({
    attempt,
    part,
    text: '',
    ...omitUndefined({ replaces }),
  }),
  assistant_reasoning_delta: ({ attempt, part, replaces }) => ({
    attempt,
    part,
    text: '',
    ...omitUndefined({ replaces }),
  }),
  tool_input_delta: ({ attempt, part, name }) => ({ attempt, part, name, text: '' }),
  tool_request_ready: ({ attempt, part, providerCallId, name }) => ({
    attempt,
    part,
    providerCallId,
    name,
    input: {},
  }),
  usage_updated: keepFields<'usage_updated'>(
    ...(['attempt', 'usage', 'contextTokens', 'costUsd', 'price', 'estimated', 'refused', 'raw'] as const),
  ),
  assistant_message_finished: ({ parts, ...event }) => ({
    ...keepFields<'assistant_message_finished'>(
      ...(['attempt', 'stopReason', 'rawStopReason', 'partial', 'places'] as const),
    )({ parts, ...event }),
    parts: redactReply(parts),
    ...omitUndefined({ providerMessageId: event.providerMessageId }),
    ...redactRefusal(event.refusal),
  }),
  model_stream_failed: ({ attempt, failure, retryAt, refusal }) => ({
    attempt,
    failure: redactFailure(failure),
    ...omitUndefined({ retryAt }),
    ...redactRefusal(refusal),
  }),
  tool_requests_collected: ({ calls }) => ({ calls: calls.map(redactCall) }),
  approval_requested: ({ name, attempt, toolCallId, expiresAt, reason }) => ({
    name,
    attempt,
    inputDigest: nameRemovedDigest(toolCallId),
    ...omitUndefined({ expiresAt, reason: redactOptionalText(reason) }),
  }),
  approval_decided: ({ attempt, approved, by, via, elsewhere, toolCallId, input, note, reason }) => ({
    attempt,
    approved,
    by,
    inputDigest: nameRemovedDigest(toolCallId),
    ...omitUndefined({ via, elsewhere }),
    ...(input && { input: {} }),
    ...omitUndefined({ note: redactOptionalText(note), reason: redactOptionalText(reason) }),
  }),
  tool_started: (event) => ({
    ...keepFields<'tool_started'>(
      ...(['name', 'attempt', 'idempotencyKey', 'effect', 'child', 'recorded', 'grant'] as const),
    )(event),
    ...(event.inputDigest !== undefined && { inputDigest: nameRemovedDigest(event.toolCallId) }),
  }),
  tool_progress: (event) => ({ ...keepFields<'tool_progress'>('attempt', 'spent')(event), data: null }),
  tool_deferred: keepFields<'tool_deferred'>('attempt', 'receipt', 'deadlineAt'),
  tool_attempt_failed: ({ content, ...event }) => ({
    ...keepFields<'tool_attempt_failed'>(
      ...(['name', 'attempt', 'outcome', 'durationMs', 'retryAt', 'retryAfterMs'] as const),
    )({
      content,
      ...event,
    }),
    content: redactParts(content),
  }),
  tool_result: ({ content, projected, shown, settled, ...event }) => ({
    ...keepFields<'tool_result'>(...(['name', 'outcome', 'durationMs', 'child', 'reused'] as const))({
      content,
      ...event,
    }),
    content: redactParts(content),
    ...(projected && { projected: redactParts(projected) }),
    ...(shown && { shown: redactParts(shown) }),
    ...(settled && {
      settled: omitUndefined({ by: settled.by, reason: redactOptionalText(settled.reason) }),
    }),
  }),
  tool_results_injected: keepFields<'tool_results_injected'>('toolCallIds'),
  compaction_started: (event) => ({
    ...keepFields<'compaction_started'>(
      ...(['model', 'replacedMessages', 'maxOutputTokens', 'grant', 'interrupted'] as const),
    )(event),
    requestDigest: removedText,
    ...redactAdditions(event.additions),
  }),
  context_compacted: ({ summary, failure, ...event }) => ({
    ...keepFields<'context_compacted'>(
      ...(['replacedMessages', 'taskAt', 'tokensBefore', 'tokensAfter', 'usage'] as const),
      ...(['costUsd', 'price', 'abandoned'] as const),
    )({
      summary,
      ...event,
    }),
    summary: redactUserMessage(summary),
    ...(failure && { failure: redactFailure(failure) }),
  }),
  agent_handed_off: ({ from, to, definition, messages }) => ({
    from,
    to,
    definition: redactDefinition(definition),
    ...(messages && { messages: messages.map(redactMessage) }),
  }),
  guardrail_tripped: ({ guardrail, on, action, index, detail, replacement }) => ({
    guardrail,
    on,
    action,
    ...omitUndefined({ index, detail: redactOptionalText(detail) }),
    ...(replacement && { replacement: redactParts(replacement) }),
  }),
  guardrails_checked: keepFields<'guardrails_checked'>('on', 'guardrails'),
  output_checked: ({ valid, output, error, repair }) => ({
    valid,
    ...(output !== undefined && { output: null }),
    ...omitUndefined({ error: redactOptionalText(error) }),
    ...(repair && { repair: redactUserMessage(repair) }),
  }),
  limit_reached: keepFields<'limit_reached'>(...(['limit', 'max', 'used', 'held', 'policy'] as const)),
  limit_raised: ({ limit, max, by, reason }) => ({
    limit,
    max,
    by,
    ...omitUndefined({ reason: redactOptionalText(reason) }),
  }),
  cancel_requested: ({ by, reason }) => omitUndefined({ by, reason: redactOptionalText(reason) }),
}
