import { describe, expect, it } from 'vitest'
import type { Message } from '@tallystick/core'
import { removedText } from '@tallystick/core/internal'
import type { Fact, FactOf } from '@tallystick/core/vocabulary'
import { given, sampleMessage } from '@tallystick/testkit'
import { readMessages } from '../src/machine/history.ts'
import type { RunState } from '../src/machine/state.ts'
import { after, begun, called, callId, executing, endedCall, failure, refusal, startedCall } from './pages.ts'

const model = { provider: 'scripted', api: 'script', modelId: 'scripted-1' }
const call = (ordinal: number) => ({
  ...{
    type: 'tool_call' as const,
    toolCallId: callId(ordinal),
    providerCallId: 'c',
    name: 'look',
    input: {},
  },
})
const said = (...parts: Extract<Message, { role: 'assistant' }>['parts']): Message => ({
  ...{ role: 'assistant', parts, model, stopReason: 'end', partial: false },
})
const answer = said({ type: 'text', text: 'Blue.' })
const asks = (...ordinals: readonly number[]): Message => said(...ordinals.map(call))
const results = (...ordinals: readonly number[]): Message => ({
  role: 'tool',
  results: ordinals.map((ordinal) => ({
    toolCallId: callId(ordinal),
    name: 'look',
    outcome: 'success',
    content: [],
  })),
})
const ask = sampleMessage('Go.')
const gone = sampleMessage(removedText)
const cards = [{ name: 'cards', on: 'input' }] as const

const [started] = begun() as readonly [FactOf<'run_started'>, ...Fact[]]
const guarded: Fact = { ...started, definition: { ...started.definition, guardrails: cards } }
const carrying = (messages: readonly Message[], more: Partial<FactOf<'history_carried'>> = {}): Fact => ({
  ...{ type: 'history_carried', turn: 0, messages },
  ...more,
})

const shown = (state: RunState | undefined): readonly Message[] => readMessages(state!.history)

describe('a history that a run carries', () => {
  it('begins with a placeholder for each message that is missing', () => {
    expect(shown(after([started], carrying([ask, answer], { missing: 2 })))).toEqual([
      gone,
      gone,
      ask,
      answer,
    ])
    expect(shown(after([started], carrying([ask])))).toEqual([ask])
  })

  it('comes first, pairs its calls, and is of a length that a run can have', () => {
    expect(refusal(begun(), carrying([ask]))).toContain('something was said already')
    expect(refusal([started], carrying([ask, asks(1)]))).toContain(
      'message 1 and its tool results do not match',
    )
    expect(refusal([started], carrying([], { missing: 1_000_001 }))).toContain(
      '1000001 messages are more than',
    )
  })

  it('is checked from the first message that no guardrail has seen, where there is a guardrail', () => {
    const uncheckedFrom = 1
    const checked = after([guarded], carrying([ask, ask], { uncheckedFrom }))
    expect(checked.inputCheck).toEqual({ seq: 2, from: 1, guardrails: ['cards'] })
    expect(after([guarded], carrying([ask, ask])).inputCheck).toBeUndefined()
    expect(after([started], carrying([ask, ask], { uncheckedFrom })).inputCheck).toBeUndefined()
  })
})

