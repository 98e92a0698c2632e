import { describe, expect, it } from 'vitest'
import type { RuntimeEvent } from '@tallystick/core'
import { evolve } from '@tallystick/core/machine'
import type { Fact, FactOf, StopReason } from '@tallystick/core/vocabulary'
import { sampleFacts, given, sampleMessage, sampleRunId, stampFacts } from '@tallystick/testkit'
import { estimateDefinitionTokens } from '../src/machine/tokens.ts'
import { readMessages } from '../src/machine/history.ts'
import type { Call, RunState } from '../src/machine/state.ts'
import { openTurnCalls } from '../src/machine/calls.ts'
import {
  after,
  answered,
  begun,
  called,
  callId,
  cancelRequested,
  endedCall,
  executing,
  failure,
  refusal,
  replyFinished,
  requested,
  runId,
  startedCall,
  wrote,
} from './pages.ts'

const failed: Fact = { type: 'model_stream_failed', turn: 1, attempt: 1, failure: failure(), retryAt: 0 }
const resumed = (more: Partial<FactOf<'run_resumed'>> = {}): Fact => ({
  ...{ type: 'run_resumed', turn: 1, why: 'crash', inDoubt: [], ...more },
})
const more: FactOf<'input_received'> = {
  ...{ type: 'input_received', turn: 1, message: sampleMessage('More.'), delivery: 'steer', receipt: 'r1' },
}
const settled = (delivered: boolean, receipt = 'r1'): Fact => ({
  ...{ type: 'input_settled', turn: 1, receipt, delivered },
})
const { definition } = given(begun()).state!
const guarded = {
  ...definition,
  guardrails: [
    { name: 'cards', on: 'input' },
    { name: 'polite', on: 'output' },
  ],
} as const

describe('the first event', () => {
  it('says what the run is, and everything else begins at nothing', () => {
    const facts = {
      ...sampleFacts(runId).run_started,
      subject: 's',
      modelSettings: { temperature: 0.5 },
      withContext: true as const,
    }
    const [event] = stampFacts(runId, [facts])
    const { type: _type, v: _v, ...said } = event as RuntimeEvent
    expect(evolve(undefined, event!)).toMatchObject({
      ...{
        ...said,
        phase: 'idle',
        startedAt: event!.at,
        waitedMs: 0,
        exchangeFrom: 0,
        repairs: 0,
        takeOvers: 0,
      },
      totals: {
        ...{
          turns: 0,
          toolCalls: 0,
          toolCallsByTool: {},
          usage: {},
          settledUsage: {},
          latestUsage: {},
        },
        children: { runs: 0, turns: 0, toolCalls: 0 },
      },
      ...{
        contextTokens: estimateDefinitionTokens(facts.definition),
        reportedTokens: 0,
        estimateFactor: 1,
        lastText: '',
      },
      ...{ errorStreaks: {}, pendingInputs: [], inputSinceReply: false },
    })
    const { state } = given(begun().slice(0, 1))
    for (const field of ['subject', 'modelSettings', 'withContext', 'sessionId', 'parent', 'removedFrom']) {
      expect(state).not.toHaveProperty(field)
    }
    const removed = { kind: 'redacted', at: 1 } as const
    expect(evolve(undefined, { ...event!, removed }).removedFrom).toBe(1)
  })
})

describe('what a run has used', () => {
  it('is at first one object for all runs, which no reader can change', () => {
    const [started] = stampFacts(runId, [sampleFacts(runId).run_started])
    const { totals } = evolve(undefined, started!)
    expect(() => Object.assign(totals, { turns: 7 })).toThrow(TypeError)
    expect(() => Object.assign(totals.toolCallsByTool, { pay: 1 })).toThrow(TypeError)
  })
})

describe('every event', () => {
  const state = given(begun()).state!
  const next = (more: Partial<RuntimeEvent>): RunState =>
    evolve(state, { ...stampFacts(runId, [called()], { afterSeq: 2 })[0]!, ...more } as RuntimeEvent)

  it('is of the run, the next of it, by no earlier writer, in the turn that is due', () => {
    expect(next({ epoch: 4 })).toMatchObject({ seq: 3, epoch: 4, turn: 1 })
    expect(() => next({ runId: sampleRunId(2) })).toThrow(`it belongs to run ${sampleRunId(2)}`)
    expect(() => next({ seq: 4 })).toThrow('seq 4 follows 2')
    expect(() => next({ seq: 2 })).toThrow('seq 2 follows 2')
    expect(() => next({ epoch: 0 })).toThrow('epoch 0 follows 1')
    expect(() => next({ turn: 0 })).toThrow('turn 0 follows 0')
    expect(() => next({ turn: 2 })).toThrow('turn 2 follows 0')
    expect(refusal([...begun(), called(), failed], called(2, 2))).toContain('turn 2 follows 1')
    expect(refusal(begun(), { ...cancelRequested, turn: 1 })).toContain('turn 1 follows 0')
  })

  it('whose content is gone is remembered, the first of them', () => {
    const removed = { kind: 'redacted', at: 1 } as const
    const first = next({ removed })
    expect([next({}).removedFrom, first.removedFrom]).toEqual([undefined, 3])
    const [second] = stampFacts(runId, [wrote('Hm.')], { afterSeq: 3 })
    expect(evolve(first, { ...second!, removed }).removedFrom).toBe(3)
  })
})

