import * as fc from 'fast-check'
import { LedgerUnavailableError, type Limits } from '@tallystick/core'
import { failureClasses, option, requireOptions } from '@tallystick/core/internal'
import type { JsonObject, StopReason } from '@tallystick/core/vocabulary'
import { manualClock, type ManualClock, tickingClock } from '../doubles/clock.ts'
import { volatileLedger, type VolatileLedger } from '../doubles/ledger.ts'
import type { ScriptedCall, ScriptedReply } from '../doubles/model.ts'
import type { CrashPoint } from '../simulation/faults.ts'

/** The usual value, so many times as often as a rare one. */
export function mostly<T>(times: number, usual: fc.Arbitrary<T>, rare: fc.Arbitrary<T>): fc.Arbitrary<T> {
  // An example shrinks to the usual value.
  return fc.oneof(
    { withCrossShrink: true },
    { weight: times, arbitrary: usual },
    { weight: 1, arbitrary: rare },
  )
}

/** A value that is made anew for each try, since a try changes it; `words` show it in a counterexample. */
export function drawFresh<T extends object>(words: string, make: () => T): T {
  return Object.defineProperties(make(), {
    [fc.toStringMethod]: { value: () => words },
    [fc.cloneMethod]: { value: () => drawFresh(words, make) },
  })
}

/** Half of all crashes are those of a machine that loses power. */
export const randomCrash: fc.Arbitrary<CrashPoint> = fc.oneof(
  fc.record({ append: fc.integer({ min: 1, max: 25 }), stored: fc.boolean(), unsyncedKept: randomLoss() }),
  // While a tool is at work, or shortly after.
  fc.record({
    after: fc.constant('tool_started'),
    append: fc.integer({ min: 1, max: 4 }),
    stored: fc.boolean(),
    unsyncedKept: randomLoss(),
  }),
)

function randomLoss(): fc.Arbitrary<number | undefined> {
  return fc.option(fc.nat(3), { nil: undefined, freq: 2 })
}

/** What people do to a run: they decide about calls, cancel it at any event, and say something while it works. */
export interface People {
  readonly cancelAtSeq: number | undefined
  readonly inputs: readonly { readonly atSeq: number; readonly delivery: 'steer' | 'queue' }[]
  /**
   * The answers to the first, second … approval; `late` approves when the time to decide may be over, `stand` also what comes
   * later.
   */
  readonly decisions: readonly ('approve' | 'deny' | 'edit' | 'late' | 'stand')[]
}

export const randomPeople: fc.Arbitrary<People> = fc.record({
  cancelAtSeq: fc.option(fc.integer({ min: 1, max: 80 }), { nil: undefined, freq: 2 }),
  inputs: fc.array(
    fc.record({ atSeq: fc.integer({ min: 1, max: 60 }), delivery: fc.constantFrom('steer', 'queue') }),
    { maxLength: 2 },
  ),
  decisions: fc.array(fc.constantFrom('approve', 'deny', 'edit', 'late', 'stand'), { maxLength: 4 }),
})

/** Limits that a small run meets, each of them or none. */
export const randomLimits: fc.Arbitrary<Limits> = fc.record(
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
)

/** Clocks that start at any time, and stand still between events or advance at every reading. */
export const randomClock: fc.Arbitrary<ManualClock> = fc
  .record({ isTicking: fc.boolean(), startMs: fc.integer({ min: 0, max: 4_000_000_000_000 }) })
  .map(({ isTicking, startMs }) =>
    drawFresh(`a ${isTicking ? 'ticking' : 'manual'} clock from ${startMs}`, () =>
      isTicking ? tickingClock(startMs) : manualClock(startMs),
    ),
  )

const inputsByTool = option.recordOf(
  option.valueThat(
    'an arbitrary of fast-check',
    (value) => typeof (Object(value) as { readonly generate?: unknown }).generate === 'function',
  ),
)

/** The calls of a model: of a tool that it has, with an input that may fit; and such as models write that are wrong. */
function randomCall(tools: Readonly<Record<string, fc.Arbitrary<JsonObject>>>): fc.Arbitrary<ScriptedCall> {
  const names = Object.keys(tools)
  const broken: fc.Arbitrary<ScriptedCall> = fc.record({
    name: fc.constantFrom('no_such_tool', ...names),
    input: fc.constantFrom<ScriptedCall['input']>('{"half":', '[]', '', {}, { unknown_field: 1 }),
  })
  const valid = names.map((name) =>
    (tools[name] ?? fc.constant({})).map((input): ScriptedCall => ({ name, input })),
  )
  return valid.length === 0 ? broken : mostly(6, fc.oneof(...valid), broken)
}

/**
 * What a model says, reply by reply: texts, reasoning, calls that are valid and broken, refusals, cut replies, every class of
 * failure, very long texts. `tools` are the inputs of its calls, by tool.
 */
export function randomScript(
  tools: Readonly<Record<string, fc.Arbitrary<JsonObject>>>,
): fc.Arbitrary<readonly ScriptedReply[]> {
  requireOptions('randomScript', inputsByTool, tools, 'the inputs')
  const usage = { inputTokens: 250, outputTokens: 40 }
  const chatty = 'All is well. '.repeat(200)
  const reply = fc
    .record({
      text: mostly(6, fc.constantFrom('', 'Done.', '{"ok":true}'), fc.constantFrom(chatty, '\u0000\u202e')),
      reasoning: fc.constantFrom('', '', 'Hm.'),
      toolCalls: mostly<ScriptedCall[]>(
        3,
        fc.array(randomCall(tools), { minLength: 1, maxLength: 3 }),
        fc.constant([]),
      ),
      stopReason: mostly<StopReason | undefined>(
        8,
        fc.constant(undefined),
        fc.constantFrom('max_tokens', 'refused', 'paused', 'other', 'end'),
      ),
      fail: mostly(6, fc.constant(undefined), fc.constantFrom(...failureClasses)),
      delayMs: mostly(8, fc.constant(undefined), fc.integer({ min: 1, max: 5_000 })),
      isReported: mostly(5, fc.constant(true), fc.constant(false)),
    })
    .map(({ isReported, ...rest }): ScriptedReply => ({ ...rest, ...(isReported && { usage }) }))
  return fc.array(reply, { maxLength: 6 })
}

/** Ledgers in memory that fail at some of their appends: nothing is stored, or it is and the acknowledgement is lost. */
export const randomLedger: fc.Arbitrary<VolatileLedger> = fc
  .array(fc.record({ append: fc.integer({ min: 1, max: 25 }), stored: fc.boolean() }), { maxLength: 3 })
  .map((faults) => {
    const list = faults.map(({ append, stored }) => `${append} (${stored ? 'stored' : 'lost'})`)
    const words = `a ledger that does not answer these appends: ${list.join(', ') || 'none'}`
    return drawFresh(words, () => createUnreliableLedger(faults))
  })

function createUnreliableLedger(faults: readonly CrashPoint[]): VolatileLedger {
  const ledger = volatileLedger()
  let appends = 0
  return {
    ...ledger,
    append: async (...given) => {
      appends++
      const fault = faults.find(({ append }) => append === appends)
      if (fault === undefined) return await ledger.append(...given)
      if (fault.stored) await ledger.append(...given)
      throw new LedgerUnavailableError(`Append ${appends} was not answered.`)
    },
  }
}
