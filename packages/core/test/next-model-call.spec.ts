import { describe, expect, it } from 'vitest'
import type { Limits } from '@tallystick/core'
import type { ShownChange } from '@tallystick/core/internal'
import type { Fact, FactOf, FailureClass, ToolDefinition } from '@tallystick/core/vocabulary'
import { given } from '@tallystick/testkit'
import { estimateDefinitionTokens } from '../src/machine/tokens.ts'
import {
  findModelAfterGivingUp,
  nextModelCall,
  repeatModelCall,
  type CallPlanning,
} from '../src/machine/next-action.ts'
import { omitUndefined } from '../src/values/json.ts'
import type { Attempt, RunState, StreamingState } from '../src/machine/state.ts'
import { begun, called, failure } from './pages.ts'

const own = { provider: 'scripted', api: 'script', modelId: 'scripted-1' }
const second = { ...own, modelId: 'second' }
const third = { ...own, modelId: 'third' }
const tool = (name: string): ToolDefinition => ({
  name,
  description: 'x'.repeat(350),
  inputSchema: { type: 'object' },
})

type Started = FactOf<'model_call_started'>

function idle(limits: Limits = {}, more: Partial<RunState> = {}): RunState {
  const state = given(begun({ limits })).state!
  const definition = {
    ...state.definition,
    tools: [tool('look'), tool('pay')],
    fallbacks: [{ model: second }, { model: third }],
  }
  return { ...state, definition, ...more } as RunState
}

/** A call whose attempt has failed. */
function failed(attempt: Partial<Attempt> = {}, more: Partial<StreamingState> = {}): StreamingState {
  const { definition } = idle()
  const fact: Fact = { type: 'model_stream_failed', turn: 1, attempt: 1, failure: failure(), retryAt: 0 }
  const state = given([...begun(), called(), fact]).state as StreamingState
  return { ...state, definition, ...more, attempt: { ...state.attempt, ...attempt } }
}

type Plan = Omit<CallPlanning, 'change'> & ShownChange

const call = (state: RunState, { model, toolChoice, finalizing, ...change }: Plan = {}) =>
  nextModelCall(state, state.at, { ...omitUndefined({ model, toolChoice, finalizing }), change }) as Started

describe('the first attempt of a turn', () => {
  it('is of the model in use, or the one that the turn names, with what the turn changes', () => {
    expect(call(idle())).toMatchObject({
      ...{ turn: 1, attempt: 1, model: own, toolChoice: { type: 'auto' }, finalizing: false },
      grant: { turns: 1 },
    })
    expect(call(idle())).not.toHaveProperty('change')
    expect(call(idle({}, { model: second })).model).toEqual(second)
    const changed = call(idle({}, { model: second }), {
      ...{ model: third, toolChoice: { type: 'any' }, instructions: 'Look.' },
    })
    expect(changed).toMatchObject({ model: third, toolChoice: { type: 'any' } })
    expect(changed.change).toEqual({ instructions: 'Look.' })
  })

  it('has as many output tokens as the turn says, or else the definition', () => {
    const bounded = idle()
    const definition = { ...bounded.definition, maxOutputTokens: 900 }
    expect(call(bounded)).not.toHaveProperty('maxOutputTokens')
    expect(call({ ...bounded, definition }).maxOutputTokens).toBe(900)
    expect(call({ ...bounded, definition }, { maxOutputTokens: 1_000 })).toMatchObject({
      ...{ maxOutputTokens: 1_000, change: { maxOutputTokens: 1_000 }, grant: { outputTokens: 1_000 } },
    })
  })

  it('counts anew what it shows instead of the history, the instructions or the tools', () => {
    const state = idle({}, { contextTokens: 5_000, estimateFactor: 1.5 })
    const { definition } = state
    const input = (change: Parameters<typeof call>[1]) => call(state, change).grant.inputTokens
    const whole = (more: object) => estimateDefinitionTokens({ ...definition, ...more })
    // The history is `Go.`: six tokens for the message, and one for its text.
    const message = 7
    expect(input({})).toBe(5_000)
    expect(input({ maxOutputTokens: 9 })).toBe(5_000)
    expect(input({ instructions: 'Look.' })).toBe(
      Math.ceil((whole({ instructions: 'Look.' }) + message) * 1.5),
    )
    expect(input({ tools: ['pay'] })).toBe(Math.ceil((whole({ tools: [tool('pay')] }) + message) * 1.5))
    expect(input({ messages: [] })).toBe(Math.ceil(whole({}) * 1.5))
  })

  it.each<readonly [string, Limits, Parameters<typeof call>[1], boolean]>([
    ['offers tools', {}, {}, true],
    ['offers some of them', {}, { tools: ['look'] }, true],
    ['offers none', {}, { tools: [] }, false],
    ['may call none', {}, { toolChoice: { type: 'none' } }, false],
    ['of a run that stops at a limit', { onLimit: 'stop' }, {}, false],
    ['of a run that asks at a limit', { onLimit: 'ask' }, {}, false],
  ])('leaves enough for the answer where it %s', (_name, limits, change, isKept) => {
    expect(call(idle({ ...limits, maxTurns: 1 }), change)).toMatchObject(
      isKept ? { limit: 'maxTurns', held: 1 } : { type: 'model_call_started' },
    )
  })
})

