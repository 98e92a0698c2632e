import type { AgentDefinition } from '../vocabulary/agent-definition.ts'
import type { UserMessage } from '../vocabulary/content.ts'
import type { EventType, Fact, FactOf, RuntimeEvent } from '../vocabulary/event.ts'
import { eventCatalogue } from '../vocabulary/event-catalogue.ts'
import type { ModelFailure } from '../vocabulary/failure.ts'
import { idempotencyKeyOf, toolCallIdOf, type RunId, type ToolCallId } from '../vocabulary/ids.ts'
import type { Limits } from '../vocabulary/limits.ts'

const model = { provider: 'scripted', api: 'script', modelId: 'sample-1' }
const limits: Limits = {
  turnsMax: 8,
  costMaxUsd: 0.25,
  callsMaxByTool: { get_weather: 3 },
  onLimit: 'finalize',
}
const usage = { inputTokens: 120, outputTokens: 17, cacheReadTokens: 64 }
const price = { inputUsd: 3, outputUsd: 15, cacheReadUsd: 0.3, cacheWriteUsd: 3.75, source: 'sample 1' }
const definition: AgentDefinition = {
  model,
  instructions: 'Answer briefly.',
  tools: [
    {
      name: 'get_weather',
      description: 'Tells the weather of a city.',
      inputSchema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
    },
  ],
  parallelToolCalls: true,
  maxOutputTokens: 1024,
  price,
  digest: 'd1'.repeat(32),
}
/** A definition with every field that it may have. */
const wholeDefinition: AgentDefinition = {
  ...definition,
  fallbacks: [{ model, price }],
  guardrails: [{ name: 'secrets', on: 'input', beside: true }],
  output: { schema: { type: 'object' }, repairsMax: 2 },
  handoffs: [{ tool: 'transfer_to_booking', to: 'booking', back: true }],
  summarizer: { model, price, instructions: 'Sum up.' },
}

/** The `ordinal`-th run id of a test: shaped as a UUIDv7, the same at every call, and rising with `ordinal`. */
export function sampleRunId(ordinal: number): RunId {
  return `01932f00-0000-7000-8000-${ordinal.toString(16).padStart(12, '0')}` as RunId
}

/** The `ordinal`-th call, from 1, of the first attempt of a run's first turn. */
export function sampleCallId(runId: RunId, ordinal = 1): ToolCallId {
  return toolCallIdOf(runId, 1, 1, ordinal)
}

/** A user's message of one text. */
export function sampleMessage(text: string): UserMessage {
  return { role: 'user', parts: [{ type: 'text', text }] }
}

/** Facts as events: numbered behind `afterSeq`, signed with `epoch`, one millisecond apart. */
export function stamped(
  runId: RunId,
  facts: readonly Fact[],
  { afterSeq = 0, epoch = 1 }: { readonly afterSeq?: number; readonly epoch?: number } = {},
): readonly RuntimeEvent[] {
  return facts.map((fact, index) => {
    const seq = afterSeq + index + 1
    return { runId, seq, epoch, at: 1_760_000_000_000 + seq, v: eventCatalogue[fact.type].v, ...fact }
  })
}

