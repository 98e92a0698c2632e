import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { RuntimeEvent } from '@tallystick/core'
import { evolve, openTurnCalls, type RunState } from '@tallystick/core/machine'
import { stampFacts } from '@tallystick/testkit'
import { tries } from '../../../scripts/testing/effort.ts'
import { serializeState } from '../src/machine/state.ts'
import { type Draft, summarizeCalls } from '../src/machine/calls.ts'
import { evolveIn } from '../src/machine/evolve.ts'
import { auditIn } from '../src/machine/laws.ts'
import { endedCall, executing, runId, startedCall } from './pages.ts'
import { play, program } from './program.ts'

function folded(
  before: RunState | undefined,
  events: readonly RuntimeEvent[],
  draft?: Draft,
): RunState | undefined {
  let state = before
  for (const event of events) {
    state = auditIn(draft, state, event)
    const calls = openTurnCalls(state)
    expect(summarizeCalls(calls)).toEqual(summarizeCalls([...calls]))
  }
  return state
}

/** The state as it is now. */
function noted(state: RunState | undefined): unknown {
  return state && structuredClone(serializeState(state))
}

describe('a fold of events', () => {
  it('leaves the state that it follows as it was, and ends in the state that its events give one by one', async () => {
    await fc.assert(
      fc.asyncProperty(program, async (random) => {
        const { events } = await play(random)
        const whole = noted(folded(undefined, events))
        for (let place = 0; place < events.length; place++) {
          const before = folded(undefined, events.slice(0, place))
          const known = noted(before)
          for (const draft of [undefined, new WeakSet<readonly unknown[]>()]) {
            const last = folded(before, events.slice(place), draft)
            expect(noted(before)).toEqual(known)
            expect(noted(last)).toEqual(whole)
          }
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
    const events = stampFacts(runId, page)
    const states = events.map((_, place) =>
      events.slice(0, place).reduce(evolve, undefined as RunState | undefined),
    )
    const known = states.map(noted)
    for (const [place, state] of states.entries()) {
      const draft = new WeakSet<readonly unknown[]>()
      const last = events
        .slice(place)
        .reduce<RunState | undefined>((before, event) => evolveIn(draft, before, event), state)
      expect(openTurnCalls(last as RunState).map(({ status }) => status)).toEqual(names.map(() => 'settled'))
    }
    expect(states.map(noted)).toEqual(known)
  })

  it('is held to the laws by each call as it was before it started', () => {
    // Whether a start is within the limit depends on whether it is the first of its call.
    const started = (maxToolCalls: number): RunState | undefined => {
      const page = executing(['look', 'look'], {}, { maxToolCalls })
      const events = stampFacts(runId, [...page, startedCall(1), startedCall(2)])
      const before = events.slice(0, page.length).reduce(evolve, undefined as RunState | undefined)
      return folded(before, events.slice(page.length), new WeakSet())
    }
    expect(() => started(1)).toThrow('maxToolCalls is used up')
    expect(started(2)).toMatchObject({ totals: { toolCalls: 2 } })
  })

  it('copies the calls once in a draft, and changes none that it was handed', () => {
    const page = executing(['look', 'look'])
    const events = stampFacts(runId, [...page, startedCall(1), startedCall(2)])
    const before = events.slice(0, page.length).reduce(evolve, undefined as RunState | undefined) as RunState
    const draft = new WeakSet<readonly unknown[]>()
    const [first, second] = events.slice(page.length) as [RuntimeEvent, RuntimeEvent]
    const one = evolveIn(draft, before, first)
    const both = evolveIn(draft, one, second)
    expect(openTurnCalls(both)).toBe(openTurnCalls(one))
    expect(openTurnCalls(before).map(({ status }) => status)).toEqual(['ready', 'ready'])
    expect(openTurnCalls(evolve(before, first))).not.toBe(openTurnCalls(before))
  })
})
