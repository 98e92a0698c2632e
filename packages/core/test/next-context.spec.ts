import { describe, expect, it } from 'vitest'

import type { Limits, Message } from '@tallystick/core'
import type { Fact, FactOf, Price } from '@tallystick/core/vocabulary'
import { given, sampleMessage } from '@tallystick/testkit'
import { createHistory } from '../src/machine/history.ts'
import { nextAction } from '../src/machine/next-action.ts'
import { compactAfterOverflow, compactBeforeCall } from '../src/machine/compaction.ts'
import type { Compaction } from '../src/machine/rules.ts'
import type { FailedAttempt, RunState } from '../src/machine/state.ts'
import { begun, called, failure, replyFinished, wrote } from './pages.ts'

const model = { provider: 'scripted', api: 'script', modelId: 'small' }
const messages: { readonly [letter: string]: Message } = {
  u: sampleMessage('What is the weather in Seoul?'),
  a: {
    role: 'assistant',
    parts: [{ type: 'text', text: 'x'.repeat(700) }],
    model,
    stopReason: 'end',
    partial: false,
  },
  t: { role: 'tool', results: [] },
}

/** A run in turn 3 whose history has these messages: `u` for the user's, `a` for the model's, `t` for results. */
function talk(letters: string, more: Partial<RunState> = {}): RunState {
  const history = createHistory(letters.split('').map((letter) => messages[letter]!))
  const exchangeFrom = Math.max(0, letters.lastIndexOf('u'))
  return {
    ...given(begun()).state!,
    turn: 3,
    history,
    exchangeFrom,
    contextTokens: 5_000,
    ...more,
  } as RunState
}

const replaced = (fact: Fact | undefined) =>
  fact && 'replacedMessages' in fact ? fact.replacedMessages : undefined

describe('before a call', () => {
  const shortened = (state: RunState, compaction: Partial<Compaction> = {}) =>
    compactBeforeCall(state, 0, {
      compaction: { maxContextTokens: 1_000, keepMessages: 2, ...compaction },
    })

  it.each([
    ['uatatat', 2, 5],
    ['uatatat', 3, 3],
    ['uatatat', 1, 5],
    ['uatatat', 0, 7],
    ['uatatat', 5, undefined],
    ['uatatat', 7, undefined],
    ['uatatat', 50, undefined],
    ['uaua', 2, 2],
    ['uaua', 1, 3],
    // A summary and the task: another summary would say nothing less.
    ['uuat', 2, undefined],
    ['uua', 1, undefined],
    ['uuaa', 1, 3],
    ['aaaa', 2, 2],
  ] as const)('%s, of which %i are to stay, loses its first %s', (letters, keepMessages, count) => {
    expect(replaced(shortened(talk(letters), { keepMessages }))).toBe(count)
  })

  it('nothing is shortened without a compaction, up to its maximum, or twice in a turn', () => {
    expect(compactBeforeCall(talk('uatatat'), 0, {})).toBeUndefined()
    expect(shortened(talk('uatatat', { contextTokens: 1_000 }))).toBeUndefined()
    expect(shortened(talk('uatatat', { contextTokens: 1_001 }))).toBeDefined()
    expect(shortened(talk('uatatat', { compactedTurn: 3 }))).toBeUndefined()
    expect(shortened(talk('uatatat', { compactedTurn: 2 }))).toBeDefined()
  })

  it('nothing is replaced by what is as long', () => {
    const { tokensAfter = 0 } = shortened(talk('uatatat')) as FactOf<'context_compacted'>
    const limits = { maxContextTokens: 10 }
    expect(shortened(talk('uatatat', { contextTokens: tokensAfter }), limits)).toBeUndefined()
    expect(shortened(talk('uatatat', { contextTokens: tokensAfter + 1 }), limits)).toMatchObject({
      tokensAfter,
    })
  })

  it('a model sums up only while there is time for work', () => {
    const state = talk('uatatat', { limits: { maxDurationMs: 10_000 } })
    const definition = { ...state.definition, summarizer: { model, instructions: 'Sum up.' } }
    const compaction = { maxContextTokens: 1_000, keepMessages: 2 }
    const upAt = state.startedAt + state.waitedMs + 7_500
    const started = (now: number) => compactBeforeCall({ ...state, definition }, now, { compaction })?.type
    expect([started(upAt - 1), started(upAt)]).toEqual(['compaction_started', undefined])
  })

  it('the function that sums up is shown what goes, and its words are in the summary', () => {
    const summarize = (gone: readonly Message[]) => gone.map(({ role }) => role).join(' ')
    expect(shortened(talk('uatatat'), { summarize })).toMatchObject({
      ...{ replacedMessages: 5, taskAt: 0, tokensBefore: 5_000 },
      summary: sampleMessage('user assistant tool assistant tool'),
    })
  })
})

