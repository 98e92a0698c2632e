import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type RunState, type RuntimeEvent } from '@tallystick/core'
import { audit, evolve, deserializeState, serializeState } from '@tallystick/core/machine'
import { toCanonicalJson, type JsonObject } from '@tallystick/core/vocabulary'
import { tries } from '../../../scripts/testing/effort.ts'
import { play, program } from './program.ts'

const numRuns = tries(100)

/** The state as a reader of its JSON gets it. */
function writtenDown(state: RunState): RunState {
  return deserializeState(JSON.parse(toCanonicalJson(serializeState(state))) as JsonObject)
}

const fold = (events: readonly RuntimeEvent[], from?: RunState): RunState | undefined =>
  events.reduce<RunState | undefined>(evolve, from)

describe('the state of a run as JSON', () => {
  it('is the state again, at every event of every run', async () => {
    await fc.assert(
      fc.asyncProperty(program, async (random) => {
        const { events, others } = await play(random)
        for (const run of [events, ...others]) {
          let state: RunState | undefined
          for (const event of run) {
            state = evolve(state, event)
            // How many tokens messages are worth is counted when it is first asked for: no part of what is written.
            expect(serializeState(writtenDown(state))).toStrictEqual(serializeState(state))
          }
        }
      }),
      { numRuns },
    )
  })

  it('continues as the run did: what follows keeps the laws, with the same digests, and folds to the same', async () => {
    await fc.assert(
      fc.asyncProperty(program, fc.nat(), async (random, somewhere) => {
        const { events } = await play(random)
        const at = 1 + (somewhere % events.length)
        const resumed = writtenDown(fold(events.slice(0, at))!)
        const end = events.reduce<RunState | undefined>(audit, undefined)!
        expect(serializeState(events.slice(at).reduce(audit, resumed))).toEqual(serializeState(end))
      }),
      { numRuns },
    )
  })

  it('stays what it was when the run continues', async () => {
    await fc.assert(
      fc.asyncProperty(program, async (random) => {
        const { events } = await play(random)
        const half = Math.ceil(events.length / 2)
        const state = fold(events.slice(0, half))!
        const before = toCanonicalJson(serializeState(state))
        fold(events.slice(half), state)
        expect(toCanonicalJson(serializeState(state))).toBe(before)
      }),
      { numRuns },
    )
  })
})
