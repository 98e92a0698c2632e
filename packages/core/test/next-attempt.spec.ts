import { describe, expect, it } from 'vitest'
import type { Limits } from '@tallystick/core'
import type { Fact, FactOf, FailureClass } from '@tallystick/core/vocabulary'
import { sampleMessage } from '@tallystick/testkit'
import { createHistory } from '../src/machine/history.ts'
import { nextAction, toFailureReason } from '../src/machine/next-action.ts'
import type { StreamingState } from '../src/machine/state.ts'
import { at, blocked, cancel, met, next, stateOf, timed, upAt } from './actions.ts'
import { begun, called, endedCall, failure, requested, wrote } from './pages.ts'

describe('while a reply comes', () => {
  const page = [...begun(), called(), wrote('Hm.')]
  const silent = [...begun(), called()]

  it.each<readonly [string, readonly Fact[], Partial<StreamingState>, readonly unknown[]]>([
    ['the run waits', page, {}, ['wait']],
    ['a cancel keeps what came', page, { cancel }, ['keep_partial', 'kept cancelled Hm.']],
    ['a block keeps what came', page, { blocked }, ['keep_partial', 'kept cancelled Hm.']],
    ['a cancel before anything came ends the run', silent, { cancel }, ['finish', 'cancelled']],
    ['a block before anything came ends the run', silent, { blocked }, ['finish', 'guardrail: polite: rude']],
    ['a limit that was met cuts nothing off in time', page, met('maxTurns'), ['wait']],
  ])('%s', (_name, facts, more, action) => {
    expect(next(stateOf(facts, more))).toEqual(action)
  })

  it('the reply has the time of the run, of which a limit keeps some for the answer', () => {
    const state = stateOf<StreamingState>([...begun({ limits: timed }), called(), wrote('Hm.')])
    expect(next(state, upAt(state) - 1)).toEqual(['wait', upAt(state)])
    expect(next(state, upAt(state))).toEqual(['meet_limit', 'met maxDurationMs'])
    expect(next({ ...state, ...met('maxDurationMs') }, upAt(state))).toEqual([
      'keep_partial',
      'kept cancelled Hm.',
    ])
    const limits: Limits = { maxDurationMs: 10_000 }
    const kept = { ...state, limits }
    expect(next(kept)).toEqual(['wait', upAt(state) - 2_500])
    expect(next({ ...kept, attempt: { ...kept.attempt, finalizing: true } })).toEqual(['wait', upAt(state)])
  })

  it('a partial reply keeps its parts in order, with all that is known of its calls', () => {
    const [malformed, opaque] = [
      { text: '{', error: 'cut' },
      { provider: 'p', api: 'a', data: 1 },
    ]
    const facts = [
      ...begun(),
      called(),
      wrote('b', 4),
      wrote('a', 1),
      { ...requested(3), malformed, opaque } as Fact,
    ]
    const state = stateOf<StreamingState>(facts, { cancel })
    const action = nextAction({ ...state, attempt: { ...state.attempt, providerMessageId: 'm1' } }, at)
    expect(action).toMatchObject({
      facts: [
        {
          ...{ stopReason: 'cancelled', partial: true, places: [1, 2, 4], providerMessageId: 'm1' },
          parts: [
            { text: 'a' },
            { type: 'tool_call', providerCallId: 'c', name: 'look', malformed, opaque },
            { text: 'b' },
          ],
        },
      ],
    })
    const plain = nextAction(stateOf([...begun(), called(), requested(1)], { cancel }), at)
    const [fact] = 'facts' in plain ? (plain.facts as readonly FactOf<'assistant_message_finished'>[]) : []
    for (const field of ['providerMessageId', 'places']) expect(fact).not.toHaveProperty(field)
    for (const field of ['malformed', 'opaque']) expect(fact?.parts[0]).not.toHaveProperty(field)
  })

  it('what was cut off is estimated, where a limit depends on it', () => {
    const limits = { maxTotalTokens: 900, onLimit: 'stop' } as const
    const facts = [...begun({ limits }), called(), wrote('Hm.')]
    expect(next(stateOf(facts, { cancel }))).toEqual(['keep_partial', 'usage_updated', 'kept cancelled Hm.'])
  })
})

