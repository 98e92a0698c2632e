import { given } from '@tallystick/testkit'
import { decide } from '@tallystick/core/machine'
import type { Fact } from '@tallystick/core/vocabulary'
import { describe, expect, it } from 'vitest'
import type { RunState } from '../src/machine/state.ts'
import { begun } from './pages.ts'

const stamp = { at: 0, random: 0 }
const waiting = { ...given(begun()).state!, inputCheck: { seq: 2, from: 0, guardrails: ['clean', 'polite'] } }

/** The types of the facts that follow from a report about the input. */
function factsFor(state: RunState, guardrails: readonly string[], place = 2): readonly Fact['type'][] {
  const signal = { type: 'guardrails_checked', on: 'input', place, guardrails, finds: [] } as const
  const decision = decide(state, signal, stamp)
  return 'facts' in decision ? decision.facts.map(({ type }) => type) : []
}

describe('a report of the guardrails of an input', () => {
  it('is recorded where any of them is waited for', () => {
    for (const guardrails of [['clean'], ['clean', 'polite'], ['polite', 'gone']]) {
      expect(factsFor(waiting, guardrails)).toEqual(['guardrails_checked'])
    }
  })

  it('changes nothing where none of them is, or another input is', () => {
    expect(factsFor(waiting, ['gone'])).toEqual([])
    expect(factsFor(waiting, [])).toEqual([])
    expect(factsFor(waiting, ['clean'], 3)).toEqual([])
    expect(factsFor(given(begun()).state!, ['clean'])).toEqual([])
  })
})
