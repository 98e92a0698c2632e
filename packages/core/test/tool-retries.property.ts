import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { RuntimeEvent } from '@tallystick/core'
import { newTask, tries } from '../../../scripts/testing/effort.ts'
import { play, requireLaws } from './program.ts'
import { ofType } from './stage.ts'
import { retryingProgram } from '../../../scripts/testing/programs/random-program.ts'

describe('calls that are tried again, among cancels, limits, timeouts and crashes', () => {
  it('keep every law, at most as many failures as declared, and leave no call open', async () => {
    let failures = 0
    let takenUp = 0
    await fc.assert(
      fc
        .asyncProperty(retryingProgram, async (random) => {
          const played = await play(random)
          requireLaws(played)
          const { events, world } = played
          const failed = ofType(events, 'tool_attempt_failed')
          for (const [call, attempts] of attemptsByCall(failed)) {
            expect({ call, attempts, few: attempts <= 2 }).toMatchObject({ few: true })
          }
          failures += failed.length
          takenUp += Number(
            failed.some(({ seq }) => events.some((event) => event.type === 'run_resumed' && event.seq > seq)),
          )
          // A write that is safe only after a failure that changed nothing has one effect, however often it is tried.
          const safe = new Set(
            ofType(events, 'tool_started').flatMap(({ name, toolCallId }) =>
              name === 'retried_write' ? [toolCallId as string] : [],
            ),
          )
          expect([...world.effects].filter(([call, times]) => safe.has(call) && times !== 1)).toEqual([])
        })
        .beforeEach(newTask),
      { numRuns: tries(150) },
    )
    // What was tried has to be what the test is about.
    expect(failures).toBeGreaterThan(tries(150) / 4)
    expect(takenUp).toBeGreaterThan(0)
  })
})

function attemptsByCall(failed: readonly RuntimeEvent[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>()
  for (const { toolCallId = '' } of failed) counts.set(toolCallId, (counts.get(toolCallId) ?? 0) + 1)
  return counts
}