describe('after an attempt that failed', () => {
  const failed = (more: Partial<FactOf<'model_stream_failed'>> = {}): Fact => ({
    ...{ type: 'model_stream_failed', turn: 1, attempt: 1, failure: failure(), retryAt: at + 102, ...more },
  })
  const open = [...begun(), called(), wrote('Hm.'), requested(2)]
  const page = [...open, failed()]
  const now = stateOf(page).at
  const retryIn = at + 102 - now

  it('the same call is made again when its time has come, with what was asked for closed first', () => {
    expect(next(stateOf(page))).toEqual(['wait', retryIn])
    expect(next(stateOf(page), retryIn - 1)).toEqual(['wait', retryIn])
    expect(next(stateOf(page), retryIn)).toEqual(['call_model', 'skipped 2', 'model_call_started'])
  })

  it('the time of the run comes first', () => {
    const limits = { ...timed, maxDurationMs: 50 }
    const state = stateOf<StreamingState>([...begun({ limits }), ...page.slice(2)])
    const end = state.startedAt + state.waitedMs + 50 - state.at
    expect(next(state)).toEqual(['wait', end])
    expect(next(state, end)).toEqual(['meet_limit', 'met maxDurationMs'])
  })

  it.each<readonly [string, Partial<StreamingState>, readonly unknown[]]>([
    ['a cancel keeps what came', { cancel }, ['keep_partial', 'kept cancelled Hm. tool_call']],
    ['a block keeps what came', { blocked }, ['keep_partial', 'kept cancelled Hm. tool_call']],
    ['a limit keeps what came', met('maxTurns'), ['keep_partial', 'kept cancelled Hm. tool_call']],
    ['too many take-overs keep what came', { takeOvers: 6 }, ['keep_partial', 'kept failed Hm. tool_call']],
    ['fewer wait for the next attempt', { takeOvers: 5 }, ['wait', retryIn]],
  ])('%s', (_name, more, action) => {
    expect(next(stateOf(page, more))).toEqual(action)
  })

  it('that is not made again another model takes over, or the run ends with what came', () => {
    const final = [...open, failed({ retryAt: undefined as never })]
    const { retryAt: _never, ...rest } = final.at(-1) as FactOf<'model_stream_failed'>
    const given_up = [...open, rest]
    expect(next(stateOf(given_up))).toEqual(['keep_partial', 'kept failed Hm. tool_call'])
    const state = stateOf<StreamingState>(given_up)
    const model = { ...state.attempt.model, modelId: 'second' }
    const definition = { ...state.definition, fallbacks: [{ model }] }
    expect(next({ ...state, definition })).toEqual(['call_model', 'skipped 2', 'model_call_started'])
  })

  it('of which nothing came, the run ends with the reason', () => {
    const ending = (failureClass: FailureClass, more: Partial<StreamingState> = {}) => {
      const fault = failure({ class: failureClass, message: 'No.', retryable: false })
      const { retryAt: _never, ...fact } = failed({ failure: fault }) as FactOf<'model_stream_failed'>
      return next(stateOf([...begun(), called(), fact], more))
    }
    expect(ending('authentication')).toEqual(['finish', 'model_failed: No.'])
    expect(ending('context_overflow')).toEqual(['finish', 'context_overflow: No.'])
    expect(ending('refused')).toEqual(['finish', 'refused: No.'])
    expect(ending('content_filtered')).toEqual(['finish', 'refused: No.'])
    expect(toFailureReason(undefined)).toBe('model_failed')
    const closed = [...begun(), called(), requested(1), failed(), endedCall(1, { outcome: 'skipped' })]
    expect(next(stateOf(closed, { ...met('maxTurns') }))).toEqual(['finish', 'turn_limit: Too busy.'])
  })

  it('because the context is too long, it is made shorter first, with what was asked for closed', () => {
    const compaction = { maxContextTokens: 1e9, keepMessages: 1 }
    const fault = failure({ class: 'context_overflow', retryable: false })
    const { retryAt: _never, ...fact } = failed({ failure: fault }) as FactOf<'model_stream_failed'>
    const user = sampleMessage('Go.')
    const history = createHistory([user, user, user])
    const state = stateOf<StreamingState>([...open, fact], { history })
    expect(next(state, 0, { compaction })).toEqual(['compact', 'skipped 2', 'context_compacted'])
    const inputCheck = { seq: 2, from: 0, guardrails: ['cards'] }
    expect(next({ ...state, inputCheck }, 0, { compaction })).toEqual(['wait'])
    const shortened = {
      ...state,
      attempt: { ...state.attempt, failed: { failure: fault, shortened: true as const } },
    }
    expect(next(shortened, 0, { compaction })).toEqual(['call_model', 'skipped 2', 'model_call_started'])
    expect(next({ ...shortened, takeOvers: 6 }, 0, { compaction })).toEqual([
      'keep_partial',
      'kept failed Hm. tool_call',
    ])
  })

  it('the finalizing call has the time to the end, and what came is kept where no other can be paid for', () => {
    const limits: Limits = { maxDurationMs: 10_000 }
    const facts = [
      ...begun({ limits }),
      called(1, 1, { finalizing: true }),
      wrote('Hm.'),
      failed({ retryAt: at + 9_000 }),
    ]
    const state = stateOf<StreamingState>(facts, met('maxTurns', 'finalize'))
    expect(next(state)).toEqual(['wait', at + 9_000 - state.at])
    expect(next({ ...state, metLimit: undefined as never })).toEqual(['wait', upAt(state) - 2_500])
    expect(next(state, upAt(state))).toEqual(['keep_partial', 'kept cancelled Hm.'])
  })
})