describe('input', () => {
  it('begins an exchange, and has to be checked where there is a guardrail for it', () => {
    const page = begun().slice(0, 1)
    const start = begun()[1]!
    const state = after(page, start, { definition: guarded })
    expect(state).toMatchObject({
      inputSinceReply: true,
      inputCheck: { seq: 2, from: 0, guardrails: ['cards'] },
    })
    expect(after(page, start)).not.toHaveProperty('inputCheck')
    const carried: Fact = { type: 'history_carried', turn: 0, messages: [sampleMessage('Before.')] }
    expect(after([...page, carried], start).exchangeFrom).toBe(1)
    const check = { seq: 2, from: 0, guardrails: ['cards'] }
    expect(after([...page, carried], start, { definition: guarded, inputCheck: check }).inputCheck).toEqual({
      ...{ seq: 3, from: 0, guardrails: ['cards'] },
    })
  })

  it('that comes later waits for its place, under an id of its own', () => {
    const page = [...begun(), called()]
    expect(after(page, more)).toMatchObject({
      ...{
        pendingInputs: [{ inputId: 'r1', delivery: 'steer', message: more.message }],
        inputSinceReply: true,
      },
    })
    expect(refusal([...page, more], more)).toContain('input that comes later needs an id of its own')
    const { receipt: _receipt, ...nameless } = more
    expect(refusal(page, nameless)).toContain('input that comes later needs an id of its own')
    expect(after([...page, more], { ...more, receipt: 'r2' }).pendingInputs).toHaveLength(2)
  })

  it('enters the history when it is delivered, and leaves nothing when it is not', () => {
    const page = [...answered('end'), more]
    const delivered = after(page, settled(true))
    expect(delivered).toMatchObject({ pendingInputs: [], inputSinceReply: true })
    expect(readMessages(delivered.history).at(-1)).toEqual(more.message)
    const dropped = after(page, settled(false))
    expect(dropped).toMatchObject({ pendingInputs: [], inputSinceReply: false })
    expect(readMessages(dropped.history)).toHaveLength(2)
    expect(refusal(page, settled(true, 'r9'))).toContain('no input r9 waits')
    const two = [...page, { ...more, receipt: 'r2' }]
    expect(after(two, settled(false)).pendingInputs).toMatchObject([{ inputId: 'r2' }])
  })

  it('enters the history where nothing is open', () => {
    expect(refusal([...begun(), called(), more], settled(true))).toContain('a model call is in flight')
    expect(refusal([...executing(), more], settled(true))).toContain('has no result')
    expect(refusal([...executing(), more], settled(false))).toBe('taken')
  })

  it.each<readonly [StopReason, boolean, number]>([
    ['end', false, 2],
    ['tool_use', false, 2],
    ['other', false, 2],
    ['paused', false, 0],
    ['max_tokens', false, 0],
    ['end', true, 0],
  ])(
    'after a reply that stopped with %s, cut off: %s, is of the exchange from %i on',
    (stopReason, partial, from) => {
      const parts = [{ type: 'text', text: 'Hm.' }] as const
      const page = [
        ...begun(),
        called(),
        wrote('Hm.'),
        replyFinished([], { stopReason, partial, parts }),
        more,
      ]
      expect(after(page, settled(true)).exchangeFrom).toBe(from)
    },
  )

  it('after results is of the exchange that they are of', () => {
    const injected: Fact = { type: 'tool_results_injected', turn: 1, toolCallIds: [callId(1)] }
    const page = [...executing(), startedCall(), endedCall(), injected, more]
    expect(after(page, settled(true)).exchangeFrom).toBe(0)
  })
})

