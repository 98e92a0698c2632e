import { describe, expect, it } from 'vitest'
import type { ParentRef } from '../src/events/event.ts'
import { type RunId, extractTime } from '../src/values/ids.ts'
import { toRunTimes } from '../src/machine/state.ts'
import { createRunIdMaker } from '../src/runtime/host.ts'
import { manualClock } from '@tallystick/testkit'

const at = 1_760_000_000_123
const runId = createRunIdMaker({ clock: manualClock(at), random: () => 0.5 })()
const parent = (relation: ParentRef['relation']): ParentRef => ({ runId, seq: 2, relation })

describe('the times of a run', () => {
  it.each([
    ['a run', { startedAt: 5, at: 9 }, { startedAt: 5, lastAt: 9 }],
    [
      'a run that continues another',
      { startedAt: 5, at: 9, parent: parent('session') },
      { startedAt: 5, lastAt: 9 },
    ],
    ['a fork', { startedAt: 5, at: at + 9, parent: parent('fork') }, { startedAt: at, lastAt: at + 9 }],
    [
      'a fork that was not driven',
      { startedAt: 5, at: 9, parent: parent('fork') },
      { startedAt: at, lastAt: at },
    ],
    [
      'a fork whose clock was behind that of the other run',
      { startedAt: at + 5, at: at + 9, parent: parent('fork') },
      { startedAt: at + 5, lastAt: at + 9 },
    ],
  ])('of %s', (_what, facts, times) => {
    expect(toRunTimes({ runId, ...facts })).toEqual(times)
  })
})

describe('the time that a run id tells', () => {
  it('is that at which it was made', () => {
    expect(extractTime(runId)).toBe(at)
    expect(extractTime(runId.replace('-7', '-8') as RunId)).toBeUndefined()
  })
})
