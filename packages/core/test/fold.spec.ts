import type { Message } from '@tallystick/core'

import type { Fact, FactOf } from '@tallystick/core/vocabulary'
import { sampleFacts, given, sampleMessage } from '@tallystick/testkit'
import { describe, expect, it } from 'vitest'
import { openTurnCalls } from '../src/machine/calls.ts'
import { createHistory, readMessages } from '../src/machine/history.ts'
import type { CollectingState, RunState } from '../src/machine/state.ts'
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
  after,
  answered,
  refusal,
} from './pages.ts'
import type { Handoff } from '../src/events/event.ts'

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

const text = (words: string) => ({ type: 'text' as const, text: words })
const tripped = (more: object): Fact => ({
  ...{ type: 'guardrail_tripped', turn: 1, guardrail: 'clean', on: 'input', action: 'replace', ...more },
})
const shown = (state: RunState): readonly Message[] => readMessages(state.history)
const withheld = text('The guardrail clean withheld this.')
const page = answered('end')
const blocked = { guardrail: 'clean', detail: 'rude' }

describe('a finding in the input', () => {
  it('replaces the message that it names, with its words or with that it was withheld', () => {
    expect(shown(after(page, tripped({ index: 0, replacement: [text('Stay.')] })))[0]).toEqual(
      sampleMessage('Stay.'),
    )
    expect(shown(after(page, tripped({ index: 0 })))[0]).toEqual({ role: 'user', parts: [withheld] })
    expect(shown(after(page, tripped({ index: 0 })))).toHaveLength(2)
    for (const more of [{ index: 1 }, { index: 7 }, {}]) {
      expect(refusal(page, tripped(more))).toMatch(
        /the history holds no input at (1|7|-1) that it could replace/,
      )
    }
  })

  it('names its message, whatever else the history holds', () => {
    const history = createHistory(['One.', 'Two.', 'Three.'].map(sampleMessage))
    expect(refusal(page, tripped({}), { history })).toMatch(/holds no input at -1 that it could replace/)
    expect(shown(after(page, tripped({ index: 1 }), { history }))).toEqual([
      ...[sampleMessage('One.'), { role: 'user', parts: [withheld] }, sampleMessage('Three.')],
    ])
  })

  it('blocks the run where it says so, and is only recorded where it says that', () => {
    const block = after(page, tripped({ index: 0, action: 'block', detail: 'rude' }))
    expect(block.blocked).toEqual({ ...blocked, on: 'input' })
    expect(shown(block)[0]).toEqual({ role: 'user', parts: [withheld] })
    expect(after(page, tripped({ index: 0 })).blocked).toBeUndefined()
    const before = given(page).state!
    expect(after(page, tripped({ action: 'record' }))).toEqual({
      ...before,
      seq: before.seq + 1,
      at: before.at + 1,
    })
  })
})

describe('a finding in the answer', () => {
  const finding = (more: object) => tripped({ on: 'output', ...more })
  const found = (more: object, state: Partial<CollectingState> = {}) =>
    after(page, finding(more), state) as CollectingState

  it('replaces its text, which no schema has checked yet', () => {
    const reply = { ...(given(page).state as CollectingState).reply, fit: { valid: true } }
    const state = found({ replacement: [text('So.'), text('')] }, { reply, output: { value: 1 } })
    expect(shown(state)).toEqual([sampleMessage('Go.'), { ...reply.message, parts: [text('So.')] }])
    expect(state).toMatchObject({ lastText: 'So.', reply: { message: { parts: [text('So.')] } } })
    expect(state.reply).not.toHaveProperty('fit')
    expect(state).not.toHaveProperty('output')
    expect(state).not.toHaveProperty('blocked')
    expect(found({}).lastText).toBe(withheld.text)
  })

  it('leaves no empty message, and takes nothing away from before an empty answer', () => {
    expect(shown(found({ replacement: [text('')] }))).toEqual([sampleMessage('Go.')])
    const silent = [...begun(), called(), replyFinished([], { stopReason: 'end', parts: [] })]
    const state = after(silent, finding({ replacement: [text('So.')] }))
    expect(shown(state)).toMatchObject([{ role: 'user' }, { role: 'assistant', parts: [text('So.')] }])
    expect(shown(after(silent, finding({ replacement: [] })))).toEqual([sampleMessage('Go.')])
  })

  it('blocks the run, or is only recorded', () => {
    expect(found({ action: 'block' }).blocked).toEqual({ guardrail: 'clean', on: 'output' })
    expect(found({ action: 'record' }).lastText).toBe('Hm.')
    const calls = [requested(1)]
    expect(refusal([...begun(), called(), ...calls, replyFinished(calls)], finding({}))).toContain(
      'no answer that it could replace',
    )
    expect(refusal([...begun(), called(), wrote('Hm.')], finding({}))).toContain(
      'no answer that it could replace',
    )
  })
})

