import { evolve, type RunState, serializeState } from '@tallystick/core/machine'
import type { RuntimeEvent } from '@tallystick/core'
import * as fc from 'fast-check'
import '../../../scripts/testing/seed.ts'
import { describe, expect, it } from 'vitest'
import { describeMoment } from '../src/page/worker/moment.ts'
import { RunModel } from '../src/page/worker/run-model.ts'
import { playProgram } from '../../../scripts/testing/programs/play-program.ts'
import { randomProgram } from '../../../scripts/testing/programs/random-program.ts'

/** The state of a run after each of its events, folded from its first. */
function foldEach(events: readonly RuntimeEvent[]): readonly RunState[] {
  const states: RunState[] = []
  for (const event of events) states.push(evolve(states.at(-1), event))
  return states
}

/** Histories of one growth share their store, so only what is stored of states can be compared. */
function serialize(state: RunState | undefined): unknown {
  return state && serializeState(state)
}

describe('the run of the page', () => {
  it('has at each event, in any order, the state that a fold from the first event has', async () => {
    await fc.assert(
      fc.asyncProperty(randomProgram, fc.array(fc.nat(2_000), { maxLength: 20 }), async (program, places) => {
        const { events } = await playProgram(program)
        const model = new RunModel()
        // As they arrive: some of them twice after a stream broke off.
        model.add(events.slice(0, 7))
        model.add(events)
        const states = foldEach(events)
        for (const place of places) {
          const seq = 1 + (place % events.length)
          expect(serialize(model.stateAt(seq))).toEqual(serialize(states[seq - 1]))
        }
        expect(serialize(model.state)).toEqual(serialize(states.at(-1)))
      }),
    )
  })

  it('describes every event of every program, within what a page can hold', async () => {
    await fc.assert(
      fc.asyncProperty(randomProgram, async (program) => {
        const { events } = await playProgram(program)
        const model = new RunModel()
        model.add(events)
        for (const { seq, turn, type } of events) {
          const moment = describeMoment(model, seq)
          expect(moment).toMatchObject({ seq, turn, type })
          const said = moment?.conversation.filter(({ key }) => !/^(draft|call)/.test(key)) ?? []
          expect(said.filter((item) => item.seq === undefined || item.seq > seq)).toEqual([])
          expect(JSON.stringify(moment).length).toBeLessThan(1_000_000)
        }
      }),
    )
  })
})
