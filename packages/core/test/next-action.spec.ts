import { describe, expect, it } from 'vitest'
import type { Limits } from '@tallystick/core'
import type { Fact, FinishReason, LimitName, StopReason } from '@tallystick/core/vocabulary'
import { sampleMessage } from '@tallystick/testkit'
import { isSuspended } from '../src/machine/next-action.ts'
import type { Rules } from '../src/machine/rules.ts'
import type { CollectingState, InjectingState, RunState } from '../src/machine/state.ts'
import { blocked, cancel, met, next, stateOf, timed, upAt } from './actions.ts'
import {
  answered,
  begun,
  called,
  callId,
  endedCall,
  executing,
  failure,
  replyFinished,
  requested,
  startedCall,
  wrote,
} from './pages.ts'

describe('while calls are checked', () => {
  const calls = [requested(1)]
  const page = [...begun(), called(), ...calls, replyFinished(calls)]

  it.each<readonly [string, Partial<CollectingState>, readonly unknown[]]>([
    ['the run waits', {}, ['wait']],
    ['a cancel closes them', { cancel }, ['collect', 'collected cancelled']],
    ['a block closes them', { blocked }, ['collect', 'collected denied']],
    ['a limit leaves them alone in time', met('maxTurns'), ['wait']],
  ])('%s', (_name, more, action) => {
    expect(next(stateOf(page, more))).toEqual(action)
  })

  it('they have the time of the run', () => {
    const state = stateOf<CollectingState>([...begun({ limits: timed }), ...page.slice(2)])
    expect(next(state, upAt(state) - 1)).toEqual(['wait', upAt(state)])
    expect(next(state, upAt(state))).toEqual(['meet_limit', 'met maxDurationMs'])
    expect(next({ ...state, ...met('maxDurationMs') }, upAt(state))).toEqual([
      'collect',
      'collected limit_reached',
    ])
    expect(next({ ...state, ...met('maxTurns', 'ask') }, upAt(state))).toEqual(['wait'])
    const finalizing = { ...state, reply: { ...state.reply, finalizing: true } }
    expect(next(finalizing)).toEqual(['collect', 'collected limit_reached'])
  })
})

