import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { CrashPoint } from '@tallystick/testkit'
import { effort, newTask, tries } from '../../../scripts/testing/effort.ts'
import { play, program, type Program, requireLaws, startsIn } from './program.ts'

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

/** The ways to lose power at an append, and then again while the run is taken up. */
function crashesAt(append: number): readonly (readonly CrashPoint[])[] {
  const once = effort<readonly CrashPoint[]>({
    quick: [{ append, stored: false, unsyncedKept: 0 }],
    thorough: [0, 1].flatMap((unsyncedKept) =>
      [false, true].map((stored) => ({ append, stored, unsyncedKept })),
    ),
  })
  // Random runs vary what is kept at a second loss, too.
  const again = effort({ quick: [], thorough: [1] })
  return once.flatMap((crash) => [
    [crash],
    ...(crash.unsyncedKept === 0 ? again : []).map((second) => [
      crash,
      { ...crash, append: second, stored: !crash.stored },
    ]),
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
