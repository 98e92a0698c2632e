import { describe, expect, it } from 'vitest'
import { listSpending, type AccumulatedRun } from '../src/projection/run-accumulator.ts'

const hourMs = 3_600_000
const model = { provider: 'p', api: 'a', modelId: 'm' }
const call = { key: '1 1', turn: 1, agent: 'clerk', model, at: 5 * hourMs, usage: { inputTokens: 7 } }

describe('what a run spent', () => {
  it('is a line for each hour, agent and model', () => {
    const others = [
      { ...call, at: 6 * hourMs },
      { ...call, agent: 'boss' },
      ...(['provider', 'api', 'modelId'] as const).map((name) => ({
        ...call,
        model: { ...model, [name]: 'x' },
      })),
    ]
    const open = [call, ...others, call, ...others].map((each, index) => ({ ...each, key: `${index}` }))
    const lines = listSpending({ settled: [], open } as unknown as AccumulatedRun)
    expect(lines).toHaveLength(6)
    expect(lines.map(({ calls, usage }) => [calls, usage])).toEqual(lines.map(() => [2, { inputTokens: 14 }]))
  })

  it('adds up the calls of a line', () => {
    const open = [call, { ...call, key: '1 2', at: 6 * hourMs - 1 }, { ...call, key: '2 1', at: 6 * hourMs }]
    const lines = listSpending({ settled: [], open } as unknown as AccumulatedRun)
    expect(lines.map(({ hour, calls }) => [hour, calls])).toEqual([
      [5, 2],
      [6, 1],
    ])
  })
})
