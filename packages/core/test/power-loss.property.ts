import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { RuntimeEvent } from '@tallystick/core'
import { auditAll } from '@tallystick/core/machine'
import { checkBudgets, checkLaws, type CrashPoint } from '@tallystick/testkit'
import { eventTraits, eventTypes } from '@tallystick/core/vocabulary'
import { effort, newTask, tries } from '../../../scripts/testing/effort.ts'
import { outcomesOf, play, program, type Played, type Program } from './program.ts'

type Call = Program['steps'][number]['calls'][number]

const call = (tool: string, behaviour: Call['behaviour'] = 'succeed'): Call => ({ tool, behaviour })

function programOf(replies: readonly (readonly Call[])[], more: Partial<Program> = {}): Program {
  return {
    steps: replies.map((calls) => ({
      text: 'Hm.',
      reasoning: '',
      calls,
      stopReason: undefined,
      failures: [],
    })),
    limits: {},
    ...{ compaction: undefined, guardrails: [], structured: false, crashes: [], cancelAtSeq: undefined },
    ...{ inputs: [], decisions: [], randomness: 1 },
    ...more,
  }
}

/** Runs whose reads start lazily, among calls whose starts have to be durable. */
const programs: readonly (readonly [string, Program])[] = [
  ['reads', programOf([[call('read'), call('read')], [call('read')]])],
  [
    'reads, one after the other',
    programOf([[call('read'), call('read'), call('read')]], { limits: { maxConcurrency: 1 } }),
  ],
  [
    'reads beside writes and questions',
    programOf([
      [call('read'), call('write'), call('asking')],
      [call('read'), call('rerunnable')],
      [call('read')],
    ]),
  ],
  [
    // One starts after the other, so that not every start is appended with its approval.
    'reads that a person approves, one after the other',
    programOf([[call('asking_read'), call('asking_read'), call('read')], [call('read')]], {
      limits: { maxConcurrency: 1 },
    }),
  ],
  [
    'reads that fail, report, and go on outside',
    programOf([[call('retried', 'flake'), call('read', 'progress')], [call('read', 'defer')]]),
  ],
  [
    'reads before a handoff and within child runs',
    programOf([[call('read'), call('helper')], [call('read'), call('transfer_to_second')], [call('read')]]),
  ],
  [
    'reads up to their limits',
    programOf([[call('read'), call('read')], [call('read')], [call('read')]], {
      limits: { maxToolCalls: 3, maxCostUsd: 0.02, maxTotalTokens: 2_500 },
    }),
  ],
]

/** Types of which no event may be lost. */
const alwaysDurable = new Set<string>(
  eventTypes.filter(
    (type) => eventTraits[type].durability === 'barrier' && !/^tool_(started|result)$/.test(type),
  ),
)

/** Holds every law against a run whose machine lost power. */
function requireLaws({ events, others, result, world, lost }: Played): void {
  const runs = [events, ...others]
  for (const run of runs) auditAll(run)
  expect(runs.flatMap(checkLaws)).toEqual([])
  expect(checkBudgets(runs)).toEqual([])
  expect([result.status, ...runs.map((run) => run.at(-1)?.type)]).toEqual([
    'done',
    ...runs.map(() => 'run_finished'),
  ])
  expect(world.early).toEqual([])
  requireNoRepetition(runs.flat(), world)
  requireHarmless(lost, runs.flat())
}

/** Law 10, and that no write was done which is on record as never run. */
function requireNoRepetition(events: readonly RuntimeEvent[], { effects }: Played['world']): void {
  const rerunnable = new Set<string>(
    events.flatMap((event) =>
      event.type === 'tool_started' && event.name.endsWith('rerunnable') ? [event.toolCallId] : [],
    ),
  )
  expect([...effects].filter(([id, times]) => times > 1 && !rerunnable.has(id))).toEqual([])
  const outcomes = outcomesOf(events)
  for (const id of effects.keys())
    expect(['success', 'interrupted', 'timed_out', 'cancelled']).toContain(outcomes.get(id))
}

