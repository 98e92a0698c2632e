import { describe, expect, it } from 'vitest'
import type { Limits } from '@tallystick/core'
import { deriveChildRunId, type ChildTotals, type Grant } from '@tallystick/core/vocabulary'
import { given } from '@tallystick/testkit'
import {
  assumeChildTotals,
  computeLeft,
  findGrantFault,
  grantChild,
  limitChild,
  sumSpent,
} from '../src/machine/budget.ts'
import type { Call, RunState, StreamingState } from '../src/machine/state.ts'
import { idle } from './actions.ts'
import { started, settled, working } from './open-calls.ts'
import { begun, called, callId, failure, runId } from './pages.ts'

describe('what is left', () => {
  const totals = (state: RunState): RunState['totals'] => ({
    ...state.totals,
    ...{ turns: 2, toolCalls: 3, children: { runs: 1, turns: 4, toolCalls: 5 } },
    ...{ usage: { inputTokens: 60, outputTokens: 30 }, costUsd: 0.5 },
  })
  const limits: Limits = {
    ...{
      maxTurns: 10,
      maxToolCalls: 10,
      maxTotalTokens: 200,
      maxTotalInputTokens: 100,
      maxTotalOutputTokens: 100,
    },
    maxCostUsd: 2,
  }

  it('is what neither the run nor its child runs have spent', () => {
    const state = idle(limits)
    expect(sumSpent({ ...state, totals: totals(state) })).toEqual({
      ...{ turns: 6, toolCalls: 8, tokens: 90, inputTokens: 60, outputTokens: 30, costUsd: 0.5 },
    })
    expect(computeLeft({ ...state, totals: totals(state) })).toEqual({
      ...{ turns: 4, toolCalls: 2, tokens: 110, inputTokens: 40, outputTokens: 70, costUsd: 1.5 },
    })
    expect(computeLeft(idle()).turns).toBe(Infinity)
    expect(computeLeft({ ...state, totals: totals(state), limits: { maxTurns: 5 } }).turns).toBe(0)
  })

  it('is less by what a model call has not used of its grant', () => {
    const grant = { turns: 1, inputTokens: 20, outputTokens: 10, costUsd: 0.2 }
    const state = given([...begun({ limits }), called(1, 1, { grant })]).state as StreamingState
    expect(computeLeft(state)).toMatchObject({
      turns: 9,
      tokens: 170,
      inputTokens: 80,
      outputTokens: 90,
      costUsd: 1.8,
    })
    const used = {
      ...state.totals,
      usage: { inputTokens: 25 },
      latestUsage: { inputTokens: 25 },
      costUsd: 0.05,
    }
    expect(computeLeft({ ...state, totals: used })).toMatchObject({
      ...{ tokens: 200 - 25 - 5, inputTokens: 75, outputTokens: 90, costUsd: 2 - 0.05 - (0.2 - 0.05) },
    })
    const failed = { ...state, attempt: { ...state.attempt, failed: { failure: failure() } } }
    expect(computeLeft(failed)).toMatchObject({ turns: 9, tokens: 200 })
  })

  it('is less by what a summary and child runs are granted, as long as they are under way', () => {
    const grant: Grant = { turns: 2, toolCalls: 3, tokens: 50 }
    const state = idle(limits)
    const compacting = {
      model: state.definition.model,
      replacedMessages: 1,
      grant: { inputTokens: 20, outputTokens: 10 },
    }
    expect(computeLeft({ ...state, compacting })).toMatchObject({ turns: 10, tokens: 170, inputTokens: 80 })
    const left = (call: Partial<Call>) => computeLeft(working([call], { limits }))
    expect(left({ ...started, child: 'a', grant })).toMatchObject({ turns: 7, toolCalls: 7, tokens: 150 })
    for (const call of [
      { ...settled(), child: 'a', grant },
      { ...started, child: 'a' },
      { ...started, grant },
    ]) {
      expect(left(call)).toMatchObject({ turns: 9, toolCalls: 10, tokens: 200 })
    }
  })

  it('is what a grant may hold, and it bounds all that is limited', () => {
    const fault = (
      grant: Grant,
      spender: 'model_call' | 'child_run' = 'child_run',
      more: Limits = { maxTurns: 3, maxToolCalls: 4 },
    ) => findGrantFault(idle(more), grant, spender)
    expect(fault({ turns: 3, toolCalls: 4 })).toBeUndefined()
    expect(fault({ turns: 4, toolCalls: 4 })).toBe('4 of maxTurns (3) are granted, and 3 are left')
    expect(fault({ turns: 3 })).toBe('the grant does not bound what maxToolCalls limits to 4')
    expect(fault({})).toBe('the grant does not bound what maxTurns limits to 3')
    expect(fault({}, 'model_call')).toBeUndefined()
    expect(fault({}, 'model_call', { maxTotalTokens: 9 })).toBe(
      'the grant does not bound what maxTotalTokens limits to 9',
    )
    expect(fault({ inputTokens: 4, outputTokens: 5 }, 'model_call', { maxTotalTokens: 9 })).toBeUndefined()
    expect(fault({ inputTokens: 4 }, 'model_call', { maxTotalTokens: 9 })).toContain('does not bound')
    // Sums of dollars are rounded.
    expect(fault({ costUsd: 2 + 1e-9 }, 'model_call', { maxCostUsd: 2 })).toBeUndefined()
    expect(fault({ costUsd: 2 + 1e-8 }, 'model_call', { maxCostUsd: 2 })).toContain('are granted')
  })
})

