import { describe, expect, it } from 'vitest'
import type { Limits, Usage } from '@tallystick/core'
import type { Fact, FailureClass, Price } from '@tallystick/core/vocabulary'
import { given } from '@tallystick/testkit'
import { replaceUnbelievable, countsTokens, settleUsage } from '../src/machine/budget.ts'
import type { StreamingState } from '../src/machine/state.ts'
import { begun, called, wrote } from './pages.ts'

const searching: Price = { inputUsd: 1, outputUsd: 10, webSearchUsd: 0.01 }

interface Attempt {
  readonly limits?: Limits
  readonly text?: string
  readonly report?: Usage
  readonly price?: Price
  readonly webSearches?: number
}

/** A model call of 20 input tokens that is under way. */
function streaming({ limits = { maxTotalTokens: 1_000 }, text, report, price, webSearches }: Attempt) {
  const grant = { turns: 1, inputTokens: 20, ...(webSearches !== undefined && { webSearches }) }
  const page: readonly Fact[] = [
    ...begun({ limits }),
    called(1, 1, { grant }),
    ...(text === undefined ? [] : [wrote(text)]),
    ...(report ? [{ type: 'usage_updated' as const, turn: 1, attempt: 1, usage: report }] : []),
  ]
  const state = given(page).state as StreamingState
  return { ...state, definition: { ...state.definition, ...(price && { price }) } }
}

const settled = (attempt: Attempt, cutBy?: FailureClass | 'cancelled') =>
  settleUsage(streaming(attempt), cutBy).map(({ usage, estimated, costUsd }) => ({
    ...{ usage, estimated },
    ...(costUsd !== undefined && { costUsd }),
  }))
const estimated = (inputTokens: number, outputTokens: number) => [
  { usage: { inputTokens, outputTokens }, estimated: ['inputTokens', 'outputTokens'] },
]

describe('a model call whose provider reports nothing', () => {
  it.each([
    [undefined, true],
    ['timeout', true],
    ['truncated', true],
    ['interrupted', true],
    ['cancelled', true],
    ['overloaded', false],
    ['rate_limited', false],
    ['invalid_request', false],
  ] as const)('and that is cut by %s before anything of it came is estimated: %s', (cutBy, isEstimated) => {
    expect(settled({}, cutBy)).toEqual(isEstimated ? estimated(20, 0) : [])
  })

  it('is estimated by what came of its reply, whatever cut it off', () => {
    for (const cutBy of [undefined, 'timeout', 'overloaded'] as const) {
      expect(settled({ text: 'Seven a' }, cutBy)).toEqual(estimated(20, 2))
    }
  })

  it.each([
    [{}, false],
    [{ maxTurns: 3, maxToolCalls: 3, maxDurationMs: 3_000 }, false],
    [{ maxTotalTokens: 1_000 }, true],
    [{ maxTotalInputTokens: 1_000 }, true],
    [{ maxTotalOutputTokens: 1_000 }, true],
    [{ maxCostUsd: 0 }, true],
  ] as const)('is estimated where a limit depends on it: %o %s', (limits, isEstimated) => {
    expect(countsTokens(streaming({ limits }))).toBe(isEstimated)
    expect(settled({ limits, text: 'Seven a' })).toEqual(isEstimated ? estimated(20, 2) : [])
  })

  it('costs what the estimate costs, where there is a price', () => {
    const [fact] = settleUsage(streaming({ text: 'Seven a', price: searching }))
    expect(fact).toMatchObject({ turn: 1, attempt: 1, price: searching, costUsd: (20 + 2 * 10) / 1_000_000 })
  })
})

describe('a report', () => {
  it.each<readonly [Usage, Usage, readonly string[]]>([
    [{ inputTokens: 2, outputTokens: 2 }, { inputTokens: 2, outputTokens: 2 }, []],
    [
      { inputTokens: 1, outputTokens: 1 },
      { inputTokens: 32, outputTokens: 8 },
      ['inputTokens', 'outputTokens'],
    ],
    [{ inputTokens: 2, outputTokens: 1 }, { inputTokens: 2, outputTokens: 8 }, ['outputTokens']],
    [{ inputTokens: 1, outputTokens: 2 }, { inputTokens: 32, outputTokens: 2 }, ['inputTokens']],
    [{ outputTokens: 900 }, { inputTokens: 32, outputTokens: 900 }, ['inputTokens']],
    [
      { inputTokens: 900, cacheReadTokens: 3 },
      { inputTokens: 900, outputTokens: 8, cacheReadTokens: 3 },
      ['outputTokens'],
    ],
  ])('of %o about 32 and 8 tokens counts as %o', (report, usage, fields) => {
    expect(replaceUnbelievable(report, { inputTokens: 32, outputTokens: 8 })).toEqual({
      usage,
      estimated: fields,
    })
  })

  it('is believed whole where nothing is known to compare it with', () => {
    const report = { inputTokens: 0, outputTokens: 0 }
    expect(replaceUnbelievable(report, {})).toEqual({ usage: report, estimated: [] })
  })

  it('that is believable settles the call as it is; a number that is not believable is estimated', () => {
    expect(settled({ report: { inputTokens: 20, outputTokens: 4 } }, 'overloaded')).toEqual([])
    expect(settled({ report: { inputTokens: 1, outputTokens: 4 } }, 'overloaded')).toEqual([
      { usage: { inputTokens: 20, outputTokens: 4 }, estimated: ['inputTokens'] },
    ])
  })
})

describe('web searches of a reply that was cut off', () => {
  const report = { inputTokens: 20, outputTokens: 4 }
  const search: Attempt = { limits: { maxCostUsd: 1 }, price: searching, webSearches: 3, report }
  const counted = [
    {
      usage: { ...report, webSearches: 3 },
      estimated: ['webSearches'],
      costUsd: (20 + 4 * 10) / 1_000_000 + 3 * 0.01,
    },
  ]

  it.each<readonly [string, Attempt, boolean]>([
    ['as many as were granted', search, true],
    ['of which the report names some', { ...search, report: { ...report, webSearches: 2 } }, true],
    ['of which the report names all', { ...search, report: { ...report, webSearches: 3 } }, false],
    ['that were not granted', { ...search, webSearches: 0 }, false],
    ['without a limit on money', { ...search, limits: { maxTotalTokens: 1_000 } }, false],
    ['that cost nothing', { ...search, price: { ...searching, webSearchUsd: 0 } }, false],
    ['without a price', { ...search, price: { inputUsd: 1, outputUsd: 10 } }, false],
  ])('count: %s', (_name, attempt, areCounted) => {
    expect(settled(attempt, 'timeout')).toEqual(areCounted ? counted : [])
  })

  it('are what the report says, where the reply is whole', () => {
    expect(settled(search)).toEqual([])
  })
})
