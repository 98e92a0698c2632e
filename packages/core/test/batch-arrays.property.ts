import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { RuntimeEvent } from '@tallystick/core'
import { audit, evolve, openTurnCalls, type RunState } from '@tallystick/core/machine'
import { stamped } from '@tallystick/testkit'
import { tries } from '../../../scripts/testing/effort.ts'
import { changeable, makeBatch, withMore } from '../src/machine/history.ts'
import { stateToJson } from '../src/machine/state.ts'
import { countedSummary, summaryOf } from '../src/machine/calls.ts'
import { endedCall, executing, runId, startedCall } from './pages.ts'
import { play, program } from './program.ts'

function folded(before: RunState | undefined, events: readonly RuntimeEvent[]): RunState | undefined {
  let state = before
  for (const event of events) {
    state = audit(state, event)
    const calls = openTurnCalls(state)
    expect(summaryOf(calls)).toEqual(countedSummary(calls))
  }
  return state
}

/** The state as it is now. */
function noted(state: RunState | undefined): unknown {
  return state && structuredClone(stateToJson(state))
}

describe('a batch of events', () => {
  it('leaves the state that it follows as it was, and ends in the state that its events give one by one', async () => {
    await fc.assert(
      fc.asyncProperty(program, async (random) => {
        const { events } = await play(random)
        const whole = noted(folded(undefined, events))
        for (let place = 0; place < events.length; place++) {
          const before = folded(undefined, events.slice(0, place))
          const known = noted(before)
          const last = makeBatch(() => folded(before, events.slice(place)))
          expect(noted(before)).toEqual(known)
          expect(noted(last)).toEqual(whole)
        }
      }),
      { numRuns: tries(30) },
    )
  })

  it('leaves the calls of earlier states as they were, however many of them it ends', () => {
    const names = ['look', 'look', 'look']
    const calls = names.map((_, index) => index + 1)
    const page = [
      ...executing(names),
      ...calls.map((ordinal) => startedCall(ordinal)),
      ...calls.map((ordinal) => endedCall(ordinal)),
    ]
    const events = stamped(runId, page)
    const states = events.map((_, place) =>
      events.slice(0, place).reduce(evolve, undefined as RunState | undefined),
    )
    const known = states.map(noted)
    for (const [place, state] of states.entries()) {
      const last = makeBatch(() => events.slice(place).reduce(evolve, state))
      expect(openTurnCalls(last as RunState).map(({ status }) => status)).toEqual(names.map(() => 'settled'))
    }
    expect(states.map(noted)).toEqual(known)
  })

  it('is held to the laws by each call as it was before it started', () => {
    // Whether a start is within the limit depends on whether it is the first of its call.
    const started = (maxToolCalls: number): RunState | undefined => {
      const page = executing(['look', 'look'], {}, { maxToolCalls })
      const events = stamped(runId, [...page, startedCall(1), startedCall(2)])
      const before = events.slice(0, page.length).reduce(evolve, undefined as RunState | undefined)
      return makeBatch(() => events.slice(page.length).reduce(audit, before))
    }
    expect(() => started(1)).toThrow('maxToolCalls is used up')
    expect(started(2)).toMatchObject({ totals: { toolCalls: 2 } })
  })

  it('copies an array once, and one that comes from before or after it always', () => {
    const old: readonly number[] = [1]
    const [one, two] = makeBatch(() => {
      const grown = withMore(old, 2)
      return [grown, withMore(grown, 3)]
    })
    expect([old, two]).toEqual([[1], [1, 2, 3]])
    expect(one).toBe(two)
    expect(makeBatch(() => changeable(two))).not.toBe(two)
    expect(withMore(two, 4)).toEqual([1, 2, 3, 4])
    expect(two).toEqual([1, 2, 3])
  })

  it('that fails is over', () => {
    let own: readonly number[] = []
    const failing = (): void =>
      makeBatch(() => {
        own = withMore([], 1)
        throw new Error('It failed.')
      })
    expect(failing).toThrow('It failed.')
    expect(withMore(own, 2)).not.toBe(own)
  })
})
