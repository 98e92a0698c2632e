import { describe, expect, it } from 'vitest'
import { formatSpendingKey, listSpending, type AccumulatedRun } from '../src/projection/run-accumulator.ts'

const hourMs = 3_600_000
const model = { provider: 'p', api: 'a', modelId: 'm' }
const call = { key: '1 1', turn: 1, agent: 'clerk', model, at: 5 * hourMs, usage: { inputTokens: 7 } }

describe('what a run spent', () => {
  it('is a line for each hour, agent and model', () => {
    const line = { hour: 5, agent: 'clerk', model }
    const others = [
      { ...line, hour: 6 },
      { ...line, agent: 'boss' },
      ...(['provider', 'api', 'modelId'] as const).map((name) => ({
        ...line,
        model: { ...model, [name]: 'x' },
      })),
    ]
    expect(new Set([line, ...others].map(formatSpendingKey)).size).toBe(6)
    expect(formatSpendingKey({ ...line, model: { ...model } })).toBe(formatSpendingKey(line))
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
