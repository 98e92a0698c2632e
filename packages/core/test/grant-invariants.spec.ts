import { describe, expect, it } from 'vitest'
import type { Fact, FactOf, Grant, ParentRef, Price } from '@tallystick/core/vocabulary'
import { sampleFacts, given, sampleRunId } from '@tallystick/testkit'
import { digestSummaryRequest } from '../src/machine/compaction.ts'
import { computeRequestDigest } from '../src/machine/request.ts'
import type { RunState, StreamingState } from '../src/machine/state.ts'
import { begun, called, runId, verdict } from './pages.ts'

describe('the grant of a model call', () => {
  const price: Price = { inputUsd: 1, outputUsd: 10, webSearchUsd: 0.01 }
  const idle = (more: Partial<RunState> = {}, definition: object = {}): RunState => {
    const state = given(begun({ limits: { maxTurns: 2, maxTotalTokens: 1_000 } })).state!
    return { ...state, definition: { ...state.definition, ...definition }, ...more } as RunState
  }
  const { model } = given(begun()).state!.definition
  const granted = (
    state: RunState,
    grant: Grant,
    more: Partial<FactOf<'model_call_started'>> = {},
    at = state.at,
  ): string => {
    const options = { model, toolChoice: { type: 'auto' as const }, ...more }
    const fact = called(1, 1, { ...options, grant })
    return verdict(state, { ...fact, requestDigest: computeRequestDigest(state, options) } as Fact, { at })
  }
  const whole: Grant = { turns: 1, inputTokens: 100, outputTokens: 50 }
  const most = { maxOutputTokens: 50 }

  it('is one turn, and as many output tokens as are asked for', () => {
    expect(granted(idle(), whole, most)).toBe('sound')
    expect(granted(idle(), { ...whole, turns: 2 }, most)).toMatch(
      /^9: attempt 1 of a turn is granted 2 turns/,
    )
    expect(granted(idle(), whole, { maxOutputTokens: 51 })).toMatch(
      /^9: 51 output tokens are asked for, and 50/,
    )
    expect(granted(idle(), { ...whole, inputTokens: 951 }, most)).toMatch(/^9: 1001 of maxTotalTokens/)
    expect(granted(idle(), { ...whole, inputTokens: 950 }, most)).toBe('sound')
  })

  it('of another attempt is not a turn', () => {
    const failed: Fact = {
      ...{ type: 'model_stream_failed', turn: 1, attempt: 1, retryAt: 0 },
      failure: { class: 'overloaded', message: 'Too busy.', retryable: true },
    }
    const state = given([...begun(), called(), failed]).state as StreamingState
    const options = { model, toolChoice: { type: 'auto' as const } }
    const again = (turns: number): string => {
      const fact = called(1, 2, { ...options, grant: { turns, inputTokens: 20 } })
      return verdict(state, { ...fact, requestDigest: computeRequestDigest(state, options) } as Fact)
    }
    expect([again(0), again(1)]).toEqual([
      'sound',
      expect.stringMatching(/^9: attempt 2 of a turn is granted 1/),
    ])
  })

  it('is given before the time of the run is up', () => {
    const state = idle({ limits: { maxDurationMs: 100 } })
    const deadline = state.startedAt + state.waitedMs + 100
    expect(granted(state, whole, most, deadline - 1)).toBe('sound')
    expect(granted(state, whole, most, deadline)).toBe('9: the time of the run is up')
    expect(granted(state, whole, most, state.at - 1)).toMatch(/^4: time falls from/)
  })

  it('pays for what it allows, at the price of the model', () => {
    const priced = idle({ limits: { maxCostUsd: 1 } }, { price })
    const costUsd = (100 + 50 * 10) / 1_000_000
    expect(granted(priced, { ...whole, costUsd }, most)).toBe('sound')
    expect(granted(priced, { ...whole, costUsd: costUsd * 0.999 }, most)).toMatch(
      /^9: .* dollars are granted for what costs/,
    )
    expect(granted(idle({ limits: { maxCostUsd: 1 } }), { ...whole, costUsd: 0 }, most)).toBe('sound')
    expect(granted(idle({ limits: {} }, { price }), whole, most)).toBe('sound')
  })

  it('names the web searches that its provider may run', () => {
    const searching = idle({}, { maxWebSearches: 3, price })
    expect(granted(searching, { ...whole, webSearches: 3 }, most)).toBe('sound')
    expect(granted(searching, { ...whole, webSearches: 2 }, most)).toMatch(
      /^9: 2 web searches are granted, and 3/,
    )
    expect(granted(searching, whole, most)).toMatch(/^9: 0 web searches are granted, and 3 may run/)
    expect(granted(searching, whole, { ...most, toolChoice: { type: 'none' } })).toBe('sound')
    expect(granted(idle({}, { maxWebSearches: 'unbounded' }), { ...whole, webSearches: 9 }, most)).toBe(
      'sound',
    )
  })

  it('of a finalizing call needs a met limit, and no choice of tools', () => {
    const metLimit = { limit: 'maxTurns', policy: 'finalize', at: 1 } as const
    const none = { ...most, toolChoice: { type: 'none' } } as const
    expect(granted(idle({ metLimit }), whole, { ...none, finalizing: true })).toBe('sound')
    expect(granted(idle({ metLimit }), whole, { ...most, finalizing: true })).toMatch(/^9: a finalizing call/)
    expect(granted(idle(), whole, { ...none, finalizing: true })).toMatch(/^9: a finalizing call/)
  })

  it('of a summary is given at the price of the summarizer, beside what an interrupted one took', () => {
    const summarizer = { model: { ...model, modelId: 'small' }, price }
    const summing = (
      state: RunState,
      grant: Grant,
      more: Partial<FactOf<'compaction_started'>> = {},
    ): string => {
      const call = { model: summarizer.model, replacedMessages: 1, maxOutputTokens: 50 }
      const fact = {
        type: 'compaction_started',
        turn: 0,
        ...call,
        grant,
        requestDigest: digestSummaryRequest(state, call),
        ...more,
      }
      return verdict(state, fact as Fact)
    }
    const grant: Grant = { turns: 0, inputTokens: 100, outputTokens: 50 }
    const priced = idle(
      { limits: { maxCostUsd: 1, maxTotalTokens: 1_000 } },
      { summarizer, price: { inputUsd: 0, outputUsd: 0 } },
    )
    const costUsd = (100 + 50 * 10) / 1_000_000
    expect(summing(priced, { ...grant, costUsd })).toBe('sound')
    expect(summing(priced, { ...grant, costUsd: costUsd / 2 })).toMatch(/^9: .* with small/)
    expect(summing(priced, { ...grant, costUsd }, { requestDigest: 'd' })).toMatch(
      /^7: the summary that the ledger rebuilds/,
    )
    const compacting = {
      model: summarizer.model,
      replacedMessages: 1,
      grant: { inputTokens: 900 },
      interrupted: true,
    } as const
    const again = { ...priced, compacting } as RunState
    const interrupted = { usage: { inputTokens: 850, outputTokens: 0 } }
    expect(summing(again, { ...grant, costUsd }, { interrupted })).toBe('sound')
    expect(
      summing(
        again,
        { ...grant, costUsd },
        { interrupted: { usage: { inputTokens: 851, outputTokens: 0 } } },
      ),
    ).toMatch(/^9: 150 of maxTotalTokens/)
    expect(summing(again, { ...grant, costUsd })).toBe('sound')
  })
})

