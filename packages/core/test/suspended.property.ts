import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createRuntime, memoryLedger, type RunState, type RuntimeEvent } from '@tallystick/core'
import { bindRules, type Rules } from '@tallystick/core/internal'
import { evolve, isSuspended, nextAction, requiredEffects } from '@tallystick/core/machine'
import { copyPrefix, manualClock, waitUntilSettled } from '@tallystick/testkit'
import { tries } from '../../../scripts/testing/effort.ts'
import { play, program, type Program } from './program.ts'
import { createIdleAgent } from '../../../scripts/testing/programs/play-program.ts'

const numRuns = tries(150)

/** Programs that rest more often than others: limits are asked about, and guardrails look beside the model. */
const restful: fc.Arbitrary<Program> = fc
  .tuple(program, fc.boolean(), fc.integer({ min: 0, max: 2 }))
  .map(([random, asks, maxTurns]) =>
    asks ? { ...random, limits: { ...random.limits, maxTurns, onLimit: 'ask' as const } } : random,
  )

function statesOf(events: readonly RuntimeEvent[]): readonly RunState[] {
  const states: RunState[] = []
  for (const event of events) states.push(evolve(states.at(-1), event))
  return states
}

/** The rules of a run's first agent; of those that it hands over to, none that could say when a run waits. */
function rulesOf(random: Program, state: RunState): Rules {
  const agent = createIdleAgent(random)
  const handOff: Rules['handOff'] = () => ({ definition: state.definition })
  return {
    ...(agent.name === state.agent
      ? bindRules(agent, undefined, (_turn, prepare) => prepare() as never)
      : {}),
    handOff,
  }
}

describe('whether a run is suspended', () => {
  it('is the controller’s answer in every state of every run, and never while something is in flight', async () => {
    await fc.assert(
      fc.asyncProperty(restful, async (random) => {
        const { events, others } = await play(random)
        for (const state of [events, ...others].flatMap(statesOf)) {
          const action = nextAction(state, state.at, rulesOf(random, state))
          expect([state.seq, isSuspended(state)]).toEqual([state.seq, action.kind === 'suspend'])
          const isTimed = action.kind === 'wait' && action.wakeAt !== undefined
          const inFlight = requiredEffects(state).length > 0
          // A run that waits waits for something in this process, and a suspended run for nothing in it.
          const needsFlight = action.kind === 'wait' && !isTimed
          const wrong = action.kind === 'suspend' ? inFlight : needsFlight && !inFlight
          expect([state.seq, wrong]).toEqual([state.seq, false])
        }
      }),
      { numRuns },
    )
  })

  it('is the same for its result, the list and a resume, which leaves its ledger as it is', async () => {
    await fc.assert(
      fc.asyncProperty(restful, fc.nat(), async (random, chosen) => {
        const { events, others } = await play({ ...random, cancelAtSeq: undefined })
        const rests = statesOf(events).filter(isSuspended)
        const state = rests[chosen % Math.max(1, rests.length)]
        if (state === undefined) return
        const ledger = memoryLedger()
        // Child runs that have come further than this state knows would take it further.
        const childless = others.length === 0
        await copyPrefix(events.slice(0, state.seq), ledger)
        const clock = manualClock(state.at)
        const host = { clock, random: () => 0.5, report: () => {} }
        const runtime = createRuntime({ ledger, agents: [createIdleAgent(random)], host })
        const listed: string[] = []
        for await (const { runId, status, seq } of runtime.suspended())
          listed.push(`${runId} ${status} ${seq}`)
        expect(listed).toEqual([`${state.runId} suspended ${state.seq}`])
        if (!childless) return
        const result = await waitUntilSettled(clock, runtime.resume(state.runId).result)
        expect(result).toMatchObject({ status: 'suspended', seq: state.seq })
        expect((await ledger.head(state.runId))?.seq).toBe(state.seq)
      }),
      { numRuns },
    )
  })
})
