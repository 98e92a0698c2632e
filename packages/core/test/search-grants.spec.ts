// Web searches that a provider runs within a model call, and bills beside its tokens.
import { describe, expect, it } from 'vitest'
import {
  ConfigurationError,
  LawBrokenError,
  type Limits,
  type Model,
  type RuntimeEvent,
} from '@tallystick/core'
import { auditAll } from '@tallystick/core/machine'
import { checkBudgets, type ScriptedReply } from '@tallystick/testkit'
import { billing, counting, look, modelCalls, play, type Played } from './grants-stage.ts'
import { ofType } from './stage.ts'

const usd = 0.01
const tokens = { inputTokens: 50, outputTokens: 5 }
const searched = (webSearches: number, more: ScriptedReply = look): ScriptedReply => ({
  ...more,
  usage: { ...tokens, webSearches },
})

/** Plays a model that may search so often in each call. */
function search(
  steps: readonly ScriptedReply[],
  { maxWebSearches, limits }: { maxWebSearches?: number | 'unbounded'; limits: Limits },
): Promise<Played> {
  const model = { ...billing(steps, 'searching'), ...(maxWebSearches !== undefined && { maxWebSearches }) }
  return play({ model, tools: [counting()], limits: { maxRepeats: 99, ...limits } })
}

const grantsOf = (events: readonly RuntimeEvent[]) => ofType(events, 'model_call_started')

describe('web searches of a provider', () => {
  it('are held in money by the grant of each call that may search', async () => {
    const { result, events } = await search([searched(2), searched(1, { text: 'Done.' })], {
      ...{ maxWebSearches: 3, limits: { maxCostUsd: 1 } },
    })
    for (const { grant } of grantsOf(events)) {
      const { inputTokens = 0, outputTokens = 0, costUsd = 0 } = grant
      expect(grant.webSearches).toBe(3)
      expect(costUsd).toBeCloseTo((inputTokens + 10 * outputTokens) / 1e6 + 3 * usd, 9)
    }
    // Settled at what was searched, not at what was granted.
    expect(result.costUsd).toBeCloseTo((2 * (50 + 10 * 5)) / 1e6 + 3 * usd, 9)
  })

  it.each([
    [0.02, 1],
    [0.05, 1],
    [0.06, 2],
    [0.11, 3],
    [0.2, 4],
  ])('never pass %f dollars, where each call uses all five that it may', async (maxCostUsd, calls) => {
    const searching = billing(
      Array.from({ length: 12 }, () => searched(5)),
      'searching',
    )
    const closing = billing([{ text: 'Closed.', usage: tokens }], 'searching')
    const model: Model = {
      ...searching,
      maxWebSearches: 5,
      // The finalizing call allows no tool, so the provider searches nothing in it.
      stream: (request, context) =>
        (request.toolChoice.type === 'none' ? closing : searching).stream(request, context),
    }
    const { result, events } = await play({
      ...{ model, tools: [counting()], limits: { maxCostUsd, maxRepeats: 99 } },
    })
    expect(result).toMatchObject({ reason: 'cost_limit', text: 'Closed.' })
    expect(result.costUsd).toBeLessThanOrEqual(maxCostUsd)
    expect(modelCalls(events)).toBe(calls)
  })

  it('hold nothing in a call that allows no tool', async () => {
    const { events } = await search([searched(1), { text: 'Done.', usage: tokens }], {
      ...{ maxWebSearches: 2, limits: { maxCostUsd: 0.5, maxTurns: 2 } },
    })
    expect(grantsOf(events).map(({ toolChoice, grant }) => [toolChoice.type, grant.webSearches])).toEqual([
      ['auto', 2],
      ['none', undefined],
    ])
  })

  it('that nothing bounds are refused under a limit of money, and name the bound to set', async () => {
    const start = search([searched(9)], { maxWebSearches: 'unbounded', limits: { maxCostUsd: 1 } })
    await expect(start).rejects.toThrow(ConfigurationError)
    await expect(start).rejects.toThrow(/search the web any number of times.*max_uses.*max_tool_calls/)
  })

  it('that nothing bounds run where no limit counts money, with a grant that names none', async () => {
    const { result, events } = await search([searched(9, { text: 'Done.' })], {
      ...{ maxWebSearches: 'unbounded', limits: { maxTotalTokens: 100_000 } },
    })
    expect(result.costUsd).toBeCloseTo((50 + 10 * 5) / 1e6 + 9 * usd, 9)
    expect(grantsOf(events)[0]?.grant).not.toHaveProperty('costUsd')
  })

  it('that were announced by no bound are settled truthfully, and nothing is granted after them', async () => {
    const { result, events } = await search([searched(30), { text: 'More.' }], {
      limits: { maxCostUsd: 0.1 },
    })
    expect(result.costUsd).toBeCloseTo((50 + 10 * 5) / 1e6 + 30 * usd, 9)
    expect(result.reason).toBe('cost_limit')
    expect(modelCalls(events)).toBe(1)
  })

  it('count as all that were granted where a reply was cut off, marked as estimated', async () => {
    const cut: ScriptedReply = {
      text: 'I have found',
      usage: { ...tokens, webSearches: 1 },
      fail: 'truncated',
    }
    const { result, events } = await search([cut, { text: 'Done.', usage: tokens }], {
      ...{ maxWebSearches: 4, limits: { maxCostUsd: 1 } },
    })
    expect(ofType(events, 'usage_updated').find(({ estimated }) => estimated)).toMatchObject({
      ...{ usage: { webSearches: 4 }, estimated: ['webSearches'] },
    })
    expect(result.costUsd).toBeCloseTo((2 * (50 + 10 * 5)) / 1e6 + 4 * usd, 9)
  })

  it('count as reported where a reply was cut off and no limit counts money', async () => {
    const cut: ScriptedReply = {
      text: 'I have found',
      usage: { ...tokens, webSearches: 1 },
      fail: 'truncated',
    }
    const { result } = await search([cut, { text: 'Done.', usage: tokens }], {
      ...{ maxWebSearches: 4, limits: { maxTotalTokens: 100_000 } },
    })
    expect(result.usage.webSearches).toBe(1)
  })

  it('that a grant leaves out are found by the audit and by the independent judge', async () => {
    const { events } = await search([searched(1, { text: 'Done.' })], {
      ...{ maxWebSearches: 3, limits: { maxCostUsd: 1 } },
    })
    const without = events.map((event): RuntimeEvent => {
      if (event.type !== 'model_call_started') return event
      const { webSearches: _none, costUsd = 0, ...grant } = event.grant
      return { ...event, grant: { ...grant, costUsd: costUsd - 3 * usd } }
    })
    expect(() => auditAll(events)).not.toThrow()
    expect(() => auditAll(without)).toThrow(LawBrokenError)
    expect(() => auditAll(without)).toThrow('0 web searches are granted, and 3 may run')
    expect(checkBudgets([without]).map(({ law, what }) => [law, what])).toEqual([
      [9, expect.stringContaining('dollars are granted for')],
    ])
  })
})