describe('an edit of the history', () => {
  const edited = (...edits: FactOf<'history_edited'>['edits']): Fact => ({
    ...{ type: 'history_edited', turn: 0, by: 'ada', reason: 'A key.', edits },
  })
  const page = [started, carrying([ask, answer, ask, answer])]
  const changed = sampleMessage('Changed.')

  it('changes some messages and removes others', () => {
    expect(shown(after(page, edited({ index: 0, message: changed }, { index: 3 })))).toEqual([
      changed,
      answer,
      ask,
    ])
  })

  it('names places that are there, each once and in order', () => {
    const fault = 'its places are not in ascending order, or not in the history'
    expect(refusal(page, edited({ index: 4 }))).toContain(fault)
    expect(refusal(page, edited({ index: 1 }, { index: 1 }))).toContain(fault)
    expect(refusal(page, edited({ index: 2 }, { index: 0 }))).toContain(fault)
    expect(refusal(page, edited({ index: 0 }, { index: 3 }))).toBe('taken')
  })

  it('leaves the present exchange where it is, as far as messages before it go', () => {
    const from = (...edits: FactOf<'history_edited'>['edits']): number =>
      after(page, edited(...edits), { exchangeFrom: 2 }).exchangeFrom
    expect(from({ index: 0 }, { index: 1 })).toBe(0)
    expect(from({ index: 0 }, { index: 1, message: changed }, { index: 2 })).toBe(1)
    expect(from({ index: 3 })).toBe(2)
  })

  it('keeps every call with its results', () => {
    const paired = [started, carrying([ask, asks(1), results(1), answer])]
    expect(refusal(paired, edited({ index: 2 }))).toContain('do not match')
    expect(refusal(paired, edited({ index: 1 }, { index: 2 }))).toBe('taken')
  })

  it.each<readonly [string, FactOf<'history_edited'>['edits'], readonly Message[]]>([
    ['calls', [{ index: 1, message: asks(1) }], [gone, gone, gone]],
    ['calls at the end', [{ index: 2, message: asks(1) }], [gone, gone, gone]],
    ['results', [{ index: 1, message: results(1) }], [gone, gone, gone]],
    ['results at the beginning', [{ index: 0, message: results(1) }], [gone, gone, gone]],
    [
      'calls and results that are of other calls',
      [
        { index: 1, message: asks(1) },
        { index: 2, message: results(2) },
      ],
      [gone, gone, gone],
    ],
    [
      'nothing of a pair',
      [
        { index: 0, message: asks(1) },
        { index: 1, message: results(1) },
        { index: 2, message: changed },
      ],
      [asks(1), results(1), changed],
    ],
    ['nothing of an answer', [{ index: 1, message: answer }], [gone, answer, gone]],
  ])(
    'of messages whose content is gone leaves out what has lost its other half: %s',
    (_name, edits, left) => {
      const state = after([started, carrying([], { missing: 3 })], edited(...edits), { removedFrom: 2 })
      expect(shown(state)).toEqual(left)
    },
  )
})

describe('a summary', () => {
  const page = [guarded, carrying([ask, answer, ask, answer])]
  const grant = { turns: 0, inputTokens: 300, outputTokens: 500 }
  const summing = (more: Partial<FactOf<'compaction_started'>> = {}): Fact => ({
    ...{ type: 'compaction_started', turn: 0, model, replacedMessages: 2, requestDigest: 'd', grant },
    ...more,
  })
  const compacted = (more: Partial<FactOf<'context_compacted'>> = {}): Fact => ({
    ...{ type: 'context_compacted', turn: 0, summary: sampleMessage('Before.'), replacedMessages: 2 },
    ...{ tokensBefore: 9, tokensAfter: 3, ...more },
  })
  const interrupted: Fact = { type: 'run_resumed', turn: 0, why: 'crash', inDoubt: [] }

  it('is written once at a time, and of the same messages again after a crash', () => {
    expect(after(page, summing({ maxOutputTokens: 5 })).compacting).toEqual({
      ...{ model, replacedMessages: 2, grant, maxOutputTokens: 5 },
    })
    expect(after(page, summing()).compacting).not.toHaveProperty('maxOutputTokens')
    expect(refusal([...page, summing()], summing())).toContain('a summary is being written already')
    const stopped = [...page, summing(), interrupted]
    expect(after(stopped, summing()).compacting).toEqual({ model, replacedMessages: 2, grant })
    expect(refusal(stopped, summing({ replacedMessages: 1 }))).toContain('replaces other messages')
  })

  it('counts what an interrupted call and the call itself are taken to have used', () => {
    const spending = { usage: { inputTokens: 7, outputTokens: 0 }, costUsd: 0.5 }
    const again = after([...page, summing(), interrupted], summing({ interrupted: spending }))
    expect(again.totals).toMatchObject({ ...spending, settledUsage: spending.usage, settledCostUsd: 0.5 })
    expect(after([...page, summing(), interrupted], summing()).totals.usage).toEqual({})
    expect(after(page, compacted(spending)).totals).toMatchObject(spending)
    expect(after(page, compacted()).totals.usage).toEqual({})
  })

  it('replaces what was summed up, and nothing else', () => {
    const done = after([...page, summing()], compacted())
    expect(shown(done)).toEqual([sampleMessage('Before.'), ask, answer])
    expect(done.compacting).toBeUndefined()
    expect(done.compactedTurn).toBe(0)
    expect(refusal([...page, summing()], compacted({ replacedMessages: 1 }))).toContain(
      'it replaces other messages',
    )
  })

  it('keeps the task only where that is one of the messages of the user that it replaces', () => {
    expect(shown(after(page, compacted({ replacedMessages: 3, taskAt: 2 })))).toEqual([
      ...[sampleMessage('Before.'), ask, answer],
    ])
    expect(refusal(page, compacted({ taskAt: 2 }))).toContain("is not one of the user's that it replaces")
    expect(refusal(page, compacted({ taskAt: 1 }))).toContain("is not one of the user's that it replaces")
    expect(refusal(page, compacted({ taskAt: 0 }))).toBe('taken')
  })

  it.each([
    [0, 2, 1],
    [1, 2, 1],
    [2, 2, 1],
    [3, 2, 2],
    [3, 1, 3],
  ])(
    'of an exchange that began at %i, and %i messages, has it begin at %i',
    (exchangeFrom, replacedMessages, from) => {
      expect(after(page, compacted({ replacedMessages }), { exchangeFrom }).exchangeFrom).toBe(from)
    },
  )

  it.each([
    [3, 2, undefined, 2],
    [2, 2, undefined, 1],
    // Unchecked input is in the summary: the summary is checked.
    [1, 2, undefined, 0],
    [3, 3, 2, 2],
    [2, 3, 2, 0],
  ])(
    'moves what guardrails look at from %i on, with %i messages replaced and the task at %s, to %i',
    (from, replacedMessages, taskAt, moved) => {
      const inputCheck = { seq: 2, from, guardrails: ['cards'] }
      const fact = compacted({ replacedMessages, ...(taskAt !== undefined && { taskAt }) })
      expect(after(page, fact, { inputCheck }).inputCheck).toEqual({
        seq: 3,
        from: moved,
        guardrails: ['cards'],
      })
      expect(after(page, fact).inputCheck).toBeUndefined()
    },
  )

  it('makes a failed attempt worth another try, and changes no other', () => {
    const failed: Fact = { type: 'model_stream_failed', turn: 1, attempt: 1, failure: failure() }
    const attempt = (...more: readonly Fact[]) => {
      const state = after([...begun(), called(), ...more], compacted({ turn: 1, replacedMessages: 1 }))
      return state.phase === 'streaming' ? state.attempt.failed : 'no attempt'
    }
    expect(attempt(failed)).toEqual({ failure: failure(), shortened: true })
    expect(attempt()).toBeUndefined()
  })
})