describe('after a reply without calls', () => {
  const text = [{ type: 'text', text: 'Hm.' }] as const
  const page = (stopReason: StopReason = 'end', limits: Limits = {}) => answered(stopReason, limits)
  const steer = { inputId: 'r1', delivery: 'steer', message: sampleMessage('More.') } as const
  const queued = (inputId: string) => ({ ...steer, inputId, delivery: 'queue' }) as const
  const replyWith = (
    more: Partial<CollectingState['reply']>,
    stopReason: StopReason = 'end',
  ): Partial<CollectingState> => ({
    reply: { ...stateOf<CollectingState>(page(stopReason)).reply, ...more },
  })

  it.each<readonly [string, Partial<CollectingState>, readonly unknown[]]>([
    ['the run ends', {}, ['finish', 'answered']],
    ['a block ends it', { blocked: { on: 'output', guardrail: 'polite' } }, ['finish', 'guardrail: polite']],
    ['a cancel ends it, before a block', { cancel, blocked }, ['finish', 'cancelled']],
    [
      'steering input is delivered',
      { pendingInputs: [queued('r0'), steer, { ...steer, inputId: 'r2' }] },
      ['deliver_input', 'r1 delivered', 'r2 delivered'],
    ],
    [
      'queued input is delivered, one by one',
      { pendingInputs: [queued('r1'), queued('r2')] },
      ['deliver_input', 'r1 delivered'],
    ],
    [
      'input that came since is answered first',
      { pendingInputs: [queued('r1')], inputSinceReply: true },
      ['call_model', 'model_call_started'],
    ],
    [
      'an answer that does not fit ends it',
      replyWith({ fit: { valid: false, error: 'No.' } }),
      ['finish', 'output_invalid: No.'],
    ],
    [
      'an answer that is written again does not',
      { ...replyWith({ fit: { valid: false } }), inputSinceReply: true },
      ['call_model', 'model_call_started'],
    ],
    ['an answer that fits is one', replyWith({ fit: { valid: true } }), ['finish', 'answered']],
    ['a met limit that stops it does not take the answer', met('maxTurns'), ['finish', 'answered']],
    [
      'the finalizing call names its limit',
      { ...replyWith({ finalizing: true }), ...met('maxTurns', 'finalize') },
      ['finish', 'turn_limit'],
    ],
    [
      'a finalizing call whose limit was raised is an answer',
      replyWith({ finalizing: true }),
      ['finish', 'answered'],
    ],
    [
      'a summary is waited for before input is answered',
      {
        inputSinceReply: true,
        compacting: { model: { provider: 'a', api: 'b', modelId: 'c' }, replacedMessages: 1, grant: {} },
      },
      ['wait'],
    ],
  ])('%s', (_name, more, action) => {
    expect(next(stateOf(page(), more))).toEqual(action)
  })

  it.each<readonly [StopReason, Partial<CollectingState>, readonly unknown[]]>([
    ['paused', { pendingInputs: [steer] }, ['deliver_input', 'r1 delivered']],
    ['paused', { pendingInputs: [queued('r1')] }, ['call_model', 'model_call_started']],
    ['refused', replyWith({ refusal: { reason: 'Harm.' } }, 'refused'), ['finish', 'refused: Harm.']],
    ['failed', replyWith({ failure: failure() }, 'failed'), ['finish', 'model_failed: Too busy.']],
    [
      'failed',
      { ...replyWith({ failure: failure() }, 'failed'), ...met('maxTurns') },
      ['finish', 'model_failed: Too busy.'],
    ],
    ['cancelled', met('maxTurns'), ['finish', 'turn_limit']],
    ['cancelled', met('maxTurns', 'ask'), ['suspend']],
    [
      'max_tokens',
      { pendingInputs: [steer] },
      ['finish', 'r1 The run ended before it (output_truncated).', 'output_truncated'],
    ],
  ])('that stopped with %s (%#)', (stopReason, more, action) => {
    expect(next(stateOf(page(stopReason), more))).toEqual(action)
  })

  it('input is not delivered where a limit ends the run before the model sees it', () => {
    const ending = (onLimit: Limits['onLimit']) =>
      next(stateOf(page('end', { maxTurns: 1, ...(onLimit && { onLimit }) }), { pendingInputs: [steer] }))
    expect(ending('stop')).toEqual(['finish', 'r1 The run ended before it (answered).', 'answered'])
    expect(ending('finalize')).toEqual(['deliver_input', 'r1 delivered'])
  })

  it('its checks are waited for, as long as the run has time', () => {
    const definition = {
      ...stateOf(page()).definition,
      guardrails: [{ name: 'clean', on: 'output' }],
    } as const
    const checking = stateOf<CollectingState>(page('end', timed), { definition })
    expect(next(stateOf(page(), { definition }))).toEqual(['wait'])
    expect(next(checking, upAt(checking) - 1)).toEqual(['wait', upAt(checking)])
    expect(next(checking, upAt(checking))).toEqual(['meet_limit', 'met maxDurationMs'])
    const late = { ...checking, ...met('maxDurationMs') }
    expect(next(late, upAt(checking))).toEqual(['finish', 'guardrail_tripped', 'time_limit'])
    expect(next({ ...late, reply: { ...late.reply, guarded: true } }, upAt(checking))).toEqual([
      'finish',
      'answered',
    ])
    expect(next({ ...checking, ...met('maxTurns', 'ask') }, upAt(checking))).toEqual(['wait'])
  })

  it('what looks at older input beside the model call is waited for, and newer input is not', () => {
    const inputCheck = { seq: 2, from: 0, guardrails: ['cards'] }
    const guardrails = [{ name: 'cards', on: 'input', beside: true }] as const
    const definition = { ...stateOf(page()).definition, guardrails }
    expect(next(stateOf(page(), { inputCheck, definition }))).toEqual(['wait'])
    expect(next(stateOf(page(), { inputCheck, definition, inputSinceReply: true }))).toEqual([
      'call_model',
      'model_call_started',
    ])
    const partial = replyFinished([], { stopReason: 'cancelled', partial: true, parts: text })
    const cut = [...begun(), called(), wrote('Hm.'), partial]
    expect(next(stateOf(cut, { inputCheck, definition, ...met('maxTurns') }))).toEqual([
      'finish',
      'turn_limit',
    ])
  })
})

