import type { Limits, RuntimeEvent, Tool, Usage } from '@tallystick/core'
import type { ToolSignal, ToolSpending, Fact, FailureClass, Price } from '@tallystick/core/vocabulary'
import { checkBudgets, checkLaws, testTool, given } from '@tallystick/testkit'
import { from, Observable } from 'rxjs'
import { describe, expect, it } from 'vitest'
import { replaceUnbelievable, countsTokens, settleUsage } from '../src/machine/budget.ts'
import { auditAll } from '../src/machine/laws.ts'
import type { StreamingState } from '../src/machine/state.ts'
import { billing, look, play } from './grants-stage.ts'
import { begun, called, wrote } from './pages.ts'

const spent: ToolSpending = {
  model: { provider: 'p', api: 'a', modelId: 'm' },
  usage: { inputTokens: 300, outputTokens: 100 },
  costUsd: 0.5,
}

const asked: ToolSignal = { type: 'tool_progressed', data: 'asked', spent }
const seen: ToolSignal = {
  type: 'tool_ended',
  outcome: 'success',
  content: [{ type: 'text', text: 'Seen.' }],
}

/** A tool that makes two calls of a model, and says so. */
const asking: Tool = { ...testTool({ name: 'look' }), run: () => from([asked, asked, seen]) }

const limits: Limits = { maxTurns: 10, maxTotalTokens: 10_000, maxCostUsd: 5 }

/** The run with other amounts where the tool said what it spent. */
function forge(events: readonly RuntimeEvent[], more: Partial<ToolSpending>): readonly RuntimeEvent[] {
  return events.map((event) =>
    event.type === 'tool_progress' ? { ...event, spent: { ...spent, ...more } } : event,
  )
}

const brokenLaws = (events: readonly RuntimeEvent[]): readonly (number | string | undefined)[] => {
  let audited: string | undefined
  try {
    auditAll(events)
  } catch (error) {
    audited = (error as Error).message
  }
  return [audited, checkLaws(events)[0]?.what, checkBudgets([events])[0]?.what]
}

describe('model calls of a tool', () => {
  it('count as tokens, money and turns of its run', async () => {
    const model = billing([look, { text: 'Done.' }], 'cheap', 100)
    const { result, events } = await play({ model, tools: [asking], limits })
    expect(result.text).toBe('Done.')
    expect(result.costUsd).toBeGreaterThan(1)
    expect(result.usage.outputTokens).toBe(2 * 100 + 2 * 100)
    expect(auditAll(events)?.totals.children).toEqual({ runs: 0, turns: 2, toolCalls: 0 })
    expect(brokenLaws(events)).toEqual([undefined, undefined, undefined])
  })

  it.each<readonly [string, Partial<ToolSpending>, RegExp]>([
    ['tokens', { usage: { inputTokens: 9_000 } }, /maxTotalTokens/],
    ['money', { costUsd: 4 }, /maxCostUsd/],
  ])(
    'that use up the %s let no model call follow: the fold and both judges say so',
    async (_, more, limit) => {
      const model = billing([look, { text: 'Done.' }], 'cheap', 100)
      const { events } = await play({ model, tools: [asking], limits })
      expect(brokenLaws(forge(events, more))).toEqual([1, 2, 3].map(() => expect.stringMatching(limit)))
    },
  )

  it('use up turns, too', async () => {
    const model = billing([look, { text: 'Done.' }], 'cheap', 100)
    const { events } = await play({ model, tools: [asking], limits })
    const [first, ...rest] = events as readonly [RuntimeEvent, ...RuntimeEvent[]]
    const tight = [{ ...first, limits: { ...limits, maxTurns: 3 } } as RuntimeEvent, ...rest]
    expect(brokenLaws(tight)).toEqual([1, 2, 3].map(() => expect.stringMatching(/maxTurns/)))
  })

  it('are on record where the progress of tools is not', async () => {
    const model = billing([look, { text: 'Done.' }], 'cheap', 100)
    const silent = { model, tools: [asking], limits, recording: { toolProgress: false } }
    const { events } = await play(silent)
    const reports = events.filter((event) => event.type === 'tool_progress')
    expect(reports).toMatchObject([1, 2].map(() => ({ data: null, spent })))
  })

  it('leave less to the next one at once, in every attempt', async () => {
    const left: unknown[] = []
    const retry = { maxAttempts: 2, baseMs: 1, capMs: 1, maxRetryAfterMs: 1 }
    const failing: Tool = {
      ...testTool({ name: 'look', retry }),
      run: ({ attempt, left: read }) =>
        new Observable((subscriber) => {
          for (const signal of [asked, asked]) {
            subscriber.next(signal)
            const most = read?.()
            left.push(most && 'costUsd' in most && most.costUsd)
          }
          subscriber.next(attempt === 2 ? seen : { ...seen, outcome: 'failed', retryable: true })
          subscriber.complete()
        }),
    }
    const model = billing([look, { text: 'Done.' }], 'cheap', 0)
    await play({ model, tools: [failing], limits: { ...limits, onLimit: 'stop' } })
    const [first = 0, ...rest] = left as readonly number[]
    expect(rest.map((costUsd) => first - costUsd)).toEqual([0.5, 1, 1.5].map((more) => expect.closeTo(more)))
  })
})

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
