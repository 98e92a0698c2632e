import type { Message, RuntimeEvent } from '@tallystick/core'
import { type CollectedCall, omitUndefined, removedText, type ShownPiece } from '@tallystick/core/internal'
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
function redactedText(text: string): string {
  return text === '' ? '' : removedText
}

/** Parts of a user or a tool become as many parts of text. */
function redactedParts(
  parts: readonly (UserPart | ResultPart)[],
): readonly { readonly type: 'text'; readonly text: string }[] {
  return parts.map((part) => ({
    type: 'text',
    text: part.type === 'text' ? redactedText(part.text) : removedText,
  }))
}

/**
 * What a model said: texts are gone, and so are reasoning and blocks of the vendor, whose proofs hold for the whole
 * only. Calls stay, under their names and ids, so that each still has its result.
 */
export function redactedReply(parts: readonly AssistantPart[]): readonly AssistantPart[] {
  const redacted = parts.flatMap((part): AssistantPart[] => {
    if (part.type === 'text') return [{ type: 'text', text: redactedText(part.text) }]
    if (part.type !== 'tool_call') return []
    const { type, toolCallId, providerCallId, name } = part
    return [{ type, toolCallId, providerCallId, name, input: {} }]
  })
  return redacted.length > 0 || parts.length === 0 ? redacted : [{ type: 'text', text: removedText }]
}

function redactedUserMessage({ role, parts }: UserMessage): UserMessage {
  return { role, parts: redactedParts(parts) }
}

/** A message of the history, with the calls and results that it pairs. */
export function redactedMessage(message: Message): Message {
  if (message.role === 'user') return redactedUserMessage(message)
  if (message.role === 'tool') {
    const results = message.results.map(({ toolCallId, name, outcome, content }) => {
      return { toolCallId, name, outcome, content: redactedParts(content) }
    })
    return { role: 'tool', results }
  }
  const { role, parts, model, stopReason, partial } = message
  return { role, parts: redactedReply(parts), model, stopReason, partial }
}

/** Names, models, prices and the digest of the whole stay. */
export function redactedDefinition(definition: AgentDefinition): AgentDefinition {
  const { model, instructions, tools, parallelToolCalls, digest, output, summarizer } = definition
  const { maxOutputTokens, modelSettings, onRefusal, price, fallbacks, guardrails, handoffs } = definition
  return {
    model,
    instructions: redactedText(instructions),
    parallelToolCalls,
    digest,
    tools: tools.map(redactedTool),
    ...(maxOutputTokens !== undefined && { maxOutputTokens }),
    ...(modelSettings && { modelSettings: redactedSettings(modelSettings) }),
    ...(onRefusal && { onRefusal }),
    ...(price && { price }),
    ...(fallbacks && { fallbacks }),
    ...(guardrails && { guardrails }),
    ...(handoffs && { handoffs }),
    ...(output && { output: { ...numbersOf(output), schema: {} } }),
    ...(summarizer && { summarizer: { ...summarizer, instructions: removedText } }),
  }
}

/** The numbers of an object, by whatever name a version of the event has for them. */
function numbersOf<Value extends object>(value: Value): Value {
  return Object.fromEntries(Object.entries(value).filter(([, field]) => typeof field === 'number')) as Value
}

/** How models write, without what may say something: the texts that end a reply, and the options of one provider. */
function redactedSettings(settings: ModelSettings): ModelSettings {
  const { temperature, topP, seed, maxOutputTokens, reasoningEffort } = settings
  return omitUndefined({ temperature, topP, seed, maxOutputTokens, reasoningEffort })
}

/** How a model call failed, without the vendor's words. */
function redactedFailure(failure: ModelFailure): ModelFailure {
  return { ...failure, message: redactedText(failure.message) }
}

/** A tool of which only the name is left. */
function redactedTool({ name }: ToolDefinition): ToolDefinition {
  return { name, description: removedText, inputSchema: { type: 'object' } }
}

/** The adapter's options may hold content. */
function redactedGivenModel({ options: _options, additions, ...model }: GivenModel): GivenModel {
  return { ...model, ...redactedAdditions(additions) }
}

/** The names of what an adapter adds to requests stay. */
function redactedAdditions(additions: readonly RequestAddition[] | undefined): {
  readonly additions?: readonly RequestAddition[]
} {
  return additions ? { additions: additions.map(({ digest: _digest, ...names }) => names) } : {}
}

/** Ids stay, as that of the session does. */
function redactedLabels({ workflowName, traceId, groupId }: RunLabels): RunLabels {
  return omitUndefined({ workflowName, traceId, groupId })
}

type Masks = { readonly [T in EventType]: (event: EventOf<T>) => EventBodies[T] }

/**
 * Returns an event without its content: its facts (who, which, when, how much, how it ended), with markers in place
 * of content, so that it still folds. Only listed fields stay: a field that this release does not know is removed. A
 * digest of content is removed too, since it would confirm a guess at the content.
 */