describe('a hand-over', () => {
  const injected: Fact = { type: 'tool_results_injected', turn: 1, toolCallIds: [callId(1)] }
  const page = [...executing(['look'], { handoff: { to: 'clerk' } }), startedCall(), endedCall(), injected]
  const { definition } = started
  const handOff = (more: Partial<FactOf<'agent_handed_off'>> = {}): Fact => ({
    ...{ type: 'agent_handed_off', turn: 1, from: 'agent', to: 'clerk', definition, ...more },
  })

  it('is to the agent that a call asked for, by the agent that is active', () => {
    expect(refusal(page, handOff({ from: 'baker' }))).toContain('the active agent is agent')
    expect(refusal(page, handOff({ to: 'baker' }))).toContain('no call asked for baker')
    expect(after(page, handOff(), { repairs: 2, model })).toMatchObject({ agent: 'clerk', repairs: 0 })
    expect(after(page, handOff(), { repairs: 2, model })).not.toHaveProperty('model')
    expect(refusal([...page, handOff()], handOff({ from: 'clerk' }))).toContain('no call asked for clerk')
  })

  it.each<readonly [string, readonly Message[], number]>([
    ['the user said last', [ask, answer, ask], 2],
    ['the user said first', [ask, answer], 0],
    ['no user said anything', [answer, answer], 0],
  ])('begins the exchange where %s', (_name, messages, from) => {
    const state = after(page, handOff({ messages }), { exchangeFrom: 1 })
    expect(shown(state)).toEqual(messages)
    expect(state.exchangeFrom).toBe(from)
  })

  it('has guardrails look again at all that it shows, and at nothing new where it shows the same', () => {
    const inputCheck = { seq: 2, from: 1, guardrails: ['cards'] }
    const { seq } = given(page).state!
    expect(after(page, handOff({ messages: [ask] }), { inputCheck }).inputCheck).toEqual({
      ...{ seq: seq + 1, from: 0, guardrails: ['cards'] },
    })
    expect(after(page, handOff(), { inputCheck }).inputCheck).toEqual(inputCheck)
    expect(refusal(page, handOff({ messages: [asks(1)] }))).toContain('do not match')
  })

  it('changes the estimate by what the definitions differ by', () => {
    const { contextTokens } = given(page).state!
    expect(after(page, handOff()).contextTokens).toBe(contextTokens)
    const more = { ...definition, instructions: `${definition.instructions}${'x'.repeat(35)}` }
    expect(after(page, handOff({ definition: more })).contextTokens).toBe(contextTokens + 10)
    const less = { ...definition, instructions: '', tools: [] }
    expect(after(page, handOff({ definition: less }), { contextTokens: 3 }).contextTokens).toBe(0)
  })
})
