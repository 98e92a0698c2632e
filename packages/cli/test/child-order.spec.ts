import { sampleRunId } from '@tallystick/testkit'
import { describe, expect, it } from 'vitest'
import { sortByParent } from '../src/view/run-table.ts'

describe('the order of runs in a list', () => {
  it('leaves out no run, also where some are parents of one another in a circle', () => {
    const [one, two, three, four] = [sampleRunId(1), sampleRunId(2), sampleRunId(3), sampleRunId(4)]
    const runs = [
      { runId: four, parent: three },
      { runId: three, parent: two },
      { runId: two, parent: three },
      { runId: one, parent: one },
    ]
    expect(sortByParent(runs).map(([{ runId }, depth]) => [runId, depth])).toEqual([
      [three, 0],
      [four, 1],
      [two, 0],
      [one, 0],
    ])
  })
})