describe('after the results of a turn', () => {
  const injected: Fact = { type: 'tool_results_injected', turn: 1, toolCallIds: [callId(1)] }
  const page = [...executing(), startedCall(), endedCall(), injected]
  const { definition } = stateOf(page)

  it('the conversation is handed over, or back, or continues', () => {
    expect(next(stateOf(page))).toEqual(['call_model', 'model_call_started'])
    const handoff = { to: 'clerk', tool: 'look' }
    const rules: Rules = {
      handOff: (tool) => (tool === 'look' ? { definition, messages: [sampleMessage('Go.')] } : undefined),
    }
    expect(next(stateOf<InjectingState>(page, { handoff }), 0, rules)).toEqual([
      'hand_off',
      'agent_handed_off',
    ])
    expect(next(stateOf<InjectingState>(page, { handoff: { ...handoff, back: true } }))).toEqual([
      'finish',
      'handed_back: clerk',
    ])
    expect(next(stateOf<InjectingState>(page, { handoff, cancel }))).toEqual(['finish', 'cancelled'])
    expect(() => next(stateOf<InjectingState>(page, { handoff }))).toThrow(
      'is no longer among the handoffs of',
    )
  })

  it('the agent may stop', () => {
    expect(next(stateOf(page), 0, { stopWhen: () => true })).toEqual(['finish', 'stopped'])
    expect(next(stateOf(page), 0, { stopWhen: () => false })).toEqual(['call_model', 'model_call_started'])
    expect(next(stateOf(begun()), 0, { stopWhen: () => true })).toEqual(['call_model', 'model_call_started'])
  })
})

describe('before a model call', () => {
  const inputCheck = { seq: 2, from: 0, guardrails: ['cards'] }

  it('input is checked first, as long as the run has time', () => {
    const page = begun({ limits: timed })
    const state = stateOf(page, { inputCheck })
    expect(next(stateOf(begun(), { inputCheck }))).toEqual(['wait'])
    expect(next(state, upAt(state) - 1)).toEqual(['wait', upAt(state)])
    expect(next(state, upAt(state))).toEqual(['meet_limit', 'met maxDurationMs'])
    expect(next({ ...state, ...met('maxDurationMs') }, upAt(state))).toEqual(['finish', 'time_limit'])
    // A person is asked about the limit: nothing is waited for beside that.
    expect(next({ ...state, ...met('maxTurns', 'ask'), inputCheck: undefined as never })).toEqual(['suspend'])
  })

  it.each<readonly [LimitName, FinishReason]>([
    ['maxTurns', 'turn_limit'],
    ['maxToolCalls', 'tool_call_limit'],
    ['maxTotalTokens', 'token_limit'],
    ['maxCostUsd', 'cost_limit'],
    ['maxDurationMs', 'time_limit'],
    ['maxRepeats', 'repeat_limit'],
  ])('a limit of %s that stops the run ends it: %s', (limit, reason) => {
    expect(next(stateOf(answered('paused'), met(limit)))).toEqual(['finish', reason])
    expect(next(stateOf(answered('paused'), met(limit, 'finalize')))).toEqual([
      'call_model',
      'model_call_started',
    ])
    expect(next(stateOf(answered('paused'), met(limit, 'ask')))).toEqual(['suspend'])
  })

  it('a finalizing call that cannot be paid for is not made, and the run says why', () => {
    const state = stateOf(answered('paused', { maxTotalTokens: 20 }), met('maxTurns', 'finalize'))
    expect(next(state)).toEqual([
      ...[
        'finish',
        'turn_limit: No closing call was made: what is left of maxTotalTokens (20) does not pay for one.',
      ],
    ])
  })
})

describe('a run that is suspended', () => {
  it.each<readonly [string, RunState, boolean]>([
    ['before its input', stateOf(begun().slice(0, 1)), true],
    ['at a limit that asks', stateOf(answered('paused'), met('maxTurns', 'ask')), true],
    ['at a limit that stops', stateOf(answered('paused'), met('maxTurns')), false],
    ['while a person is asked', stateOf(executing(['look'], { plan: 'ask' })), false],
    ['while a tool runs', stateOf([...executing(), startedCall()]), false],
    ['while a model is called', stateOf([...begun(), called()], met('maxTurns', 'ask')), false],
  ])('%s: %#', (_name, state, suspended) => {
    expect(isSuspended(state)).toBe(suspended)
  })

  it('does not use up its time', () => {
    const state = stateOf(begun({ limits: timed }).slice(0, 1))
    expect(next(state, 60_000)).toEqual(['suspend'])
    const asking = stateOf(answered('paused', timed), met('maxTurns', 'ask'))
    expect(next(asking, 60_000)).toEqual(['suspend'])
  })
})