/** One fact of every type, with every field that it may have. They are no legal run: their order says nothing. */
export function everyFact(runId: RunId): { readonly [T in EventType]: FactOf<T> } {
  const toolCallId = sampleCallId(runId)
  const call = { turn: 1, toolCallId, name: 'get_weather', attempt: 1 } as const
  return {
    ...runFacts(runId, toolCallId),
    ...modelFacts(toolCallId),
    tool_requests_collected: {
      type: 'tool_requests_collected',
      turn: 1,
      calls: [
        {
          toolCallId,
          name: 'get_weather',
          plan: 'ask',
          inputDigest: 'a1'.repeat(32),
          effect: 'read',
          recovery: 'rerun',
          reason: 'Is the city right?',
          child: 'meteorologist',
          handoff: { to: 'booking' },
          input: { city: 'Seoul' },
          refusal: { outcome: 'denied', text: 'No.' },
        },
      ],
    },
    approval_requested: {
      type: 'approval_requested',
      ...call,
      inputDigest: 'a1'.repeat(32),
      expiresAt: 1_760_000_060_000,
      reason: 'Is the city right?',
    },
    approval_decided: {
      type: 'approval_decided',
      turn: 1,
      toolCallId,
      attempt: 1,
      approved: true,
      by: 'ada',
      inputDigest: 'a1'.repeat(32),
      input: { city: 'Busan' },
      reason: 'The other city.',
    },
    tool_started: {
      type: 'tool_started',
      ...call,
      effect: 'read',
      idempotencyKey: idempotencyKeyOf(runId, toolCallId),
      child: sampleRunId(77),
    },
    tool_deferred: {
      ...{ type: 'tool_deferred', turn: 1, toolCallId, attempt: 1, receipt: 'job-7' },
      deadlineAt: 1_760_000_060_000,
    },
    tool_progress: { type: 'tool_progress', turn: 1, toolCallId, attempt: 1, data: { done: 0.5 } },
    tool_result: {
      type: 'tool_result',
      turn: 1,
      toolCallId,
      name: 'get_weather',
      outcome: 'success',
      durationMs: 12,
      content: [
        { type: 'text', text: '21 °C' },
        { type: 'image', mediaType: 'image/png', data: 'iVBORw0KGgo=' },
      ],
      child: { runId: sampleRunId(77), turns: 2, toolCalls: 1, usage, costUsd: 0.004 },
    },
    tool_results_injected: { type: 'tool_results_injected', turn: 1, toolCallIds: [toolCallId] },
    ...steeringFacts(),
  }
}

function runFacts(
  runId: RunId,
  toolCallId: ToolCallId,
): {
  readonly [
    T in
      | 'run_started'
      | 'run_resumed'
      | 'run_finished'
      | 'history_carried'
      | 'history_edited'
      | 'input_received'
      | 'input_settled'
  ]: FactOf<T>
} {
  const retry = { attemptsMax: 4, baseMs: 500, capMs: 30_000, retryAfterMaxMs: 120_000 }
  return {
    run_started: {
      type: 'run_started',
      turn: 0,
      agent: 'assistant',
      definition,
      limits,
      retry,
      sessionId: `session of ${runId}`,
      sessionPlace: 1,
      parent: { runId: sampleRunId(0), seq: 3, relation: 'fork' },
    },
    history_carried: {
      ...{ type: 'history_carried', turn: 0 },
      messages: [sampleMessage('Good morning.'), sampleMessage('My key is 123.')],
    },
    history_edited: {
      ...{ type: 'history_edited', turn: 0, by: 'ada', reason: 'A key was in it.' },
      edits: [{ index: 0 }, { index: 1, message: sampleMessage('My key is secret.') }],
    },
    run_resumed: {
      ...{ type: 'run_resumed', turn: 1, why: 'crash', inDoubt: [toolCallId] },
      definition: wholeDefinition,
    },
    run_finished: {
      type: 'run_finished',
      turn: 1,
      reason: 'answered',
      turns: 1,
      toolCalls: 1,
      usage,
      costUsd: 0.0125,
      detail: 'The model answered.',
    },
    input_settled: {
      ...{
        type: 'input_settled',
        turn: 1,
        receipt: 'receipt-1',
        delivered: false,
        why: 'The run ended before it.',
      },
    },
    input_received: {
      type: 'input_received',
      turn: 0,
      delivery: 'start',
      receipt: 'receipt-1',
      message: sampleMessage('How warm is it in Seoul?'),
    },
  }
}

type ModelEventType =
  | 'model_call_started'
  | 'assistant_started'
  | 'assistant_text_delta'
  | 'assistant_reasoning_delta'
  | 'tool_input_delta'
  | 'tool_request_ready'
  | 'usage_updated'
  | 'assistant_message_finished'
  | 'model_stream_failed'

