import { describe, expect, it } from 'vitest'
import { toAmounts, noAmounts } from '../src/projection/run-accumulator.ts'
import type { Shares } from '../src/projection/run-summary.ts'
import { toTimedShares, TotalsAccumulator } from '../src/projection/stored-run.ts'

const model = { provider: 'p', api: 'a', modelId: 'm' }
const line = { hour: 5, agent: 'clerk', model, calls: 2, amounts: toAmounts({ inputTokens: 7 }, 0.5) }
const session = {
  sessionId: 'ann',
  turns: 3,
  toolCalls: 4,
  amounts: toAmounts({ outputTokens: 9 }, undefined),
}
const shares: Shares = { spending: [line], session }
const spent = { hour: 5, agent: 'clerk', provider: 'p', api: 'a', model_id: 'm' }

describe('what totals gain and lose', () => {
  it('is nothing at first', () => {
    expect(new TotalsAccumulator().change).toEqual({ sessions: [], spending: [] })
    expect(new TotalsAccumulator().sessionKeys).toEqual([])
  })

  it('is what a run adds, with the times of its session', () => {
    const totals = new TotalsAccumulator()
    totals.add({ shares, startedAt: 10, lastAt: 20 })
    const own = { ...session.amounts, session_id: 'ann', runs: 1, turns: 3, tool_calls: 4 }
    expect(totals.change).toStrictEqual({
      sessions: [{ ...own, started_at: 10, last_at: 20 }],
      spending: [{ ...line.amounts, ...spent, calls: 2 }],
    })
    expect(totals.sessionKeys).toEqual(['ann'])
    totals.add({ shares, startedAt: 15, lastAt: 18 })
    totals.within('ann', { started_at: 12, last_at: 30 })
    expect(totals.change.sessions).toMatchObject([
      { runs: 2, turns: 6, tool_calls: 8, output_tokens: 18, started_at: 10, last_at: 30 },
    ])
    expect(totals.change.spending).toMatchObject([{ calls: 4, input_tokens: 14, cost_nano: 1e9 }])
  })

  it('is what a run no longer adds, and the times that are left', () => {
    const totals = new TotalsAccumulator()
    totals.remove({ shares })
    expect(totals.change).toMatchObject({
      sessions: [
        { runs: -1, turns: -3, tool_calls: -4, output_tokens: -9, unpriced: -1, started_at: 0, last_at: 0 },
      ],
      spending: [{ calls: -2, input_tokens: -7, cost_nano: -5e8 }],
    })
    totals.within('ann', { started_at: 40, last_at: 50 })
    expect(totals.change.sessions).toMatchObject([{ runs: -1, started_at: 40, last_at: 50 }])
  })

  it('is nothing of a line that stays as it was', () => {
    const totals = new TotalsAccumulator()
    totals.add({ shares, startedAt: 10, lastAt: 20 })
    totals.remove({ shares })
    expect(totals.change.spending).toEqual([])
    const reported = { ...line, amounts: toAmounts({ inputTokens: 8 }, 0.5) }
    totals.add({ shares: { spending: [reported] }, startedAt: 10, lastAt: 20 })
    totals.remove({ shares: { spending: [line] } })
    expect(totals.change.spending).toMatchObject([{ ...spent, calls: 0, input_tokens: 1 }])
    totals.add({
      shares: { spending: [{ ...line, amounts: noAmounts, calls: 1, hour: 6 }] },
      startedAt: 1,
      lastAt: 1,
    })
    expect(totals.change.spending).toMatchObject([{ hour: 5 }, { ...noAmounts, hour: 6, calls: 1 }])
  })

  it('is of a row each for names of each kind', () => {
    const totals = new TotalsAccumulator()
    const names = { agent: '"a"', model: { provider: '"p"', api: '"i"', modelId: '"m"' } }
    const run = { spending: [{ ...line, ...names }], session: { ...session, sessionId: '"ann"' } }
    totals.add({ shares: run, startedAt: 1, lastAt: 1 })
    totals.within('"\\"ann\\""', { started_at: 2, last_at: 2 })
    expect(totals.change).toMatchObject({
      sessions: [{ session_id: '"\\"ann\\""', started_at: 1, last_at: 2 }],
      spending: [{ agent: '"\\"a\\""', provider: '"\\"p\\""', api: '"\\"i\\""', model_id: '"\\"m\\""' }],
    })
  })

  it('is without times for a run that cannot be read', () => {
    const summary = { status: 'unreadable' } as unknown as Parameters<typeof toTimedShares>[0]['summary']
    expect(toTimedShares({ summary, shares })).toStrictEqual({ shares, startedAt: 0, lastAt: 0 })
    const sound = { startedAt: 4, lastAt: 5 } as unknown as typeof summary
    expect(toTimedShares({ summary: sound, shares })).toStrictEqual({ shares, startedAt: 4, lastAt: 5 })
  })
})
