import { describe, expect, it } from 'vitest'
import { from, Observable } from 'rxjs'
import type { Limits, RuntimeEvent, Tool } from '@tallystick/core'
import type { ToolSignal, ToolSpending } from '@tallystick/core/vocabulary'
import { checkBudgets, checkLaws, testTool } from '@tallystick/testkit'
import { auditAll } from '../src/machine/laws.ts'
import { billing, look, play } from './grants-stage.ts'

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
