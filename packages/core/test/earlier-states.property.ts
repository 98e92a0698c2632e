import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { RunState } from '@tallystick/core/machine'
import { tries } from '../../../scripts/testing/effort.ts'
import { audit, auditAll } from '../src/machine/laws.ts'
import { serializeState } from '../src/machine/state.ts'
import { play, program } from './program.ts'

/** The state as it is now. */
function noted(state: RunState | undefined): unknown {
  return state && structuredClone(serializeState(state))
}

describe('a fold of events', () => {
  it('leaves the state that it follows as it was, and ends in the state that its events give one by one', async () => {
    await fc.assert(
      fc.asyncProperty(program, async (random) => {
        const { events } = await play(random)
        const states: RunState[] = []
        for (const event of events) states.push(audit(states.at(-1), event))
        const known = states.map(noted)
        for (const [place, state] of states.entries()) {
          expect(noted(auditAll(events.slice(place + 1), state))).toEqual(known.at(-1))
        }
        expect(states.map(noted)).toEqual(known)
      }),
      { numRuns: tries(30) },
    )
  })
})