describe('a limit of a child run', () => {
  it('is raised no higher than its parent granted', () => {
    const parent: ParentRef = { runId: sampleRunId(9), seq: 3, relation: 'child', grant: { turns: 5 } }
    const raised = (limit: 'maxTurns' | 'maxToolCalls', max: number): Fact => ({
      ...{ type: 'limit_raised', turn: 0, limit, max, by: 'ada' },
    })
    const child = { ...given(begun()).state!, parent }
    expect(verdict(child, raised('maxTurns', 5))).toBe('sound')
    expect(verdict(child, raised('maxTurns', 6))).toBe('9: maxTurns is raised to 6, and 5 are granted')
    expect(verdict(child, raised('maxToolCalls', 60))).toBe('sound')
    expect(verdict(given(begun()).state!, raised('maxTurns', 60))).toBe('sound')
  })
})

describe('the end of a run', () => {
  it('says what its events say', () => {
    const { state } = given(begun())
    const spent = {
      ...state!,
      totals: { ...state!.totals, turns: 2, toolCalls: 3, usage: { inputTokens: 5 }, costUsd: 0.5 },
    }
    const end = (more: object): string =>
      verdict(spent, {
        ...sampleFacts(runId).run_finished,
        ...{ turn: 0, turns: 2, toolCalls: 3, usage: { inputTokens: 5 }, costUsd: 0.5, ...more },
      })
    expect(end({})).toBe('sound')
    for (const more of [{ turns: 1 }, { toolCalls: 2 }])
      expect(end(more)).toMatch(/^6: the run says \d turns/)
    for (const more of [{ usage: {} }, { costUsd: 0.4 }, { costUsd: undefined }]) {
      expect(end(more)).toMatch(/^6: the run says another usage or cost/)
    }
  })
})