function modelFacts(toolCallId: ToolCallId): { readonly [T in ModelEventType]: FactOf<T> } {
  const attempt = { turn: 1, attempt: 1 } as const
  const opaque = { provider: 'scripted', api: 'script', data: { signature: 'c2ln' } }
  const call = { providerCallId: 'c1', name: 'get_weather', input: { city: 'Seoul' }, opaque }
  const failure: ModelFailure = {
    class: 'overloaded',
    message: 'Try again later.',
    retryable: true,
    retryAfterMs: 2000,
    status: 529,
    requestId: 'req-1',
  }
  return {
    model_call_started: {
      type: 'model_call_started',
      ...attempt,
      model,
      requestDigest: 'b2'.repeat(32),
      toolChoice: { type: 'auto' },
      finalizing: false,
      maxOutputTokens: 1024,
    },
    assistant_started: {
      type: 'assistant_started',
      ...attempt,
      providerMessageId: 'm1',
      servedModel: 'sample-1b',
    },
    assistant_text_delta: { type: 'assistant_text_delta', ...attempt, part: 1, text: 'Let me look' },
    assistant_reasoning_delta: { type: 'assistant_reasoning_delta', ...attempt, part: 0, text: 'Weather.' },
    tool_input_delta: {
      type: 'tool_input_delta',
      ...attempt,
      toolCallId,
      part: 2,
      name: 'get_weather',
      text: '{"city":',
    },
    tool_request_ready: {
      type: 'tool_request_ready',
      ...attempt,
      toolCallId,
      part: 2,
      ...call,
      malformed: { text: '{"city":', error: 'Unexpected end' },
    },
    usage_updated: { type: 'usage_updated', ...attempt, usage, costUsd: 0.0125, price, raw: { input: 120 } },
    assistant_message_finished: {
      type: 'assistant_message_finished',
      ...attempt,
      stopReason: 'tool_use',
      rawStopReason: 'tools',
      partial: true,
      providerMessageId: 'm1',
      parts: [
        { type: 'reasoning', text: 'Weather.', opaque },
        { type: 'text', text: 'Let me look' },
        { type: 'tool_call', toolCallId, ...call },
      ],
    },
    model_stream_failed: { type: 'model_stream_failed', ...attempt, failure, retryAt: 1_760_000_002_000 },
  }
}

type SteeringEventType =
  | 'compaction_started'
  | 'guardrails_checked'
  | 'output_checked'
  | 'context_compacted'
  | 'agent_handed_off'
  | 'guardrail_tripped'
  | 'limit_reached'
  | 'limit_raised'
  | 'cancel_requested'

function steeringFacts(): { readonly [T in SteeringEventType]: FactOf<T> } {
  return {
    context_compacted: {
      type: 'context_compacted',
      turn: 1,
      summary: sampleMessage('Weather was asked for.'),
      replacedMessages: 3,
      tokensBefore: 900,
      tokensAfter: 40,
      usage,
      costUsd: 0.002,
      price,
      failure: { class: 'overloaded', message: 'Try again later.', retryable: true },
    },
    compaction_started: {
      ...{ type: 'compaction_started', turn: 1, model, replacedMessages: 3 },
      ...{ requestDigest: 'c3'.repeat(32), maxOutputTokens: 500 },
    },
    agent_handed_off: {
      ...{ type: 'agent_handed_off', turn: 1, from: 'assistant', to: 'booking' },
      definition: wholeDefinition,
      messages: [sampleMessage('The user wants to book.')],
    },
    guardrail_tripped: {
      type: 'guardrail_tripped',
      turn: 1,
      guardrail: 'secrets',
      on: 'output',
      action: 'replace',
      detail: 'A key was cut out.',
      index: 4,
      replacement: [{ type: 'text', text: 'The key is …' }],
    },
    guardrails_checked: { type: 'guardrails_checked', turn: 1, on: 'output', guardrails: ['secrets'] },
    output_checked: {
      ...{ type: 'output_checked', turn: 1, valid: false, output: { city: 'Seoul' } },
      ...{ error: 'degrees: expected a number', repair: sampleMessage('Write it again.') },
    },
    limit_reached: { type: 'limit_reached', turn: 1, limit: 'turnsMax', max: 8, used: 8, policy: 'ask' },
    limit_raised: { type: 'limit_raised', turn: 1, limit: 'turnsMax', max: 12, by: 'ada' },
    cancel_requested: { type: 'cancel_requested', turn: 1, by: 'ada', reason: 'Enough.' },
  }
}