describe('a resume', () => {
  const statuses = (state: RunState): readonly Call['status'][] =>
    openTurnCalls(state).map(({ status }) => status)

  it('counts as a take-over where something was in flight', () => {
    expect(after([...begun(), called()], resumed()).takeOvers).toBe(1)
    expect(after([...begun(), called(), failed], resumed()).takeOvers).toBe(0)
    expect(after([...executing(), startedCall()], resumed(), { takeOvers: 2 }).takeOvers).toBe(3)
  })

  it('leaves calls in doubt that ran, and no others', () => {
    expect(statuses(after([...executing(['look', 'look']), startedCall(1)], resumed()))).toEqual([
      'in_doubt',
      'ready',
    ])
  })

  it('has a summary made again that was being written', () => {
    const compacting = { model: definition.model, replacedMessages: 1, grant: {} }
    expect(after(answered('paused'), resumed(), { compacting }).compacting).toEqual({
      ...compacting,
      interrupted: true,
    })
    expect(after(answered('paused'), resumed())).not.toHaveProperty('compacting')
  })

  it('waits no more for guardrails that the code of today does not name', () => {
    const inputCheck = { seq: 2, from: 0, guardrails: ['cards', 'old'] }
    const page = answered('paused')
    expect(after(page, resumed({ definition: guarded }), { inputCheck }).inputCheck?.guardrails).toEqual([
      'cards',
    ])
    expect(after(page, resumed(), { inputCheck })).not.toHaveProperty('inputCheck')
    expect(after(page, resumed({ definition: guarded }))).toMatchObject({ definition: guarded })
  })

  it('keeps the model that took over, as long as the agent names it', () => {
    const model = { ...definition.model, modelId: 'second' }
    const naming = { ...definition, fallbacks: [{ model }] }
    const page = answered('paused')
    expect(after(page, resumed({ definition: naming }), { model }).model).toEqual(model)
    expect(after(page, resumed(), { model })).not.toHaveProperty('model')
  })
})

describe('time in which nothing is in flight', () => {
  it('does not count as work', () => {
    const wait = (page: readonly Fact[], fact: Fact, ms: number): number => {
      const state = given(page).state!
      const [event] = stampFacts(runId, [fact], { afterSeq: state.seq })
      return evolve(state, { ...event!, at: state.at + ms }).waitedMs - state.waitedMs
    }
    expect(wait(begun().slice(0, 1), begun()[1]!, 50)).toBe(50)
    expect(wait(begun().slice(0, 1), begun()[1]!, -50)).toBe(0)
    expect(wait([...begun(), called()], wrote('Hm.'), 50)).toBe(0)
    expect(wait([...begun(), called()], resumed(), 50)).toBe(50)
  })
})

describe('a limit, a cancel and the end', () => {
  const met: Fact = { type: 'limit_reached', turn: 1, limit: 'maxTurns', max: 1, used: 1, policy: 'ask' }
  const raised = (limit: 'maxTurns' | 'maxToolCalls'): Fact => ({
    ...{ type: 'limit_raised', turn: 1, limit, max: 9, by: 'ada' },
  })

  it('a limit is met until it is raised', () => {
    const page = [...answered('paused', { maxTurns: 1 }), met]
    const { at } = given(page).state!
    expect(given(page).state?.metLimit).toEqual({ limit: 'maxTurns', policy: 'ask', at })
    expect(after(page, raised('maxTurns'))).not.toHaveProperty('metLimit')
    expect(after(page, raised('maxTurns')).limits).toEqual({ maxTurns: 9 })
    expect(after(page, raised('maxToolCalls'))).toMatchObject({
      metLimit: {},
      limits: { maxTurns: 1, maxToolCalls: 9 },
    })
  })

  it('a cancel keeps who asked for it and why', () => {
    const page = answered('paused')
    const at = given(page).state!.at + 1
    expect(after(page, cancelRequested).cancel).toEqual({ at })
    expect(after(page, { ...cancelRequested, by: 'ada', reason: 'Enough.' } as Fact).cancel).toEqual({
      ...{ at, by: 'ada', reason: 'Enough.' },
    })
  })

  it('the end keeps why, once all is closed, and nothing of the phase before it', () => {
    const end: Fact = { type: 'run_finished', turn: 1, reason: 'answered', turns: 1, toolCalls: 0, usage: {} }
    const done = after(answered('end'), end)
    expect(done).toMatchObject({ phase: 'done', reason: 'answered', lastText: 'Hm.' })
    for (const field of ['detail', 'reply', 'calls']) expect(done).not.toHaveProperty(field)
    expect(after(answered('end'), { ...end, detail: 'So.' })).toMatchObject({ detail: 'So.' })
    expect(refusal([...answered('end'), more], end)).toContain('input r1 is not settled')
    const calls = [requested(1)]
    expect(refusal([...begun(), called(), ...calls, replyFinished(calls)], end)).toContain('has no result')
  })

  it('a provider’s id of a reply is remembered', () => {
    const started: Fact = { type: 'assistant_started', turn: 1, attempt: 1, providerMessageId: 'm1' }
    const { providerMessageId: _id, ...nameless } = started
    const page = [...begun(), called()]
    expect(after(page, started)).toMatchObject({ attempt: { providerMessageId: 'm1' } })
    const state = after(page, nameless)
    expect(state.phase === 'streaming' && state.attempt).not.toHaveProperty('providerMessageId')
  })
})