describe('what a child run is granted', () => {
  const limits: Limits = { maxTurns: 12, maxToolCalls: 11, onLimit: 'stop' }
  const grantOf = (calls: readonly Partial<Call>[], more: Limits = limits): unknown => {
    const state = working(calls, { limits: more })
    return grantChild(state, state.at)
  }
  const child = { child: 'clerk' } as const

  it('is an even share of all that is left beside what its parent needs', () => {
    expect(grantOf([child])).toEqual({ turns: 10, toolCalls: 10 })
    expect(grantOf([child, child])).toEqual({ turns: 5, toolCalls: 4 })
    expect(grantOf([child, {}])).toEqual({ turns: 10, toolCalls: 9 })
    expect(grantOf([child, { status: 'awaiting_approval' }, { status: 'to_ask', ...child }])).toEqual({
      turns: 5,
      toolCalls: 4,
    })
    expect(grantOf([child, started, settled()])).toEqual({ turns: 10, toolCalls: 10 })
    expect(grantOf([child], {})).toEqual({})
    expect(grantOf([child], { maxCostUsd: 0.3, onLimit: 'stop' })).toEqual({ costUsd: 0.3 })
  })

  it.each<readonly [Limits, string | undefined]>([
    [{ maxTurns: 2 }, 'maxTurns'],
    [{ maxTurns: 3 }, undefined],
    [{ maxToolCalls: 1 }, undefined],
    [{ maxTotalTokens: 31 }, 'maxTotalTokens'],
    [{ maxTotalTokens: 32 }, undefined],
    [{ maxTotalInputTokens: 15 }, 'maxTotalInputTokens'],
    [{ maxTotalInputTokens: 16 }, undefined],
    [{ maxTotalOutputTokens: 15 }, 'maxTotalOutputTokens'],
    [{ maxTotalOutputTokens: 16 }, undefined],
    [{ maxCostUsd: 0 }, 'maxCostUsd'],
  ])('is something that is worth a start: %o leaves too little of %s', (own, limit) => {
    const grant = grantOf([child], { onLimit: 'stop', ...own })
    expect((grant as { readonly limit?: string }).limit).toBe(limit)
  })

  it('has the time of its parent', () => {
    const timed: Limits = { maxDurationMs: 10_000, onLimit: 'stop' }
    const state = working([child], { limits: timed })
    const upAt = state.startedAt + state.waitedMs + 10_000
    expect(grantChild(state, upAt - 1)).toEqual({ durationMs: 1 })
    expect(grantChild(state, upAt)).toEqual({ limit: 'maxDurationMs' })
  })

  it('bounds its own limits, and its grace time is shorter than that of its parent', () => {
    const grant: Grant = { turns: 5, toolCalls: 4, tokens: 90, durationMs: 1_000 }
    expect(limitChild(grant, { maxTurns: 3, maxRepeats: 2 }, {})).toEqual({
      ...{
        maxTurns: 3,
        maxRepeats: 2,
        maxToolCalls: 4,
        maxTotalTokens: 90,
        maxDurationMs: 1_000,
        graceMs: 1_500,
      },
    })
    expect(limitChild({}, { graceMs: 90 }, { graceMs: 1_000 })).toEqual({ graceMs: 90 })
    expect(limitChild({ durationMs: 50 }, { maxDurationMs: 40, graceMs: 900 }, { graceMs: 1_001 })).toEqual({
      ...{ maxDurationMs: 40, graceMs: 750 },
    })
  })

  it('counts whole where its own totals cannot be had', () => {
    const whole = (grant: Grant) => {
      const state = working([{ ...started, ...child, grant }])
      return assumeChildTotals(state, state.calls[0]!)
    }
    const of = { runId: deriveChildRunId(runId, callId(1)) }
    expect(whole({})).toEqual({
      ...{ ...of, turns: 0, toolCalls: 0, usage: { inputTokens: 0, outputTokens: 0 }, estimated: true },
    })
    expect(whole({ turns: 2, toolCalls: 3, tokens: 90, costUsd: 0.5 })).toEqual({
      ...{ ...of, turns: 2, toolCalls: 3, usage: { inputTokens: 90, outputTokens: 0 }, costUsd: 0.5 },
      estimated: true,
    })
    expect(whole({ tokens: 90, outputTokens: 20 }).usage).toEqual({ inputTokens: 70, outputTokens: 20 })
    expect(whole({ tokens: 9, outputTokens: 20 }).usage).toEqual({ inputTokens: 0, outputTokens: 20 })
    expect(whole({ tokens: 90, inputTokens: 5 }).usage).toEqual({ inputTokens: 5, outputTokens: 85 })
    expect(whole({ inputTokens: 5 }).usage).toEqual({ inputTokens: 5, outputTokens: 0 })
  })

  it('counts whole where it has not ended, and no less than it has used', () => {
    const left = (grant: Grant, known?: ChildTotals) =>
      assumeChildTotals({ runId }, { toolCallId: callId(1), grant }, known)
    const of = { runId: deriveChildRunId(runId, callId(1)) }
    const known = {
      ...of,
      turns: 1,
      toolCalls: 2,
      usage: { inputTokens: 60, outputTokens: 20, webSearches: 1 },
    }
    expect(left({ turns: 3 })).toEqual({
      ...{ ...of, turns: 3, toolCalls: 0, usage: { inputTokens: 0, outputTokens: 0 }, estimated: true },
    })
    expect(left({}, known)).toEqual({ ...known, estimated: true })
    expect(left({ turns: 3, toolCalls: 1, tokens: 100, costUsd: 2 }, { ...known, costUsd: 0.5 })).toEqual({
      ...{ ...of, turns: 3, toolCalls: 2, costUsd: 2, estimated: true },
      // Both together are what was granted, and not more.
      usage: { inputTokens: 80, outputTokens: 20, webSearches: 1 },
    })
    expect(left({ costUsd: 0.1 }, { ...known, costUsd: 0.5 })).toMatchObject({ costUsd: 0.5 })
    expect(left({ inputTokens: 90, outputTokens: 30 }, known).usage).toMatchObject({
      ...{ inputTokens: 90, outputTokens: 30 },
    })
  })
})
