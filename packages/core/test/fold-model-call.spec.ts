import { describe, expect, it } from 'vitest'
import type { Usage } from '@tallystick/core'
import type { Fact, FactOf } from '@tallystick/core/vocabulary'
import { given } from '@tallystick/testkit'
import { readMessages } from '../src/machine/history.ts'
import type { CollectingState, RunState, StreamingState } from '../src/machine/state.ts'
import {
  after,
  begun,
  called,
  callId,
  endedCall,
  failure,
  refusal,
  replyFinished,
  requested,
  wrote,
} from './pages.ts'

const streaming = [...begun(), called()]
const failed = (more: Partial<FactOf<'model_stream_failed'>> = {}): Fact => ({
  ...{ type: 'model_stream_failed', turn: 1, attempt: 1, failure: failure(), ...more },
})
const used = (usage: Usage, more: Partial<FactOf<'usage_updated'>> = {}): Fact => ({
  ...{ type: 'usage_updated', turn: 1, attempt: 1, usage, ...more },
})
const attemptOf = (state: RunState) => (state as StreamingState).attempt
const said = (text: string): Fact => replyFinished([], { stopReason: 'end', parts: [{ type: 'text', text }] })

describe('a model call that starts', () => {
  it('is a turn, and its next attempts are no further turns', () => {
    const state = after(begun(), called(1, 1, { maxOutputTokens: 9, change: { tools: [] } }))
    expect(state).toMatchObject({ phase: 'streaming', failures: 0, totals: { turns: 1 } })
    expect(attemptOf(state)).toMatchObject({
      number: 1,
      maxOutputTokens: 9,
      change: { tools: [] },
      drafts: [],
    })
    expect(state).not.toHaveProperty('model')
    const page = [...streaming, failed()]
    const { turnStartedAt } = given(page).state as StreamingState
    const again = after(page, called(1, 2))
    expect(again).toMatchObject({
      failures: 1,
      turnStartedAt,
      totals: { turns: 1 },
      model: { modelId: 'scripted-1' },
    })
    expect(attemptOf(again)).not.toHaveProperty('failed')
  })

  it('of another model has no failures yet', () => {
    const model = { provider: 'scripted', api: 'script', modelId: 'second' }
    expect(after([...streaming, failed()], called(1, 2, { model }))).toMatchObject({ failures: 0, model })
  })

  it('follows an attempt that has ended, by one', () => {
    expect(refusal(streaming, called(1, 2))).toContain('attempt 1 of turn 1 has not ended')
    expect(refusal([...streaming, failed()], called(1, 3))).toContain('attempt 3 where 2 is due')
    expect(refusal(begun(), called(0, 2))).toContain('attempt 2 where 1 is due')
  })

  it('settles what the attempts before it have used', () => {
    const page = [...streaming, used({ inputTokens: 5 }, { costUsd: 0.5 }), failed()]
    expect(after(page, called(1, 2)).totals).toMatchObject({
      ...{
        usage: { inputTokens: 5 },
        settledUsage: { inputTokens: 5 },
        latestUsage: {},
        settledCostUsd: 0.5,
      },
    })
    expect(after([...streaming, failed()], called(1, 2)).totals).not.toHaveProperty('settledCostUsd')
  })
})

describe('a report of usage', () => {
  it('replaces the one before it of its attempt', () => {
    const page = [...streaming, used({ inputTokens: 5 }, { costUsd: 0.5 }), failed(), called(1, 2)]
    const again = (more: object = {}) =>
      after(page, used({ outputTokens: 2 }, { attempt: 2, ...more })).totals
    expect(again()).toMatchObject({
      usage: { inputTokens: 5, outputTokens: 2 },
      latestUsage: { outputTokens: 2 },
    })
    expect(again().costUsd).toBe(0.5)
    expect(again({ costUsd: 0.25 }).costUsd).toBe(0.75)
    expect(after(streaming, used({}, { costUsd: 0.25 })).totals.costUsd).toBe(0.25)
    expect(after(streaming, used({})).totals).not.toHaveProperty('costUsd')
  })

  it('tells how long the conversation is, where the provider says so', () => {
    expect(attemptOf(after(streaming, used({}, { contextTokens: 7 }))).contextTokens).toBe(7)
    expect(attemptOf(after(streaming, used({})))).not.toHaveProperty('contextTokens')
  })
})

describe('a failed attempt', () => {
  it('counts as a failure of its model, unless its process stopped', () => {
    const state = after(streaming, failed({ retryAt: 7 })) as StreamingState
    expect(state).toMatchObject({ failures: 1, attempt: { failed: { failure: failure(), retryAt: 7 } } })
    expect(attemptOf(after(streaming, failed())).failed).toEqual({ failure: failure() })
    const stopped = failed({ cause: 'resume' } as never)
    expect((after(streaming, stopped) as StreamingState).failures).toBe(0)
    expect(refusal([...streaming, failed()], failed())).toContain('which is not under way')
    expect(refusal(streaming, failed({ attempt: 2 }))).toContain('it is of attempt 2')
  })
})

