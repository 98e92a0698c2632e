import type { RunId } from '@tallystick/core'
import type { ShownChange } from '@tallystick/core/internal'
import { requireTextId } from '@tallystick/core/store-kit'
import {
  type EventType,
  type FactOf,
  idempotencyKeyOf,
  type ModelFailure,
  type ToolCallId,
} from '@tallystick/core/vocabulary'
import {
  definition,
  limits,
  model,
  price,
  sampleCallId,
  sampleMessage,
  sampleRunId,
  usage,
  wholeDefinition,
} from './values.ts'

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

/** One fact of each type that steers a run. */
function steeringFacts(): { readonly [T in SteeringEventType]: FactOf<T> } {
  return {
    context_compacted: {
      type: 'context_compacted',
      turn: 1,
      summary: sampleMessage('Weather was asked for.'),
      replacedMessages: 3,
      taskAt: 2,
      tokensBefore: 900,
      tokensAfter: 40,
      usage,
      costUsd: 0.002,
      price,
      failure: { class: 'overloaded', message: 'Try again later.', retryable: true },
      abandoned: true,
    },
    compaction_started: {
      type: 'compaction_started',
      turn: 1,
      model,
      replacedMessages: 3,
      requestDigest: 'c3'.repeat(32),
      additions: [{ option: 'headers', field: 'x-api-key' }],
      maxOutputTokens: 500,
      grant: { turns: 0, inputTokens: 300, outputTokens: 500, costUsd: 0.01 },
      interrupted: { usage, costUsd: 0.001 },
    },
    agent_handed_off: {
      type: 'agent_handed_off',
      turn: 1,
      from: 'assistant',
      to: 'booking',
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
      type: 'output_checked',
      turn: 1,
      valid: false,
      output: { city: 'Seoul' },
      error: 'degrees: expected a number',
      repair: sampleMessage('Write it again.'),
    },
    limit_reached: {
      type: 'limit_reached',
      turn: 1,
      limit: 'maxTurns',
      max: 8,
      used: 7,
      held: 1,
      policy: 'finalize',
    },
    limit_raised: { type: 'limit_raised', turn: 1, limit: 'maxTurns', max: 12, by: 'ada' },
    cancel_requested: { type: 'cancel_requested', turn: 1, by: 'ada', reason: 'Enough.' },
  }
}

/** One fact of every type, with every field that it may have. They do not form a legal run. */
export function everyFact(runId: RunId): { readonly [T in EventType]: FactOf<T> } {
  requireTextId('everyFact', runId)
  const toolCallId = sampleCallId(runId)
  return {
    ...runFacts(runId, toolCallId),
    ...modelFacts(toolCallId),
    ...toolFacts(runId, toolCallId),
    ...steeringFacts(),
  }
}

type ToolEventType =
  | 'tool_requests_collected'
  | 'approval_requested'
  | 'approval_decided'
  | 'tool_started'
  | 'tool_deferred'
  | 'tool_progress'
  | 'tool_attempt_failed'
  | 'tool_result'
  | 'tool_results_injected'

function toolFacts(runId: RunId, toolCallId: ToolCallId): { readonly [T in ToolEventType]: FactOf<T> } {
  const call = { turn: 1, toolCallId, name: 'get_weather', attempt: 1 } as const
  return {
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
      via: 'prompt',
      input: { city: 'Busan' },
      note: 'This call ran with another city.',
      reason: 'The other city.',
    },
    tool_started: {
      type: 'tool_started',
      ...call,
      effect: 'read',
      idempotencyKey: idempotencyKeyOf(runId, toolCallId),
      inputDigest: 'b'.repeat(64),
      child: sampleRunId(77),
      grant: { turns: 3, toolCalls: 4, tokens: 900, durationMs: 60_000 },
    },
    ...endingFacts(toolCallId),
    tool_results_injected: { type: 'tool_results_injected', turn: 1, toolCallIds: [toolCallId] },
  }
}

function endingFacts(toolCallId: ToolCallId): {
  readonly [T in 'tool_deferred' | 'tool_progress' | 'tool_attempt_failed' | 'tool_result']: FactOf<T>
} {
  const call = { turn: 1, toolCallId, name: 'get_weather', attempt: 1 } as const
  return {
    tool_deferred: {
      type: 'tool_deferred',
      turn: 1,
      toolCallId,
      attempt: 1,
      receipt: 'job-7',
      deadlineAt: 1_760_000_060_000,
    },
    tool_progress: { type: 'tool_progress', turn: 1, toolCallId, attempt: 1, data: { done: 0.5 } },
    tool_attempt_failed: {
      type: 'tool_attempt_failed',
      ...call,
      outcome: 'failed',
      durationMs: 7,
      content: [{ type: 'text', text: 'Error: 503' }],
      retryAt: 1_760_000_001_000,
      retryAfterMs: 800,
    },
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
      projected: [{ type: 'text', text: '21 °C, dry, light wind from the south' }],
      shown: [{ type: 'text', text: '21 °C … from the south' }],
      child: { runId: sampleRunId(77), turns: 2, toolCalls: 1, usage, costUsd: 0.004 },
      reused: sampleCallId(sampleRunId(0)),
    },
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
  const retry = { maxAttempts: 4, baseMs: 500, capMs: 30_000, maxRetryAfterMs: 120_000 }
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
      type: 'history_carried',
      turn: 0,
      messages: [sampleMessage('Good morning.'), sampleMessage('My key is 123.')],
    },
    history_edited: {
      type: 'history_edited',
      turn: 0,
      by: 'ada',
      reason: 'A key was in it.',
      edits: [{ index: 0 }, { index: 1, message: sampleMessage('My key is secret.') }],
    },
    run_resumed: {
      type: 'run_resumed',
      turn: 1,
      why: 'crash',
      inDoubt: [toolCallId],
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
      type: 'input_settled',
      turn: 1,
      receipt: 'receipt-1',
      delivered: false,
      why: 'The run ended before it.',
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

/** What a turn may show of its own. */
const shownChange: ShownChange = {
  instructions: 'Look first.',
  tools: ['get_weather'],
  shown: {
    digest: 'c3'.repeat(32),
    pieces: [
      { from: 0, to: 1 },
      { messages: [{ role: 'user', parts: [{ type: 'text', text: 'In Seoul.' }] }] },
    ],
  },
  modelSettings: { temperature: 0.2 },
  parallelToolCalls: false,
  maxOutputTokens: 1024,
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
      additions: [{ option: 'extraBody', field: 'instructions', replaces: true, digest: 'd4'.repeat(32) }],
      toolChoice: { type: 'auto' },
      finalizing: false,
      grant: { turns: 1, inputTokens: 40, outputTokens: 1024, costUsd: 0.02 },
      maxOutputTokens: 1024,
      change: shownChange,
    },
    assistant_started: {
      type: 'assistant_started',
      ...attempt,
      providerMessageId: 'm1',
      servedModel: 'sample-1b',
      warnings: ['The model takes no images, so 1 was left out.'],
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
      places: [0, 2, 5],
    },
    model_stream_failed: {
      type: 'model_stream_failed',
      ...attempt,
      failure,
      retryAt: 1_760_000_002_000,
      refusal: { reason: 'It could do harm.', askAnother: true },
    },
  }
}