export function redactedPayload(event: RuntimeEvent): EventBodies[EventType] {
  const mask = masks[event.type] as (event: RuntimeEvent) => EventBodies[EventType]
  const { cause, inboxKey, draining } = event
  return { ...mask(event), ...omitUndefined({ cause, inboxKey, draining }) }
}

/** A body without anything to hide: these of its fields stay. */
function only<T extends EventType>(
  ...names: readonly (keyof EventBodies[T] & string)[]
): (event: EventOf<T>) => EventBodies[T] {
  return (event) => {
    const kept = names.flatMap((name) => (event[name] === undefined ? [] : [[name, event[name]]]))
    return Object.fromEntries(kept) as EventBodies[T]
  }
}

/** A digest that names the call and says nothing of its input. */
function redactedDigest(toolCallId: string): string {
  return `removed ${toolCallId}`
}

function textWhere(text: string | undefined): string | undefined {
  return text === undefined ? undefined : redactedText(text)
}

/** Keeps what a refusal asks for, and masks what it says. */
function redactedRefusal(refusal: ModelRefusal | undefined): { readonly refusal?: ModelRefusal } {
  return refusal ? { refusal: { ...refusal, ...omitUndefined({ reason: textWhere(refusal.reason) }) } } : {}
}

function redactedCall(call: CollectedCall): CollectedCall {
  const { toolCallId, name, plan, effect, recovery, retry, serial, maxConcurrency } = call
  const { child, handoff, recorded, input, repairs, reason, refusal } = call
  return {
    toolCallId,
    name,
    plan,
    inputDigest: redactedDigest(toolCallId),
    ...omitUndefined({
      effect,
      recovery,
      retry,
      serial,
      maxConcurrency,
      child,
      handoff,
      recorded,
      reason: textWhere(reason),
    }),
    ...(input && { input: {} }),
    ...(repairs && { repairs: repairs.map(redactedText) }),
    ...(refusal && { refusal: { outcome: refusal.outcome, text: redactedText(refusal.text) } }),
  }
}

function redactedPiece(piece: ShownPiece): ShownPiece {
  return 'messages' in piece ? { messages: piece.messages.map(redactedMessage) } : piece
}

