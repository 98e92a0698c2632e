import { describe, expect, it } from 'vitest'
import type { Limits } from '@tallystick/core'
import type { Price } from '@tallystick/core/vocabulary'
import { computeFinalizingNeeds, grantModelCall, type PlannedCall } from '../src/machine/budget.ts'
import type { RunState } from '../src/machine/state.ts'
import { idle } from './actions.ts'

const price: Price = { inputUsd: 1, outputUsd: 10 }
const free: Price = { inputUsd: 1, outputUsd: 0 }
const million = 1_000_000

/** A call of 100 input tokens that begins a turn, and after which nothing else is needed. */
const plan = (more: Partial<PlannedCall> = {}): PlannedCall => ({
  ...{ price: undefined, inputTokens: 100, startsTurn: true, finalizing: false, keepsFinalizing: false },
  ...more,
})
const granted = (limits: Limits, more: Partial<PlannedCall> = {}, state: Partial<RunState> = {}): unknown => {
  const run = idle(limits, state)
  return grantModelCall(run, run.at, plan(more))
}

describe('what a model call is granted', () => {
  it.each<readonly [string, Limits, Partial<PlannedCall>, object]>([
    ['no bound without a limit', {}, {}, { turns: 1, inputTokens: 100 }],
    ['no turn for another attempt', {}, { startsTurn: false }, { turns: 0, inputTokens: 100 }],
    ['its own bound', {}, { maxOutputTokens: 50 }, { turns: 1, inputTokens: 100, outputTokens: 50 }],
    ['what all tokens leave', { maxTotalTokens: 150 }, {}, { turns: 1, inputTokens: 100, outputTokens: 50 }],
    [
      'its own bound, where less than is left',
      { maxTotalTokens: 150 },
      { maxOutputTokens: 20 },
      { turns: 1, inputTokens: 100, outputTokens: 20 },
    ],
    [
      'what the output leaves',
      { maxTotalOutputTokens: 16 },
      {},
      { turns: 1, inputTokens: 100, outputTokens: 16 },
    ],
    ['all, where the input fits', { maxTotalInputTokens: 100 }, {}, { turns: 1, inputTokens: 100 }],
    [
      'what the money pays for',
      { maxCostUsd: 605 / million },
      { price },
      { turns: 1, inputTokens: 100, outputTokens: 50, costUsd: 600 / million },
    ],
    [
      'its searches, and their money',
      { maxCostUsd: 1 },
      { price: { ...price, webSearchUsd: 0.1 }, maxWebSearches: 3, maxOutputTokens: 20 },
      { turns: 1, inputTokens: 100, outputTokens: 20, webSearches: 3, costUsd: expect.closeTo(0.3003, 9) },
    ],
    [
      'searches without a bound, and so no money',
      {},
      { price: { ...price, webSearchUsd: 0.1 }, maxWebSearches: 'unbounded', maxOutputTokens: 20 },
      { turns: 1, inputTokens: 100, outputTokens: 20 },
    ],
    [
      'the money of its input, where output is free',
      {},
      { price: free },
      { turns: 1, inputTokens: 100, costUsd: 100 / million },
    ],
    ['no money, where output is not bounded', {}, { price }, { turns: 1, inputTokens: 100 }],
    [
      'half of what is left, where an answer is to follow',
      { maxTotalTokens: 2 * 100 + 256 + 100 },
      { keepsFinalizing: true },
      { turns: 1, inputTokens: 100, outputTokens: 50 },
    ],
    [
      'output beside that of the answer',
      { maxTotalOutputTokens: 256 + 16 },
      { keepsFinalizing: true },
      { turns: 1, inputTokens: 100, outputTokens: 16 },
    ],
    [
      'output that the answer can read',
      { maxTotalInputTokens: 2 * 100 + 20 },
      { keepsFinalizing: true },
      { turns: 1, inputTokens: 100, outputTokens: 20 },
    ],
    ['the last turn but one', { maxTurns: 2 }, { keepsFinalizing: true }, { turns: 1, inputTokens: 100 }],
  ])('is %s', (_name, limits, more, grant) => {
    expect(granted(limits, more)).toEqual(grant)
  })

  it.each<readonly [string, Limits, Partial<PlannedCall>, object]>([
    ['turns', { maxTurns: 0 }, {}, { limit: 'maxTurns', max: 0, used: 0 }],
    [
      'turns for the answer',
      { maxTurns: 1 },
      { keepsFinalizing: true },
      { limit: 'maxTurns', max: 1, used: 0, held: 1 },
    ],
    ['tokens', { maxTotalTokens: 115 }, {}, { limit: 'maxTotalTokens', max: 115, used: 0 }],
    [
      'tokens for the answer',
      { maxTotalTokens: 487 },
      { keepsFinalizing: true },
      { limit: 'maxTotalTokens', max: 487, used: 0, held: 356 },
    ],
    ['output', { maxTotalOutputTokens: 15 }, {}, { limit: 'maxTotalOutputTokens', max: 15, used: 0 }],
    [
      'output for the answer',
      { maxTotalOutputTokens: 271 },
      { keepsFinalizing: true },
      { limit: 'maxTotalOutputTokens', max: 271, used: 0, held: 256 },
    ],
    ['input', { maxTotalInputTokens: 99 }, {}, { limit: 'maxTotalInputTokens', max: 99, used: 0 }],
    [
      'input for the answer',
      { maxTotalInputTokens: 215 },
      { keepsFinalizing: true },
      { limit: 'maxTotalInputTokens', max: 215, used: 0, held: 100 },
    ],
    ['money', { maxCostUsd: 259 / million }, { price }, { limit: 'maxCostUsd', max: 259 / million, used: 0 }],
    [
      'money for the input alone',
      { maxCostUsd: 100 / million },
      { price: free },
      { limit: 'maxCostUsd', max: 100 / million, used: 0 },
    ],
    ['money, as the price is unknown', { maxCostUsd: 1 }, {}, { limit: 'maxCostUsd', max: 1, used: 0 }],
    [
      'money, as searches have no bound',
      { maxCostUsd: 1 },
      { price: { ...price, webSearchUsd: 0.1 }, maxWebSearches: 'unbounded' },
      { limit: 'maxCostUsd', max: 1, used: 0 },
    ],
  ])('is nothing where a limit leaves too little: %s', (_name, limits, more, finding) => {
    expect(granted(limits, more)).toEqual(finding)
  })

  it('takes what is dearest for input, and the dearer rates of a long one', () => {
    const cached = { ...price, cacheWriteUsd: 2, cacheWriteLongUsd: 3 }
    const costUsd = (300 + 20 * 10) / million
    expect(granted({}, { price: cached, maxOutputTokens: 20 })).toMatchObject({ costUsd })
    expect(granted({}, { price: { ...cached, cacheWriteLongUsd: 1 }, maxOutputTokens: 20 })).toMatchObject({
      costUsd: (200 + 200) / million,
    })
    const long = { ...price, longInput: [{ aboveInputTokens: 99, inputUsd: 5, outputUsd: 50 }] }
    expect(granted({}, { price: long, maxOutputTokens: 20 })).toMatchObject({
      costUsd: (500 + 1_000) / million,
    })
    expect(granted({}, { price: long, inputTokens: 99, maxOutputTokens: 20 })).toMatchObject({
      costUsd: (99 + 200) / million,
    })
  })

  it('pays for the answer, too: for its input, its output, and for reading what this call wrote', () => {
    const needed = 100 + 100 + 256 * 10
    const maxCostUsd = (needed + 20 * 11) / million
    expect(granted({ maxCostUsd }, { price, keepsFinalizing: true })).toMatchObject({
      outputTokens: expect.toSatisfy((most: number) => most === 20 || most === 19),
    })
    expect(granted({ maxCostUsd: needed / million }, { price, keepsFinalizing: true })).toMatchObject({
      limit: 'maxCostUsd',
      held: 2_660 / million,
    })
  })

  it('ends with the time of the run, of which the answer has the last', () => {
    const limits: Limits = { maxDurationMs: 10_000 }
    const state = idle(limits)
    const upAt = state.startedAt + state.waitedMs + 10_000
    const at = (now: number, finalizing: boolean): unknown => grantModelCall(state, now, plan({ finalizing }))
    expect(at(upAt - 2_501, false)).toMatchObject({ turns: 1 })
    expect(at(upAt - 2_500, false)).toEqual({ limit: 'maxDurationMs', max: 10_000, used: 7_500, held: 2_500 })
    expect(at(upAt - 1, true)).toMatchObject({ turns: 1 })
    expect(at(upAt, true)).toMatchObject({ limit: 'maxDurationMs', used: 10_000 })
  })
})

describe('what a run needs for its answer', () => {
  it('is kept where a limit lets it write one', () => {
    const state = idle({}, { contextTokens: 100 })
    const needs = { turns: 1, tokens: 356, inputTokens: 100, outputTokens: 256 }
    expect(computeFinalizingNeeds(state)).toEqual(needs)
    const definition = { ...state.definition, price }
    expect(computeFinalizingNeeds({ ...state, definition })).toEqual({ ...needs, costUsd: 2_660 / million })
    expect(computeFinalizingNeeds({ ...state, limits: { onLimit: 'stop' } })).toEqual({})
    expect(computeFinalizingNeeds({ ...state, limits: { onLimit: 'ask' } })).toEqual({})
  })
})
