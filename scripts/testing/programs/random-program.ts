import * as fc from 'fast-check'
import type { StopReason } from '@tallystick/core/vocabulary'
import { randomCrash, randomLimits, randomPeople } from '@tallystick/testkit/random'
import { mostly } from '../../../packages/testkit/src/properties/random-trouble.ts'
import type { CallPlan, GuardrailPlan, Program, Step } from './program.ts'

const toolNames = [
  ...(['read', 'write', 'rerunnable', 'reconciled', 'asking', 'asking_read', 'asking_two'] as const),
  ...(['no_such_tool', 'helper', 'helper'] as const),
  ...(['retried', 'retried_write', 'retried_rerunnable'] as const),
  ...(['beside', 'beside_write', 'beside_rerunnable', 'beside_left'] as const),
  ...(['transfer_to_second', 'transfer_to_program', 'transfer_to_user'] as const),
] as const

const callPlan: fc.Arbitrary<CallPlan> = fc.record({
  tool: fc.constantFrom(...toolNames),
  behaviour: mostly<CallPlan['behaviour']>(
    4,
    fc.constant('succeed'),
    fc.constantFrom('throw', 'flake', 'hang', 'progress', 'defer', 'invalid', 'malformed'),
  ),
})

const step: fc.Arbitrary<Step> = fc.record({
  text: mostly(4, fc.string({ maxLength: 12 }), fc.constant('{"guarded":false}')),
  reasoning: fc.constantFrom('', '', 'Hm.'),
  calls: fc.array(callPlan, { maxLength: 4 }),
  stopReason: mostly<StopReason | undefined>(
    8,
    fc.constant(undefined),
    fc.constantFrom('max_tokens', 'refused', 'paused', 'other', 'end'),
  ),
  failures: mostly<Step['failures']>(
    5,
    fc.constant([]),
    fc.array(
      fc.constantFrom(
        ...(['overloaded', 'network', 'truncated', 'authentication', 'context_overflow'] as const),
        'interrupted',
      ),
      { maxLength: 5 },
    ),
  ),
  unreported: mostly(5, fc.constant(false), fc.constant(true)),
})

const guardrailPlan: fc.Arbitrary<GuardrailPlan> = fc.record({
  on: fc.constantFrom('input', 'output', 'tool_input', 'tool_output'),
  beside: fc.boolean(),
  says: mostly<GuardrailPlan['says']>(
    6,
    fc.constantFrom('pass', 'replace', 'record'),
    fc.constantFrom('block', 'throw', 'hang'),
  ),
})

/** Any program: every kind of trouble, in any order. */
export const randomProgram: fc.Arbitrary<Program> = fc
  .record({
    people: randomPeople,
    steps: fc.array(step, { maxLength: 5 }),
    limits: randomLimits,
    compaction: fc.option(
      fc.record({
        maxContextTokens: fc.integer({ min: 0, max: 600 }),
        keepMessages: fc.nat(4),
        by: fc.constantFrom('function', 'model', 'nobody'),
      }),
      { nil: undefined },
    ),
    guardrails: mostly<readonly GuardrailPlan[]>(
      2,
      fc.constant([]),
      fc.array(guardrailPlan, { maxLength: 3 }),
    ),
    structured: mostly(4, fc.constant(false), fc.constant(true)),
    crashes: fc.array(randomCrash, { maxLength: 3 }),
    drainAtSeq: fc.option(fc.integer({ min: 1, max: 60 }), { nil: undefined, freq: 2 }),
    subject: fc.constantFrom(undefined, undefined, 'customer-7'),
    fallback: fc.boolean(),
    randomness: fc.integer({ min: 0, max: 0xffffffff }),
  })
  .map(({ people, ...program }): Program => ({ ...program, ...people }))

const retriedCall: fc.Arbitrary<CallPlan> = fc.record({
  tool: fc.constantFrom('retried', 'retried_write', 'retried_rerunnable', 'write'),
  behaviour: fc.constantFrom('flake', 'flake', 'throw', 'hang', 'succeed'),
})

/** Programs that mostly call tools with retries, which mostly fail at first, among cancels, limits and crashes. */
export const retryingProgram: fc.Arbitrary<Program> = fc
  .record({
    program: randomProgram,
    calls: fc.array(retriedCall, { minLength: 1, maxLength: 4 }),
    limits: fc.record(
      {
        maxToolCalls: fc.integer({ min: 1, max: 4 }),
        maxDurationMs: fc.integer({ min: 20, max: 3_000 }),
        maxConcurrency: fc.integer({ min: 1, max: 2 }),
        onLimit: fc.constantFrom('finalize', 'stop', 'ask'),
      },
      { requiredKeys: [] },
    ),
  })
  .map(({ program, calls, limits }): Program => {
    const steps = [{ text: '', reasoning: '', stopReason: undefined, failures: [], calls }]
    return { ...program, steps, limits, guardrails: [], compaction: undefined }
  })
