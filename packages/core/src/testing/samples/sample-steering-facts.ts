import type { FactOf } from '../../events/event.ts'
import { sampleMessage } from './sample-ids.ts'
import { model, price, usage, wholeDefinition } from './sample-parts.ts'

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
export function steeringFacts(): { readonly [T in SteeringEventType]: FactOf<T> } {
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