describe('when the provider calls a context too long', () => {
  const failed: FailedAttempt = { failure: failure({ class: 'context_overflow', retryable: false }) }
  const shortened = (letters: string, keepMessages: number, more: Partial<RunState> = {}, how = failed) =>
    replaced(
      compactAfterOverflow(talk(letters, more), 0, how, {
        compaction: { maxContextTokens: 1e9, keepMessages },
      }),
    )

  it.each([
    ['uatatat', 2, 5],
    ['uatatat', 4, 3],
    // Fewer are there than were to stay: half as many, and half of those.
    ['uatatat', 8, 3],
    ['uatatat', 16, 3],
    ['ua', 8, undefined],
    ['au', 1, 1],
    ['au', 8, 1],
    ['aua', 0, 3],
    ['u', 0, undefined],
    ['uat', 1, undefined],
  ] as const)('%s, of which %i were to stay, loses its first %s', (letters, keep, count) => {
    expect(shortened(letters, keep)).toBe(count)
  })

  it.each([
    // Half of the rest stays, then half of that.
    ['auatatatat', 8, 4],
    ['auatatatat', 2, 8],
    ['auatatatat', 0, 10],
    ['auat', 8, undefined],
    ['auata', 1, 4],
    ['a', 0, undefined],
  ] as const)('again, %s, of which %i were to stay, loses its first %s', (letters, keep, count) => {
    expect(shortened(letters, keep, { compactedTurn: 3 })).toBe(count)
  })

  it('nothing is shortened without a compaction, for another failure, or where that was tried already', () => {
    expect(compactAfterOverflow(talk('uatatat'), 0, failed, {})).toBeUndefined()
    expect(shortened('uatatat', 2, {}, { failure: failure() })).toBeUndefined()
    expect(shortened('uatatat', 2, {}, { ...failed, shortened: true })).toBeUndefined()
  })
})

describe('while a model sums up', () => {
  const price: Price = { inputUsd: 1, outputUsd: 10 }
  const started: FactOf<'compaction_started'> = {
    ...{ type: 'compaction_started', turn: 1, model, replacedMessages: 1, requestDigest: 'd' },
    grant: { turns: 0, inputTokens: 300, outputTokens: 500 },
  }
  const resumed: Fact = { type: 'run_resumed', turn: 1, why: 'crash', inDoubt: [] }
  const long = { stopReason: 'paused', parts: [{ type: 'text', text: 'Hm.' }] } as const

  /** A run whose summary is being written; where its process stopped, that is on record. */
  function summing(limits: Limits, { isInterrupted = true, isPriced = false, more = {} } = {}): RunState {
    const page = [...begun({ limits }), called(), wrote('Hm.'), replyFinished([], long), started]
    const { definition, ...state } = given([...page, ...(isInterrupted ? [resumed] : [])]).state!
    const summarizer = { model, ...(isPriced && { price }) }
    return { ...state, definition: { ...definition, summarizer }, ...more } as RunState
  }
  const next = (state: RunState, now = state.at) => nextAction(state, now)
  const again = { type: 'compaction_started', model, replacedMessages: 1 }
  const givenUp = { type: 'context_compacted', replacedMessages: 1, abandoned: true }

  it('the run waits for it, until its time for work is up', () => {
    const waiting = summing({}, { isInterrupted: false })
    expect(next(waiting)).toEqual({ kind: 'wait' })
    const timed = summing({ maxDurationMs: 10_000, onLimit: 'stop' }, { isInterrupted: false })
    const wakeAt = timed.startedAt + timed.waitedMs + 10_000
    expect(next(timed, wakeAt - 1)).toEqual({ kind: 'wait', wakeAt })
    expect(next(timed, wakeAt)).toMatchObject({ kind: 'compact', facts: [givenUp] })
  })

  it('a call whose process stopped is made again, and counts where a limit depends on it', () => {
    const calls = (state: RunState) => (next(state) as { readonly facts: readonly Fact[] }).facts
    expect(calls(summing({}))).toMatchObject([again])
    expect(calls(summing({}))[0]).not.toHaveProperty('interrupted')
    const usage = { inputTokens: 300, outputTokens: 0 }
    const [counted] = calls(summing({ maxTotalTokens: 9_000, onLimit: 'stop' }))
    expect(counted).toMatchObject(again)
    expect((counted as typeof started).interrupted).toEqual({ usage })
    const [priced] = calls(summing({ maxCostUsd: 1, onLimit: 'stop' }, { isPriced: true }))
    expect((priced as typeof started).interrupted).toEqual({ usage, costUsd: 300 / 1_000_000 })
  })

  it('a call that what is left does not pay for once more is given up, with what it took', () => {
    const facts = (maxTotalTokens: number) =>
      (next(summing({ maxTotalTokens, onLimit: 'stop' })) as { readonly facts: readonly Fact[] }).facts
    const [least] = facts(100_000) as readonly (typeof started)[]
    const needed = 300 + (least?.grant.inputTokens ?? 0) + 16
    // The call keeps enough for the answer: the same input and 256 tokens.
    const kept = (least?.grant.inputTokens ?? 0) + 256 + 16
    expect(facts(needed + kept)).toMatchObject([again])
    expect(facts(needed + kept - 1)).toMatchObject([
      { ...givenUp, usage: { inputTokens: 300, outputTokens: 0 } },
    ])
  })

  it('a call over which one process after the other stops is given up', () => {
    expect(next(summing({}, { more: { takeOvers: 5 } }))).toMatchObject({ facts: [again] })
    expect(next(summing({}, { more: { takeOvers: 6 } }))).toMatchObject({ facts: [givenUp] })
    const { facts } = next(summing({}, { more: { takeOvers: 6 } })) as { readonly facts: readonly Fact[] }
    expect(facts[0]).not.toHaveProperty('usage')
  })
})