describe('a model call that is made again', () => {
  const again = (state: StreamingState, ...model: readonly [] | readonly [typeof own]) =>
    repeatModelCall(state, state.at, ...model) as Started

  it('is the next attempt of its turn, with all that the turn changed', () => {
    const change = { instructions: 'Look.', tools: ['look'], maxOutputTokens: 50 }
    expect(again(failed({ change, toolChoice: { type: 'any' } }))).toMatchObject({
      ...{ turn: 1, attempt: 2, change, toolChoice: { type: 'any' }, finalizing: false, maxOutputTokens: 50 },
      grant: { turns: 0 },
    })
  })

  it('is of the same model, as long as the agent names it, or of the one that takes over', () => {
    expect(again(failed({ model: second })).model).toEqual(second)
    expect(again(failed({ model: { ...own, modelId: 'gone' } })).model).toEqual(own)
    expect(again(failed({ model: { ...own, modelId: 'gone' } }, { model: third })).model).toEqual(third)
    expect(again(failed({ model: second }), third).model).toEqual(third)
  })

  it('writes the answer as long as the limit is met, and continues freely once it was raised', () => {
    const finalizing = { finalizing: true, toolChoice: { type: 'none' } } as const
    const metLimit = { limit: 'maxTurns', policy: 'finalize', at: 1 } as const
    expect(again(failed(finalizing, { metLimit }))).toMatchObject(finalizing)
    expect(again(failed(finalizing))).toMatchObject({ finalizing: false, toolChoice: { type: 'auto' } })
    expect(again(failed({}, { metLimit }))).toMatchObject({ finalizing: false, toolChoice: { type: 'auto' } })
  })
})

describe('a model that is given up', () => {
  const gaveUp = (model: typeof own, failureClass: FailureClass = 'overloaded') =>
    findModelAfterGivingUp(failed({ model, failed: { failure: failure({ class: failureClass }) } }))

  it('is followed by the next that the agent names, and the last by none', () => {
    expect([own, second, third].map((model) => gaveUp(model))).toEqual([second, third, undefined])
    expect(gaveUp({ ...own, modelId: 'gone' })).toEqual(own)
  })

  it.each([
    ['overloaded', true],
    ['authentication', true],
    ['context_overflow', true],
    ['invalid_request', false],
    ['content_filtered', false],
  ] as const)('with %s is followed by another: %s', (failureClass, isFollowed) => {
    expect(gaveUp(own, failureClass)).toEqual(isFollowed ? second : undefined)
  })

  it('has failed', () => {
    const { failed: _failed, ...attempt } = failed().attempt
    expect(findModelAfterGivingUp({ ...failed(), attempt })).toBeUndefined()
  })
})
