import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { LawBrokenError, memoryLedger, type RunState, type RuntimeEvent } from '@tallystick/core'
import { readCalls, readMessages } from '@tallystick/core/internal'
import { auditAll, evolve, toTranscript } from '@tallystick/core/machine'
import { checkLaws, checkTranscript, copyPrefix } from '@tallystick/testkit'
import { newTask, tries } from '../../../scripts/testing/effort.ts'
import { play, type Played, program, type Program, requireLaws } from './program.ts'

const numRuns = tries(300)

describe('the laws, over random programs with failing models, misbehaving tools, cancels, denials and crashes', () => {
  it('independent judges find nothing, every run ends, and nothing is repeated or reported as not run that took effect', async () => {
    await fc.assert(
      fc
        .asyncProperty(program, async (random) => {
          expect.hasAssertions()
          requireLaws(await play(random))
        })
        .beforeEach(newTask),
      { numRuns },
    )
  })

  it('all input that comes while the run is at work is settled once, and is shown when that says so', async () => {
    await fc.assert(
      fc
        .asyncProperty(program, async (random) => {
          const { events } = await play(random)
          const given = events.filter(
            (event) =>
              (event.type === 'input_received' && event.delivery !== 'start') ||
              (event.type === 'background_ended' && event.message !== undefined),
          )
          const settled = events.filter((event) => event.type === 'input_settled')
          expect(settled.map(({ receipt }) => receipt).sort()).toEqual(
            given
              .map((event) => ('receipt' in event ? event.receipt : `background ${event.toolCallId}`))
              .sort(),
          )
          const end = events.reduce<RunState | undefined>(evolve, undefined)!
          // What was refused may leave the history, with the input that asked for it.
          const changing = new Set(['context_compacted', 'agent_handed_off', 'history_edited'])
          if (events.some(({ type }) => changing.has(type))) return
          const users = readMessages(end.history).filter(({ role }) => role === 'user')
          const repairs = events.filter((event) => event.type === 'output_checked' && event.repair)
          expect(users).toHaveLength(1 + repairs.length + settled.filter(({ delivered }) => delivered).length)
        })
        .beforeEach(newTask),
      { numRuns },
    )
  })

  it('law 3: every prefix projects to messages that a provider accepts', async () => {
    await fc.assert(
      fc
        .asyncProperty(program, async (random) => {
          const { events, others } = await play(random)
          for (const run of [events, ...others]) {
            let state: RunState | undefined
            for (const event of run) {
              state = evolve(state, event)
              expect(checkTranscript(toTranscript(state))).toEqual([])
            }
          }
        })
        .beforeEach(newTask),
      { numRuns },
    )
  })

  it('law 6: every state that a live run had is the fold of the events up to there', async () => {
    await fc.assert(
      fc
        .asyncProperty(program, async (random) => {
          const { events, lastStates, result } = await play(random)
          // The result comes from the writer's own state; the states were seen live, and must not have moved since.
          const end = events.reduce<RunState | undefined>(evolve, undefined)
          const { turns, toolCalls, usage } = end!.totals
          expect(result).toMatchObject({ turns, toolCalls, usage, seq: events.length })
          expect(lastStates.length).toBeGreaterThan(0)
          for (const state of lastStates) {
            const folded = events.slice(0, state.seq).reduce<RunState | undefined>(evolve, undefined)
            expect(plain(state)).toEqual(plain(folded))
          }
        })
        .beforeEach(newTask),
      { numRuns: Math.ceil(numRuns / 3) },
    )
  })

  it('law 7: the request of each model call is rebuilt from the ledger to the same digest', async () => {
    await fc.assert(
      fc
        .asyncProperty(program, async (random) => {
          const { events } = await play(random)
          // `audit` rebuilds each request from the events before it; a changed history must show.
          const called = events.some(({ type }) => type === 'model_call_started')
          const altered = events.map((event) =>
            event.type === 'input_received' ? { ...event, message: { ...event.message, parts: [] } } : event,
          )
          const replaced = events.some(
            (event) =>
              event.type === 'guardrail_tripped' && event.on === 'input' && event.action !== 'record',
          )
          expect(brokenLaw(events)).toBeUndefined()
          // No reader was shown what a guardrail has replaced.
          const expected = called && !replaced ? 7 : undefined
          expect(replaced ? undefined : brokenLaw(altered)).toBe(expected)
        })
        .beforeEach(newTask),
      { numRuns: Math.ceil(numRuns / 3) },
    )
  })
})

describe('the prefix sweep', () => {
  it('resuming from every prefix of a ledger ends, with every law kept and the prefix untouched', async () => {
    await fc.assert(
      fc
        .asyncProperty(program, async (random) => {
          const calm = { ...random, crashes: [], cancelAtSeq: undefined, inputs: [] }
          const { events, others, world } = await play(random)
          // A run is made with its first input in one append: the shortest ledger has two events.
          for (let length = 2; length < events.length; length++) {
            const prefix = events.slice(0, length)
            const resumed = await resumeFrom([prefix, ...others], calm, world.keys)
            expect(checkLaws(resumed.events)).toEqual([])
            expect(resumed.result.status).toBe('done')
            expect(resumed.events.slice(0, length)).toEqual(prefix)
            expect(startedAgain(resumed.events, length)).toEqual([])
          }
        })
        .beforeEach(newTask),
      { numRuns: Math.ceil(numRuns / 20) },
    )
  })
})

/** A state without the stores that its history and its calls share with others. */
function plain(state: RunState | undefined): unknown {
  if (state === undefined) return undefined
  const { history, callLog, ...rest } = state
  return { ...rest, messages: readMessages(history), calls: readCalls(callLog) }
}

/** The law that an audit of events finds broken, if any. */
function brokenLaw(events: readonly RuntimeEvent[]): number | undefined {
  try {
    auditAll(events)
    return undefined
  } catch (error) {
    if (error instanceof LawBrokenError) return error.law
    throw error
  }
}

/** Child runs may have come further than their parent knows. */
async function resumeFrom(
  [prefix = [], ...others]: readonly (readonly RuntimeEvent[])[],
  calm: Program,
  keys: ReadonlySet<string>,
): Promise<Played> {
  const ledger = memoryLedger()
  for (const run of [...others, prefix]) await copyPrefix(run, ledger)
  const world = { effects: new Map<string, number>(), keys: new Set(keys), early: [] }
  return await play(calm, { ledger, resume: prefix[0]!.runId, world })
}

/** Tools whose calls were in doubt at the cut and were started again, though they were not declared safe. */
function startedAgain(events: readonly RuntimeEvent[], cut: number): readonly string[] {
  const starts = events.filter((event) => event.type === 'tool_started')
  const before = new Set(starts.filter(({ seq }) => seq <= cut).map(({ toolCallId }) => toolCallId))
  return starts
    .filter(({ seq, toolCallId }) => seq > cut && before.has(toolCallId))
    .map(({ name }) => name)
    .filter(
      (name) =>
        !['read', 'rerunnable', 'reconciled', 'helper'].includes(name) &&
        !/^(transfer_to|retried)/.test(name),
    )
}