describe('a reply', () => {
  it('enters the history, and is what the next ones are compared with', () => {
    const page = [...begun(), called(1, 1, { finalizing: true, change: { tools: ['look'] } }), wrote('Hm.')]
    const refused = { reason: 'It could do harm.' }
    const more: Partial<RunState> = { takeOvers: 2, inputSinceReply: true, output: { value: 1 } }
    const state = after(page, { ...said('Hm.'), refusal: refused } as Fact, more) as CollectingState
    expect(state).toMatchObject({
      phase: 'collecting',
      inputSinceReply: false,
      takeOvers: 0,
      lastText: 'Hm.',
    })
    expect(state.reply).toMatchObject({ finalizing: true, offered: ['look'], refusal: refused })
    expect(state).not.toHaveProperty('output')
    expect(readMessages(state.history)).toHaveLength(2)
    expect(readMessages(state.history)[1]).toEqual(state.reply.message)
    const empty = after(streaming, replyFinished([], { parts: [] }), {
      lastText: 'Before.',
    }) as CollectingState
    expect([readMessages(empty.history).length, empty.lastText]).toEqual([1, 'Before.'])
    for (const field of ['offered', 'failure', 'refusal']) expect(empty.reply).not.toHaveProperty(field)
  })

  it('that was cut off says how its attempt failed', () => {
    const page = [...streaming, requested(1), failed(), endedCall(1, { outcome: 'skipped' })]
    const state = after(
      page,
      replyFinished([requested(1)], { partial: true, stopReason: 'failed' }),
    ) as CollectingState
    expect(state.reply.failure).toEqual(failure())
  })

  it('is of the attempt that is under way, with the calls that it asked for, in order', () => {
    expect(refusal(streaming, replyFinished([], { attempt: 2 }))).toContain('it is of attempt 2')
    const page = [...streaming, requested(1), requested(2)]
    expect(refusal(page, replyFinished([requested(1), requested(2)]))).toBe('taken')
    for (const calls of [[requested(2), requested(1)], [requested(1)], []]) {
      expect(refusal(page, replyFinished(calls))).toContain('its calls are not those that were requested')
    }
    expect(callId(1)).not.toBe(callId(2))
  })
})

describe('what the next request is estimated to have', () => {
  const learning: Partial<RunState> = { contextTokens: 300, reportedTokens: 100, estimateFactor: 2 }
  /** After a reply of 34 characters: six tokens for a message, and ten for its text, twice. */
  const estimates = (
    report: Usage | undefined,
    more: Partial<RunState> = learning,
    contextTokens?: number,
  ) => {
    const change = report ? [used(report, contextTokens === undefined ? {} : { contextTokens })] : []
    const text = 'x'.repeat(34)
    const state = after([...streaming, wrote(text), ...change], said(text), more)
    return [state.contextTokens, state.reportedTokens, state.estimateFactor]
  }

  it.each<readonly [string, Usage | undefined, readonly number[]]>([
    ['nothing: the estimate', undefined, [332, 100, 2]],
    ['output: that, beside the estimate of the input', { outputTokens: 8 }, [308, 100, 2]],
    ['input: that, beside the estimate of the output', { inputTokens: 300 }, [332, 332, 2]],
    ['both: what both say', { inputTokens: 300, outputTokens: 8 }, [308, 308, 2]],
    ['more than was estimated: estimates grow', { inputTokens: 400, outputTokens: 0 }, [400, 400, 3]],
    ['less than was estimated: estimates shrink', { inputTokens: 250, outputTokens: 0 }, [250, 250, 1.5]],
    [
      'far less: estimates are no smaller than they were made',
      { inputTokens: 120, outputTokens: 0 },
      [120, 120, 1],
    ],
    [
      'far more: estimates grow to eight times at most',
      { inputTokens: 9_000, outputTokens: 0 },
      [9_000, 9_000, 8],
    ],
  ])('follows what the provider reports: %s', (_name, report, expected) => {
    expect(estimates(report)).toEqual(expected)
  })

  it('learns from enough of an estimate, and only about the history itself', () => {
    const report = { inputTokens: 400, outputTokens: 0 }
    expect(estimates(report, { ...learning, reportedTokens: 200 })).toEqual([400, 400, 4])
    expect(estimates(report, { ...learning, reportedTokens: 201 })).toEqual([400, 400, 2])
    const page = [...begun(), called(1, 1, { change: { messages: [] } }), used(report)]
    expect(after(page, replyFinished([], { stopReason: 'end' }), learning).estimateFactor).toBe(2)
  })

  it('is what the provider says of the conversation, where it bills several prompts for one call', () => {
    expect(estimates({ inputTokens: 9_000, outputTokens: 9 }, learning, 612)).toEqual([612, 100, 2])
  })
})