describe('a finding in a result', () => {
  const results = [...executing(['look', 'look']), startedCall(1), startedCall(2), endedCall(1), endedCall(2)]
  const finding = (more: object) => tripped({ on: 'tool_output', toolCallId: callId(2), ...more })
  const contents = (more: object) =>
    openTurnCalls(after(results, finding(more))).map(({ result }) => result?.content)

  it('replaces its content, and no other', () => {
    expect(contents({ replacement: [text('So.')] })).toEqual([[text('blue')], [text('So.')]])
    expect(contents({ action: 'block' })).toEqual([[text('blue')], [withheld]])
    expect(contents({ action: 'record' })).toEqual([[text('blue')], [text('blue')]])
    const open = [...executing(), startedCall()]
    expect(refusal(open, finding({ toolCallId: callId(1) }))).toContain('no result that it could replace')
    expect(refusal(results, finding({ toolCallId: callId(9) }))).toContain('no result that it could replace')
    expect(refusal(page, finding({}))).toContain('no result that it could replace')
  })

  it('of a tool’s input changes nothing: what is collected says what becomes of the call', () => {
    const before = given(results).state!
    expect(after(results, tripped({ on: 'tool_input', toolCallId: callId(1) }))).toEqual({
      ...{ ...before, seq: before.seq + 1, at: before.at + 1 },
    })
  })
})

describe('guardrails that have looked', () => {
  const checked = (more: Partial<FactOf<'guardrails_checked'>>): Fact => ({
    ...{ type: 'guardrails_checked', turn: 1, on: 'input', guardrails: ['clean'], ...more },
  })

  it('at the input are waited for no more, and the others still are', () => {
    const inputCheck = { seq: 2, from: 0, guardrails: ['clean', 'polite'] }
    expect(after(page, checked({}), { inputCheck }).inputCheck).toEqual({
      ...inputCheck,
      guardrails: ['polite'],
    })
    expect(after(page, checked({ guardrails: ['clean', 'polite'] }), { inputCheck })).not.toHaveProperty(
      'inputCheck',
    )
    expect(after(page, checked({}))).not.toHaveProperty('inputCheck')
  })

  it('at the answer or the results let these pass', () => {
    expect(after(page, checked({ on: 'output' }))).toMatchObject({ reply: { guarded: true } })
    expect(after(executing(), checked({ on: 'tool_output' }))).toMatchObject({ resultsChecked: true })
    expect(refusal(executing(), checked({ on: 'output' }))).toContain('there is no answer')
    expect(refusal(page, checked({ on: 'tool_output' }))).toContain('there are no results')
    expect(refusal(page, checked({ on: 'tool_input' }))).toBe('taken')
  })
})

describe('a schema that has looked', () => {
  const checked = (more: Partial<FactOf<'output_checked'>>): Fact => ({
    ...{ type: 'output_checked', turn: 1, valid: false, ...more },
  })
  const wrapped = (isWrapped: boolean): Partial<RunState> => {
    const { definition } = given(page).state!
    return {
      definition: {
        ...definition,
        output: { schema: {}, maxRepairs: 1, ...(isWrapped && { wrapped: true as const }) },
      },
    }
  }

  it('gives the answer as JSON, and its text where that was wrapped', () => {
    const fits = checked({ valid: true, output: { b: 1, a: 2 } })
    expect(after(page, fits, wrapped(false))).toMatchObject({
      output: { value: { b: 1, a: 2 } },
      lastText: 'Hm.',
    })
    expect(after(page, fits, wrapped(true)).lastText).toBe('{"a":2,"b":1}')
    expect(after(page, fits)).toMatchObject({ reply: { fit: { valid: true } }, lastText: 'Hm.' })
    expect(after(page, checked({ valid: true }))).not.toHaveProperty('output')
  })

  it('asks for the answer again, or says what is wrong with it', () => {
    const repair = sampleMessage('Again.')
    const asking = after(page, checked({ error: 'No.', repair }), { repairs: 1 })
    expect(asking).toMatchObject({
      repairs: 2,
      inputSinceReply: true,
      reply: { fit: { valid: false, error: 'No.' } },
    })
    expect(shown(asking).at(-1)).toEqual(repair)
    const over = after(page, checked({ error: 'No.' }), { repairs: 1 })
    expect(over).toMatchObject({ repairs: 1, inputSinceReply: false })
    expect(shown(over)).toHaveLength(2)
    const calls = [requested(1)]
    expect(refusal([...begun(), called(), ...calls, replyFinished(calls)], checked({}))).toContain(
      'there is no answer',
    )
  })
})
