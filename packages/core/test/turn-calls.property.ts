import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { evolve, findCall, openTurnCalls, requiredEffects } from '@tallystick/core/machine'
import type { RunState } from '@tallystick/core'
import { tries } from '../../../scripts/testing/effort.ts'
import { findCallsAwaitingEqual, findRepeatedAnswers } from '../src/machine/call-limits.ts'
import { requiresEffects } from '../src/machine/required-effects.ts'
import type { Call, ExecutingState } from '../src/machine/state.ts'
import { findCallPlace } from '../src/machine/calls.ts'
import { executing } from './pages.ts'
import { play, program } from './program.ts'
import { given } from '@tallystick/testkit'

const numRuns = tries(100)

/** Every state of every run of a random program, each after the state before it. */
async function statesOf(random: Parameters<typeof play>[0]): Promise<readonly (readonly RunState[])[]> {
  const { events, others } = await play(random)
  return [events, ...others].map((run) => {
    const states: RunState[] = []
    for (const event of run) states.push(evolve(states.at(-1), event))
    return states
  })
}

/** The calls that wait for equal ones, by counting all of them. */
function waitingCalls(state: ExecutingState): readonly Call[] {
  const { calls, limits } = state
  const isComparable = ({ effect, repeats }: Call): boolean => effect === 'read' && repeats === undefined
  const change = calls.findIndex(
    ({ effect, status }) => effect !== 'read' && status !== 'settled' && status !== 'to_settle',
  )
  const isEqual = (a: Call, b: Call): boolean => a.name === b.name && a.inputDigest === b.inputDigest
  return calls.filter((call, place) => {
    const { inputDigest, attempts, status } = call
    if (!isComparable(call) || (change !== -1 && place > change)) return false
    if (inputDigest === undefined || attempts > 0 || (status !== 'ready' && status !== 'to_ask')) return false
    const before = calls.slice(0, place).filter((other) => other.status !== 'settled' && isEqual(call, other))
    const answers = findRepeatedAnswers(state, call).length
    return before.length > 0 && before.length + answers >= (limits.maxRepeats ?? 6)
  })
}

describe('what is known of the calls of a turn together', () => {
  it('is what counting each of them gives, in every state of every run', async () => {
    await fc.assert(
      fc.asyncProperty(program, async (random) => {
        for (const state of (await statesOf(random)).flat()) {
          const calls = openTurnCalls(state)
          for (const [place, { toolCallId }] of calls.entries()) {
            expect(findCallPlace(calls, toolCallId)).toBe(place)
            const beside = state.background?.find((call) => call.toolCallId === toolCallId)
            expect(findCall(state, toolCallId)).toBe(beside ?? calls[place])
          }
          expect(requiresEffects(state)).toBe(requiredEffects(state).length > 0)
          if (state.phase !== 'executing') continue
          expect([...findCallsAwaitingEqual(state)]).toEqual(waitingCalls(state))
        }
      }),
      { numRuns },
    )
  })

  it('finds a call by its id wherever it is, and none by an id that no call has', () => {
    const { calls } = given(executing(['look', 'look', 'look'])).state as ExecutingState
    const turned = calls.toReversed()
    for (const [place, { toolCallId }] of turned.entries())
      expect(findCallPlace(turned, toolCallId)).toBe(place)
    for (const id of ['', '_', 'x', '_0', '_9', `${calls[0]?.toolCallId}1`])
      expect(findCallPlace(calls, id)).toBe(-1)
  })
})
