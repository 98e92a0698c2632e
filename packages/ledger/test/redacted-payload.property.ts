import * as fc from 'fast-check'
import { type RunState, type RuntimeEvent } from '@tallystick/core'
import { audit, toTranscript } from '@tallystick/core/machine'
import { parseEvent } from '@tallystick/core/vocabulary'
import { checkTranscript } from '@tallystick/testkit'
import { describe, expect, it } from 'vitest'
import { tries } from '../../../scripts/testing/effort.ts'
import { redactEvent } from '@tallystick/core/store-kit'
import { envelopeOf } from './support/envelope.ts'
import { playProgram } from '../../../scripts/testing/programs/play-program.ts'
import { randomProgram } from '../../../scripts/testing/programs/random-program.ts'

const numRuns = tries(100)

function masked(event: RuntimeEvent): RuntimeEvent {
  const removed = { kind: 'expired', at: 1, by: 'nobody' } as const
  return { ...redactEvent(event), ...envelopeOf(event), removed } as RuntimeEvent
}

function folded(events: readonly RuntimeEvent[]): RunState {
  const last = events.reduce<RunState | undefined>((state, event) => {
    const next = audit(state, parseEvent(event))
    expect(checkTranscript(toTranscript(next))).toEqual([])
    return next
  }, undefined)
  if (last === undefined) throw new Error('The run has no events.')
  return last
}

describe('a random run of which content is gone', () => {
  it('folds at every event, whatever is gone, to the same totals, phase and pairing', async () => {
    await fc.assert(
      fc.asyncProperty(randomProgram, fc.infiniteStream(fc.boolean()), async (program, choices) => {
        const { events, others } = await playProgram(program)
        for (const played of [events, ...others]) {
          const whole = folded(played)
          for (const state of [
            folded(played.map(masked)),
            folded(played.map((event) => (choices.next().value ? masked(event) : event))),
          ]) {
            const { phase, seq, totals, turn, agent, waitedMs } = whole
            expect(state).toMatchObject({ phase, seq, totals, turn, agent, waitedMs })
            expect(toTranscript(state).map(({ role }) => role)).toEqual(
              toTranscript(whole).map(({ role }) => role),
            )
          }
          for (const event of played) expect(redactEvent(masked(event))).toEqual(redactEvent(event))
        }
      }),
      { numRuns },
    )
  })
})
