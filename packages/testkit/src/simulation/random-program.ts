import * as fc from 'fast-check'
import type { StopReason } from '@tallystick/core/vocabulary'
import type { CrashPoint } from './faults.ts'
import type { CallPlan, GuardrailPlan, Program, Step } from './plan.ts'

const toolNames = [
  ...(['read', 'write', 'rerunnable', 'reconciled', 'asking', 'asking_read'] as const),
  ...(['no_such_tool', 'helper', 'helper'] as const),
  ...(['retried', 'retried_write', 'retried_rerunnable'] as const),
  ...(['transfer_to_second', 'transfer_to_program', 'transfer_to_user'] as const),
] as const

/** The usual value, so many times as often as a rare one. */
function mostly<T>(times: number, usual: fc.Arbitrary<T>, rare: fc.Arbitrary<T>): fc.Arbitrary<T> {
  return fc.oneof({ weight: times, arbitrary: usual }, { weight: 1, arbitrary: rare })
}

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

/** Half of all crashes are those of a machine that loses power. */
const crashPoint: fc.Arbitrary<CrashPoint> = fc.record({
  append: fc.integer({ min: 1, max: 25 }),
  stored: fc.boolean(),
  unsyncedKept: fc.option(fc.nat(3), { nil: undefined, freq: 2 }),
})

/** Any program: every kind of trouble, in any order. */
export const randomProgram: fc.Arbitrary<Program> = fc.record({
  steps: fc.array(step, { maxLength: 5 }),
  limits: fc.record(
    {
      maxTurns: fc.integer({ min: 0, max: 6 }),
      maxToolCalls: fc.integer({ min: 0, max: 8 }),
      maxToolCallsPerTurn: fc.integer({ min: 1, max: 3 }),
      maxConcurrency: fc.integer({ min: 1, max: 3 }),
      maxTotalTokens: fc.integer({ min: 0, max: 3_000 }),
      maxTotalOutputTokens: fc.integer({ min: 0, max: 400 }),
      maxTotalInputTokens: fc.integer({ min: 0, max: 2_000 }),
      maxCostUsd: fc.double({ min: 0, max: 0.02, noNaN: true }),
      maxDurationMs: fc.integer({ min: 0, max: 3_000 }),
      maxApprovalMs: fc.integer({ min: 1, max: 20 }),
      maxRepeats: fc.integer({ min: 1, max: 3 }),
      maxCallsByTool: fc.constantFrom({ read: 1 }, { write: 0, asking: 1 }),
      onLimit: fc.constantFrom('finalize', 'stop', 'ask'),
    },
    { requiredKeys: [] },
  ),
  compaction: fc.option(
    fc.record({
      maxContextTokens: fc.integer({ min: 0, max: 600 }),
      keepMessages: fc.nat(4),
      by: fc.constantFrom('function', 'model', 'nobody'),
    }),
    { nil: undefined },
  ),
  guardrails: mostly<readonly GuardrailPlan[]>(2, fc.constant([]), fc.array(guardrailPlan, { maxLength: 3 })),
  structured: mostly(4, fc.constant(false), fc.constant(true)),
  crashes: fc.array(crashPoint, { maxLength: 3 }),
  cancelAtSeq: fc.option(fc.integer({ min: 1, max: 80 }), { nil: undefined, freq: 2 }),
  inputs: fc.array(
    fc.record({ atSeq: fc.integer({ min: 1, max: 60 }), delivery: fc.constantFrom('steer', 'queue') }),
    { maxLength: 2 },
  ),
  decisions: fc.array(fc.constantFrom('approve', 'deny', 'edit', 'late'), { maxLength: 4 }),
  drainAtSeq: fc.option(fc.integer({ min: 1, max: 60 }), { nil: undefined, freq: 2 }),
  subject: fc.constantFrom(undefined, undefined, 'customer-7'),
  fallback: fc.boolean(),
  randomness: fc.integer({ min: 0, max: 0xffffffff }),
})

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
