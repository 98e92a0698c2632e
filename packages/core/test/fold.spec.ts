import { type Handoff } from '@tallystick/core/internal'
import { describe, expect, it } from 'vitest'
import type { Fact } from '@tallystick/core/vocabulary'
import { sampleFacts, given } from '@tallystick/testkit'
import {
  begun,
  called,
  callId,
  endedCall,
  executing,
  failure,
  replyFinished,
  requested,
  runId,
  startedCall,
  wrote,
} from './pages.ts'

const streaming = [...begun(), called()]
const failed: Fact = { type: 'model_stream_failed', turn: 1, attempt: 1, failure: failure(), retryAt: 0 }
const injected: Fact = { type: 'tool_results_injected', turn: 1, toolCallIds: [callId(1)] }

describe('what a fold remembers', () => {
  it('shows a model no reply without content', () => {
    const { state } = given([...streaming, replyFinished([])])
    expect(state?.history.length).toBe(1)
    const text = [{ type: 'text', text: 'Hm.' }] as const
    expect(
      given([...streaming, wrote('Hm.'), replyFinished([], { parts: text })]).state?.history.length,
    ).toBe(2)
  })

  it('counts the usage of every attempt: a later report of one replaces an earlier', () => {
    const used = (attempt: number, outputTokens: number, costUsd?: number): Fact => ({
      ...{ type: 'usage_updated', turn: 1, attempt, usage: { inputTokens: 10, outputTokens } },
      ...(costUsd !== undefined && { costUsd }),
    })
    const page = [...streaming, used(1, 1, 0.25), used(1, 5, 0.5), failed, called(1, 2), used(2, 7, 0.25)]
    expect(given(page).state?.totals).toMatchObject({
      usage: { inputTokens: 20, outputTokens: 12 },
      costUsd: 0.75,
    })
    expect(given(page.slice(0, 5)).state?.totals).toMatchObject({
      usage: { inputTokens: 10, outputTokens: 5 },
      costUsd: 0.5,
    })
  })

  it('puts calls in the order of the reply, however they came', () => {
    const late = { ...requested(1), part: 5 }
    const early = { ...requested(2), part: 2 }
    const { state } = given([...streaming, late, early])
    expect(state?.phase === 'streaming' && state.attempt.calls.map(({ part }) => part)).toEqual([2, 5])
  })

  it('has every call in doubt that a process left running, and no other', () => {
    const resumed: Fact = { type: 'run_resumed', turn: 1, why: 'crash', inDoubt: [callId(1)] }
    const page = [
      ...executing(['a', 'b', 'c']),
      startedCall(1, 1, 'a'),
      startedCall(2, 1, 'b'),
      endedCall(2, { name: 'b' }),
    ]
    const { state } = given([...page, resumed])
    expect(state?.phase === 'executing' && state.calls.map(({ status }) => status)).toEqual([
      'in_doubt',
      'settled',
      'ready',
    ])
  })

  it('takes the definition of a resume, of a hand-off, and of nothing else', () => {
    const { definition } = sampleFacts(runId).run_started
    const changed = { ...definition, digest: 'another' }
    const resumed: Fact = { type: 'run_resumed', turn: 0, why: 'command', inDoubt: [], definition: changed }
    expect(given([...begun(), resumed]).state?.definition.digest).toBe('another')
    const asked = (handoff?: Handoff): readonly Fact[] => {
      const calls = executing(['look'], handoff ? { handoff } : {})
      return [...calls, startedCall(), endedCall(), injected]
    }
    const done = asked({ to: 'clerk' })
    const handOff: Fact = {
      type: 'agent_handed_off',
      turn: 1,
      from: 'agent',
      to: 'clerk',
      definition: changed,
    }
    for (const other of [asked(), asked({ to: 'baker' }), asked({ to: 'clerk', back: true })]) {
      expect(() => given([...other, handOff])).toThrow(/no call asked for clerk/)
    }
    expect(given([...done, handOff]).state).toMatchObject({
      agent: 'clerk',
      definition: { digest: 'another' },
    })
  })
})
