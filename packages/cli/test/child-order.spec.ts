import { sampleRunId } from '@tallystick/core/testing'
import { describe, expect, it } from 'vitest'
import { underEmployers } from '../src/view/list/child-order.ts'

describe('the order of runs in a list', () => {
  it('leaves out no run, also where some work for one another in a circle', () => {
    const [one, two, three, four] = [sampleRunId(1), sampleRunId(2), sampleRunId(3), sampleRunId(4)]
    const runs = [
      { runId: four, employer: three },
      { runId: three, employer: two },
      { runId: two, employer: three },
      { runId: one, employer: one },
    ]
    expect(underEmployers(runs).map(([{ runId }, depth]) => [runId, depth])).toEqual([
      [three, 0],
      [four, 1],
      [two, 0],
      [one, 0],
    ])
  })
})
