import { deriveIdempotencyKey } from '@tallystick/core/internal'
import type { RunId } from '@tallystick/core'
import type { ShownChange } from '@tallystick/core/internal'
import { requireTextId } from '@tallystick/core/store-kit'
import { type EventType, type FactOf } from '@tallystick/core/vocabulary'
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

/** A change of what one turn shows the model. */
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

/** A sample of a type, without its type; its turn is 1 unless it says another. */
type Sample<T extends EventType> = Omit<FactOf<T>, 'type' | 'turn'> & { readonly turn?: number }

/** One fact of every type, with every field that it may have. They do not form a legal run. */
export function sampleFacts(runId: RunId): { readonly [T in EventType]: FactOf<T> } {
  requireTextId('sampleFacts', runId)
  const facts = Object.entries(createSamples(runId)).map(([type, sample]) => [
    type,
    { type, turn: 1, ...sample },
  ])
  return Object.fromEntries(facts) as { readonly [T in EventType]: FactOf<T> }
}

function createSamples(runId: RunId): { readonly [T in EventType]: Sample<T> } {
  const toolCallId = sampleCallId(runId)
  const name = 'get_weather'
  const opaque = { provider: 'scripted', api: 'script', data: { signature: 'c2ln' } }
  const call = { providerCallId: 'c1', name, input: { city: 'Seoul' }, opaque }
  return {
    run_started: {
      turn: 0,
      agent: 'assistant',
      definition,
      limits,
      retry: { maxAttempts: 4, baseMs: 500, capMs: 30_000, maxRetryAfterMs: 120_000 },
      sessionId: `session of ${runId}`,
      sessionPlace: 1,
      parent: { runId: sampleRunId(0), seq: 3, relation: 'fork' },
      standing: [
        {
          ...{
            toolCallId: sampleCallId(sampleRunId(8)),
            by: 'ada',
            roles: ['finance'],
            agent: 'assistant',
            name,
          },
          ...{ toolDigest: 'd'.repeat(64), inputDigest: 'a1'.repeat(32), expiresAt: 1_760_003_600_000 },
        },
      ],
    },
    schedule_set: {
      turn: 0,
      name: 'nightly',
      cron: '0 3 * * *',
      timeZone: 'Europe/Berlin',
      missed: 'once',
      nextAt: 1_760_000_400_000,
      by: 'ada',
      reason: 'Back from holiday.',
    },
    schedule_fired: {
      turn: 0,
      scheduledAt: 1_760_000_400_000,
      startedRun: sampleRunId(1),
      missed: 2,
      nextAt: 1_760_086_800_000,
    },
    history_carried: {
      turn: 0,
      messages: [sampleMessage('Good morning.'), sampleMessage('My key is 123.')],
    },
    history_edited: {
      turn: 0,
      by: 'ada',
      reason: 'A key was in it.',
      edits: [{ index: 0 }, { index: 1, message: sampleMessage('My key is secret.') }],
    },
    session_edited: {
      turn: 0,
      edit: 'append',
      messages: [sampleMessage('The dentist is at nine.')],
      uncheckedFrom: 0,
      by: 'ada',
      reason: 'It was said on the phone.',
    },
    run_resumed: {
      why: 'crash',
      inDoubt: [toolCallId],
      definition: wholeDefinition,
    },
    run_finished: {
      reason: 'answered',
      turns: 1,
      toolCalls: 1,
      usage,
      costUsd: 0.0125,
      detail: 'The model answered.',
    },
    input_settled: {
      receipt: 'receipt-1',
      delivered: false,
      why: 'The run ended before it.',
    },
    input_received: {
      turn: 0,
      delivery: 'start',
      receipt: 'receipt-1',
      message: sampleMessage('How warm is it in Seoul?'),
    },
    model_call_started: {
      attempt: 1,
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
      attempt: 1,
      providerMessageId: 'm1',
      servedModel: 'sample-1b',
      warnings: ['The model takes no images, so 1 was left out.'],
    },
    assistant_text_delta: { attempt: 1, part: 1, text: 'Let me look' },
    assistant_reasoning_delta: { attempt: 1, part: 0, text: 'Weather.' },
    tool_input_delta: {
      attempt: 1,
      toolCallId,
      part: 2,
      name,
      text: '{"city":',
    },
    tool_request_ready: {
      attempt: 1,
      toolCallId,
      part: 2,
      ...call,
      malformed: { text: '{"city":', error: 'Unexpected end' },
    },
    usage_updated: { attempt: 1, usage, costUsd: 0.0125, price, raw: { input: 120 } },
    assistant_message_finished: {
      attempt: 1,
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
      attempt: 1,
      failure: {
        class: 'overloaded',
        message: 'Try again later.',
        retryable: true,
        retryAfterMs: 2000,
        status: 529,
        requestId: 'req-1',
      },
      retryAt: 1_760_000_002_000,
      refusal: { reason: 'It could do harm.', askAnother: true },
    },
    tool_requests_collected: {
      calls: [
        {
          toolCallId,
          name,
          plan: 'ask',
          inputDigest: 'a1'.repeat(32),
          effect: 'read',
          recovery: 'rerun',
          reason: 'Is the city right?',
          approvers: [{ count: 2, roles: ['finance'] }],
          child: 'meteorologist',
          handoff: { to: 'booking' },
          input: { city: 'Seoul' },
          refusal: { outcome: 'denied', text: 'No.' },
        },
      ],
    },
    approval_requested: {
      toolCallId,
      name,
      attempt: 1,
      inputDigest: 'a1'.repeat(32),
      expiresAt: 1_760_000_060_000,
      reason: 'Is the city right?',
      approvers: [{ count: 2, roles: ['finance'] }],
    },
    approval_added: {
      toolCallId,
      attempt: 1,
      by: 'bob',
      roles: ['finance'],
      inputDigest: 'a1'.repeat(32),
      via: 'prompt',
      reason: 'It is.',
    },
    approval_applied: {
      toolCallId,
      attempt: 1,
      inputDigest: 'a1'.repeat(32),
      by: 'ada',
      standing: toolCallId,
    },
    approval_withdrawn: { standing: toolCallId, by: 'ada', reason: 'Enough.' },
    approval_decided: {
      toolCallId,
      attempt: 1,
      approved: true,
      by: 'ada',
      inputDigest: 'a1'.repeat(32),
      via: 'prompt',
      input: { city: 'Busan' },
      note: 'This call ran with another city.',
      reason: 'The other city.',
      roles: ['finance'],
      standing: { for: 'equal_input', expiresInMs: 3_600_000 },
    },
    tool_started: {
      toolCallId,
      name,
      attempt: 1,
      effect: 'read',
      idempotencyKey: deriveIdempotencyKey(runId, toolCallId),
      inputDigest: 'b'.repeat(64),
      child: sampleRunId(77),
      grant: { turns: 3, toolCalls: 4, tokens: 900, durationMs: 60_000 },
    },
    tool_deferred: {
      toolCallId,
      attempt: 1,
      receipt: 'job-7',
      deadlineAt: 1_760_000_060_000,
    },
    tool_progress: { toolCallId, attempt: 1, data: { done: 0.5 } },
    tool_attempt_failed: {
      toolCallId,
      name,
      attempt: 1,
      outcome: 'failed',
      durationMs: 7,
      content: [{ type: 'text', text: 'Error: 503' }],
      retryAt: 1_760_000_001_000,
      retryAfterMs: 800,
    },
    tool_result: {
      toolCallId,
      name,
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
    background_ended: {
      toolCallId,
      name: 'get_weather',
      attempt: 1,
      outcome: 'success',
      content: [{ type: 'text', text: '21 degrees' }],
      message: sampleMessage('The result of the call: 21 degrees'),
      durationMs: 9_000,
    },
    tool_results_injected: { toolCallIds: [toolCallId] },
    context_compacted: {
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
      model,
      replacedMessages: 3,
      requestDigest: 'c3'.repeat(32),
      additions: [{ option: 'headers', field: 'x-api-key' }],
      maxOutputTokens: 500,
      grant: { turns: 0, inputTokens: 300, outputTokens: 500, costUsd: 0.01 },
      interrupted: { usage, costUsd: 0.001 },
    },
    agent_handed_off: {
      from: 'assistant',
      to: 'booking',
      definition: wholeDefinition,
      messages: [sampleMessage('The user wants to book.')],
    },
    guardrail_tripped: {
      guardrail: 'secrets',
      on: 'output',
      action: 'replace',
      detail: 'A key was cut out.',
      index: 4,
      replacement: [{ type: 'text', text: 'The key is …' }],
    },
    guardrails_checked: { on: 'output', guardrails: ['secrets'] },
    output_checked: {
      valid: false,
      output: { city: 'Seoul' },
      error: 'degrees: expected a number',
      repair: sampleMessage('Write it again.'),
    },
    limit_reached: {
      limit: 'maxTurns',
      max: 8,
      used: 7,
      held: 1,
      policy: 'finalize',
    },
    limit_raised: { limit: 'maxTurns', max: 12, by: 'ada' },
    cancel_requested: { by: 'ada', reason: 'Enough.' },
    feedback_given: { by: 'ada', score: 0.5, note: 'Half of it is right.' },
  }
}