const masks: Masks = {
  run_started: (event) => ({
    ...only<'run_started'>(
      ...(['agent', 'limits', 'retry', 'sessionId', 'sessionPlace', 'parent', 'subject'] as const),
      ...(['owner', 'toolChoice', 'parallelToolCalls', 'recording', 'deadlineAt'] as const),
      'withContext',
    )(event),
    definition: redactedDefinition(event.definition),
    ...(event.givenModel && { givenModel: redactedGivenModel(event.givenModel) }),
    ...(event.labels && { labels: redactedLabels(event.labels) }),
    ...(event.modelSettings && { modelSettings: redactedSettings(event.modelSettings) }),
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
      ...(message && { message: redactedMessage(message) }),
    })),
    ...omitUndefined({ by, reason: textWhere(reason) }),
  }),
  run_resumed: ({ why, inDoubt, definition }) => ({
    why,
    inDoubt,
    ...(definition && { definition: redactedDefinition(definition) }),
  }),
  run_finished: (event) => ({
    ...only<'run_finished'>(...(['reason', 'turns', 'toolCalls', 'usage', 'costUsd'] as const))(event),
    ...omitUndefined({ detail: textWhere(event.detail) }),
  }),
  input_received: ({ message, delivery, receipt }) => ({
    message: redactedUserMessage(message),
    delivery,
    ...omitUndefined({ receipt }),
  }),
  input_settled: ({ receipt, delivered, why }) => ({
    receipt,
    delivered,
    ...omitUndefined({ why: textWhere(why) }),
  }),
  model_call_started: ({ change, ...event }) => ({
    ...only<'model_call_started'>(
      ...(['attempt', 'model', 'toolChoice', 'finalizing', 'grant', 'maxOutputTokens'] as const),
    )(event),
    requestDigest: removedText,
    ...redactedAdditions(event.additions),
    ...(change && {
      change: {
        ...omitUndefined({ instructions: textWhere(change.instructions), tools: change.tools }),
        ...omitUndefined({ maxOutputTokens: change.maxOutputTokens }),
        ...(change.sourced && { sourced: change.sourced.map(redactedTool) }),
        ...(change.messages && { messages: change.messages.map(redactedMessage) }),
        ...(change.shown && {
          shown: { digest: removedText, pieces: change.shown.pieces.map(redactedPiece) },
        }),
        ...omitUndefined({
          modelSettings: change.modelSettings,
          parallelToolCalls: change.parallelToolCalls,
        }),
      },
    }),
  }),
  assistant_started: ({ attempt, providerMessageId, servedModel, warnings }) => ({
    attempt,
    ...omitUndefined({ providerMessageId, servedModel }),
    ...(warnings && { warnings: warnings.map(redactedText) }),
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
  usage_updated: only<'usage_updated'>(
    ...(['attempt', 'usage', 'contextTokens', 'costUsd', 'price', 'estimated', 'refused', 'raw'] as const),
  ),
  assistant_message_finished: ({ parts, ...event }) => ({
    ...only<'assistant_message_finished'>(
      ...(['attempt', 'stopReason', 'rawStopReason', 'partial', 'places'] as const),
    )({ parts, ...event }),
    parts: redactedReply(parts),
    ...omitUndefined({ providerMessageId: event.providerMessageId }),
    ...redactedRefusal(event.refusal),
  }),
  model_stream_failed: ({ attempt, failure, retryAt, refusal }) => ({
    attempt,
    failure: redactedFailure(failure),
    ...omitUndefined({ retryAt }),
    ...redactedRefusal(refusal),
  }),
  tool_requests_collected: ({ calls }) => ({ calls: calls.map(redactedCall) }),
  approval_requested: ({ name, attempt, toolCallId, expiresAt, reason }) => ({
    name,
    attempt,
    inputDigest: redactedDigest(toolCallId),
    ...omitUndefined({ expiresAt, reason: textWhere(reason) }),
  }),
  approval_decided: ({ attempt, approved, by, via, elsewhere, toolCallId, input, note, reason }) => ({
    attempt,
    approved,
    by,
    inputDigest: redactedDigest(toolCallId),
    ...omitUndefined({ via, elsewhere }),
    ...(input && { input: {} }),
    ...omitUndefined({ note: textWhere(note), reason: textWhere(reason) }),
  }),
  tool_started: (event) => ({
    ...only<'tool_started'>(
      ...(['name', 'attempt', 'idempotencyKey', 'effect', 'child', 'recorded', 'grant'] as const),
    )(event),
    ...(event.inputDigest !== undefined && { inputDigest: redactedDigest(event.toolCallId) }),
  }),
  tool_progress: (event) => ({ ...only<'tool_progress'>('attempt', 'spent')(event), data: null }),
  tool_deferred: only<'tool_deferred'>('attempt', 'receipt', 'deadlineAt'),
  tool_attempt_failed: ({ content, ...event }) => ({
    ...only<'tool_attempt_failed'>(
      ...(['name', 'attempt', 'outcome', 'durationMs', 'retryAt', 'retryAfterMs'] as const),
    )({
      content,
      ...event,
    }),
    content: redactedParts(content),
  }),
  tool_result: ({ content, projected, shown, ...event }) => ({
    ...only<'tool_result'>(...(['name', 'outcome', 'durationMs', 'child', 'reused'] as const))({
      content,
      ...event,
    }),
    content: redactedParts(content),
    ...(projected && { projected: redactedParts(projected) }),
    ...(shown && { shown: redactedParts(shown) }),
  }),
  tool_results_injected: only<'tool_results_injected'>('toolCallIds'),
  compaction_started: (event) => ({
    ...only<'compaction_started'>(
      ...(['model', 'replacedMessages', 'maxOutputTokens', 'grant', 'interrupted'] as const),
    )(event),
    requestDigest: removedText,
    ...redactedAdditions(event.additions),
  }),
  context_compacted: ({ summary, failure, ...event }) => ({
    ...only<'context_compacted'>(
      ...(['replacedMessages', 'taskAt', 'tokensBefore', 'tokensAfter', 'usage'] as const),
      ...(['costUsd', 'price', 'abandoned'] as const),
    )({
      summary,
      ...event,
    }),
    summary: redactedUserMessage(summary),
    ...(failure && { failure: redactedFailure(failure) }),
  }),
  agent_handed_off: ({ from, to, definition, messages }) => ({
    from,
    to,
    definition: redactedDefinition(definition),
    ...(messages && { messages: messages.map(redactedMessage) }),
  }),
  guardrail_tripped: ({ guardrail, on, action, index, detail, replacement }) => ({
    guardrail,
    on,
    action,
    ...omitUndefined({ index, detail: textWhere(detail) }),
    ...(replacement && { replacement: redactedParts(replacement) }),
  }),
  guardrails_checked: only<'guardrails_checked'>('on', 'guardrails'),
  output_checked: ({ valid, output, error, repair }) => ({
    valid,
    ...(output !== undefined && { output: null }),
    ...omitUndefined({ error: textWhere(error) }),
    ...(repair && { repair: redactedUserMessage(repair) }),
  }),
  limit_reached: only<'limit_reached'>(...(['limit', 'max', 'used', 'held', 'policy'] as const)),
  limit_raised: only<'limit_raised'>('limit', 'max', 'by'),
  cancel_requested: ({ by, reason }) => omitUndefined({ by, reason: textWhere(reason) }),
}