/** Law 8: what was lost announces no effect, and nothing that was counted, granted or decided, such as an approval. */
function requireHarmless(lost: readonly RuntimeEvent[], events: readonly RuntimeEvent[]): void {
  expect(lost.filter(({ type }) => alwaysDurable.has(type))).toEqual([])
  const approved = new Set(
    events.flatMap((event) =>
      event.type === 'approval_decided' && event.approved ? [event.toolCallId] : [],
    ),
  )
  const harmful = startsIn(lost).filter(
    ({ effect, attempt, child, name, toolCallId }) =>
      effect !== 'read' ||
      attempt > 1 ||
      child !== undefined ||
      name.startsWith('transfer_to') ||
      approved.has(toolCallId),
  )
  expect(harmful).toEqual([])
}

function startsIn(events: readonly RuntimeEvent[]) {
  return events.filter((event) => event.type === 'tool_started')
}

/** The ways to lose power at an append, and then again while the run is taken up. */
function crashesAt(append: number): readonly (readonly CrashPoint[])[] {
  const once = effort<readonly CrashPoint[]>({
    quick: [{ append, stored: false, unsyncedKept: 0 }],
    thorough: [0, 1].flatMap((unsyncedKept) =>
      [false, true].map((stored) => ({ append, stored, unsyncedKept })),
    ),
  })
  const again = effort({ quick: [], thorough: [1] })
  return once.flatMap((crash) => [
    [crash],
    ...again.map((second) => [crash, { ...crash, append: second, stored: !crash.stored }]),
  ])
}

describe('a machine that loses power', () => {
  it.each(programs)(
    'at any append of %s loses no law, and starts that announce no effect',
    async (_, run) => {
      let lostStarts = 0
      for (let append = 1, reached = true; reached; append++) {
        reached = false
        for (const crashes of crashesAt(append)) {
          const played = await play({ ...run, crashes })
          requireLaws(played)
          lostStarts += startsIn(played.lost).length
          reached ||= played.processes > 1
        }
      }
      expect(lostStarts).toBeGreaterThan(0)
    },
  )

  it('at any appends of a random run loses no law', async () => {
    const powerless = fc
      .record({
        random: program,
        // The limits of a random program let few tools start, and each piece of a reply is an append.
        limits: fc.record(
          {
            maxToolCalls: fc.integer({ min: 1, max: 8 }),
            maxDurationMs: fc.integer({ min: 20, max: 3_000 }),
            maxConcurrency: fc.integer({ min: 1, max: 2 }),
            maxTotalTokens: fc.integer({ min: 500, max: 5_000 }),
            onLimit: fc.constantFrom('finalize', 'stop', 'ask'),
          },
          { requiredKeys: [] },
        ),
        crashes: fc.array(
          fc.record({
            append: fc.integer({ min: 8, max: 16 }),
            stored: fc.boolean(),
            unsyncedKept: fc.nat(3),
          }),
          { minLength: 1, maxLength: 4 },
        ),
        reads: fc.array(fc.constantFrom(call('read'), call('asking_read'), call('retried', 'flake')), {
          minLength: 1,
          maxLength: 2,
        }),
      })
      .map(({ random, crashes, reads, limits }): Program => {
        const others = random.steps.map((step) => ({ ...step, calls: [...reads, ...step.calls] }))
        const { steps } = programOf([reads])
        // The laws are held against runs that are cancelled or drained as well, in `laws.property.ts`.
        const undisturbed = { cancelAtSeq: undefined, drainAtSeq: undefined }
        return { ...random, ...undisturbed, crashes, limits, steps: [...steps, ...others] }
      })
    let losses = 0
    await fc.assert(
      fc
        .asyncProperty(powerless, async (random) => {
          const played = await play(random)
          requireLaws(played)
          losses += Number(startsIn(played.lost).length > 0)
        })
        .beforeEach(newTask),
      { numRuns: Math.max(40, tries(300)) },
    )
    expect(losses).toBeGreaterThan(0)
  })
})
