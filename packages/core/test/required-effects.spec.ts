import { describe, expect, it } from 'vitest'
import { given } from '@tallystick/testkit'
import { requiredEffects } from '@tallystick/core/machine'
import type { Fact } from '@tallystick/core/vocabulary'
import { listAnsweredCalls, findDueInputChecks, findStopReason } from '../src/machine/required-effects.ts'
import type { Call, CollectingState, ExecutingState, RunState } from '../src/machine/state.ts'
import {
  answered,
  begun,
  called,
  callId,
  executing,
  replyFinished,
  requested,
  startedCall,
  endedCall,
} from './pages.ts'

const outputGuardrail = { name: 'polite', on: 'output' } as const
const resultGuardrail = { name: 'clean', on: 'tool_output' } as const
const cancel = { at: 1, reason: 'Enough.' } as const
const blocked = { on: 'input', guardrail: 'polite', detail: 'rude' } as const

/** The state of a page, with more to it than the page says. */
function stateOf<State extends RunState>(page: readonly Fact[], more: Partial<State> = {}): State {
  return { ...given(page).state, ...more } as State
}

function withDefinition<State extends RunState>(state: State, more: Partial<RunState['definition']>): State {
  return { ...state, definition: { ...state.definition, ...more } }
}

const keys = (state: RunState): readonly string[] => requiredEffects(state).map(({ key }) => key)

describe('an answer', () => {
  const answer = (more: Partial<CollectingState> = {}): CollectingState =>
    withDefinition(stateOf<CollectingState>(answered('end'), more), { guardrails: [outputGuardrail] })
  const strict = (more: Partial<CollectingState> = {}): CollectingState =>
    withDefinition(answer(more), { output: { schema: { type: 'object' }, maxRepairs: 1 } })
  const replyWith = (more: Partial<CollectingState['reply']>): Partial<CollectingState> => ({
    reply: { ...answer().reply, ...more },
  })

  it.each([
    ['end', true],
    ['tool_use', true],
    ['other', true],
    ['paused', false],
    ['max_tokens', false],
    ['refused', false],
  ] as const)('that stopped with %s is checked: %s', (stopReasonOfReply, isChecked) => {
    const state = withDefinition(stateOf(answered(stopReasonOfReply)), { guardrails: [outputGuardrail] })
    expect(keys(state)).toEqual(isChecked ? ['guardrails output 1'] : [])
  })

  it('that was cut off is not checked', () => {
    const page = [...begun(), called(), replyFinished([], { partial: true, stopReason: 'end', parts: [] })]
    expect(keys(withDefinition(stateOf(page), { guardrails: [outputGuardrail] }))).toEqual([])
  })

  it('is checked by the schema first, then by the guardrails that look at answers', () => {
    expect(keys(strict())).toEqual(['output 1'])
    expect(keys(strict(replyWith({ fit: { valid: true } })))).toEqual(['guardrails output 1'])
    expect(keys(strict(replyWith({ guarded: true })))).toEqual(['output 1 guarded'])
    expect(keys(strict(replyWith({ fit: { valid: true }, guarded: true })))).toEqual([])
    expect(keys(answer(replyWith({ guarded: true })))).toEqual([])
    expect(keys(withDefinition(answer(), { guardrails: [resultGuardrail] }))).toEqual([])
    expect(requiredEffects(answer())).toMatchObject([{ guardrails: ['polite'], on: 'output' }])
  })

  it('that does not fit is left alone only where newer input has it written again', () => {
    const misfit = replyWith({ fit: { valid: false } })
    expect(keys(strict(misfit))).toEqual(['guardrails output 1'])
    expect(keys(strict({ ...misfit, inputSinceReply: true }))).toEqual([])
    expect(keys(strict({ ...replyWith({ fit: { valid: true } }), inputSinceReply: true }))).toEqual([
      'guardrails output 1',
    ])
  })

  it('is checked no more after a cancel or a block', () => {
    expect(keys(strict({ cancel }))).toEqual([])
    expect(keys(strict({ blocked }))).toEqual([])
  })
})

describe('input', () => {
  const inputCheck = { seq: 2, from: 0, guardrails: ['before', 'beside'] }
  const guardrails = [
    { name: 'before', on: 'input' },
    { name: 'beside', on: 'input', beside: true },
  ] as const
  const asked = (more: Partial<RunState> = {}): RunState =>
    withDefinition(stateOf<RunState>(begun(), { inputCheck, ...more }), { guardrails })

  it('is checked before the model call and beside it, by the guardrails that have not looked', () => {
    expect(findDueInputChecks(asked())).toEqual({ before: ['before'], beside: ['beside'] })
    expect(keys(asked())).toEqual(['guardrails input before 2', 'guardrails input beside 2'])
    const rest = { ...inputCheck, guardrails: ['beside'] }
    expect(requiredEffects(asked({ inputCheck: rest }))).toMatchObject([
      { kind: 'guardrails', on: 'input', guardrails: ['beside'], inputCheck: rest },
    ])
    expect(findDueInputChecks(stateOf(begun()))).toEqual({ before: [], beside: [] })
  })

  it('is checked no more after a cancel, a block, or the end', () => {
    expect(keys(asked({ cancel }))).toEqual([])
    expect(keys(asked({ blocked }))).toEqual([])
    expect(keys(asked({ phase: 'done' }))).toEqual([])
  })

  it('keeps calls from being checked until it is through, and a block for good', () => {
    const calls = [requested(1)]
    const page = [...begun(), called(), ...calls, replyFinished(calls)]
    expect(keys(stateOf(page))).toEqual(['check 1'])
    expect(keys(stateOf<CollectingState>(page, { inputCheck }))).not.toContain('check 1')
    expect(keys(stateOf<CollectingState>(page, { blocked }))).toEqual([])
  })
})

describe('a model that answers or sums up', () => {
  it('is called once for each attempt that has not failed', () => {
    expect(keys(stateOf([...begun(), called()]))).toEqual(['model 1 1'])
    const failed = [...begun(), called(), failedAttempt]
    expect(keys(stateOf(failed))).toEqual([])
  })

  it('sums up until a cancel or an interruption', () => {
    const grant = { inputTokens: 10 }
    const compacting = { replacedMessages: 2, grant, model: { provider: 'a', api: 'b', modelId: 'c' } }
    const summing = (more: object): RunState => ({
      ...stateOf(begun()),
      compacting: { ...compacting, maxOutputTokens: 5 },
      ...more,
    })
    expect(keys(summing({}))).toEqual(['summarize 0'])
    expect(keys(summing({ cancel }))).toEqual([])
    expect(keys(summing({ compacting: { ...compacting, interrupted: true } }))).toEqual([])
  })
})

const failedAttempt: Fact = {
  ...{ type: 'model_stream_failed', turn: 1, attempt: 1 },
  failure: { class: 'overloaded', message: 'Too busy.', retryable: true },
}

describe('a tool', () => {
  const working = (call: Partial<Call> = {}, more: Partial<ExecutingState> = {}): ExecutingState => {
    const state = stateOf<ExecutingState>([...executing(), startedCall(1)], more)
    return { ...state, calls: state.calls.map((each) => ({ ...each, ...call })) }
  }
  const timeUp = { limit: 'maxDurationMs', max: 1, used: 1, policy: 'stop', at: 1 } as const
  const id = working().calls[0]?.toolCallId

  it('has to stop when the run is cancelled, or out of time and not asking for more', () => {
    expect(findStopReason(working())).toBeUndefined()
    expect(findStopReason(working({}, { cancel }))).toBe('Enough.')
    expect(findStopReason(working({}, { cancel: { at: 1 } }))).toBe('The run was cancelled.')
    expect(findStopReason(working({}, { metLimit: timeUp }))).toBe('The time of the run is up.')
    expect(findStopReason(working({}, { metLimit: { ...timeUp, policy: 'ask' } }))).toBeUndefined()
    expect(findStopReason(working({}, { metLimit: { ...timeUp, limit: 'maxTurns' } }))).toBeUndefined()
  })

  it('runs under one key, and keeps it while it has to stop', () => {
    const key = `tool ${id} 1`
    expect(requiredEffects(working())).toMatchObject([{ kind: 'tool', key }])
    expect(requiredEffects(working())[0]).not.toHaveProperty('cancelReason')
    expect(requiredEffects(working({}, { cancel }))).toMatchObject([{ key, cancelReason: 'Enough.' }])
  })

  it('runs on while others are deferred, in doubt or settled', () => {
    const names = ['look', 'look', 'look']
    const [one, two, three] = [1, 2, 3].map((ordinal) => startedCall(ordinal))
    const deferred: Fact = {
      ...{ type: 'tool_deferred', turn: 1, toolCallId: callId(2), attempt: 1, receipt: 'job-1' },
    }
    const page = [...executing(names), one!, two!, three!, deferred]
    const first = `tool ${callId(1)} 1`
    expect(keys(stateOf(page))).toEqual([first, `tool ${callId(3)} 1`])
    expect(keys(stateOf([...page, endedCall(3)]))).toEqual([first])
    expect(keys(stateOf([...page, endedCall(3), endedCall(1)]))).toEqual([])
  })

  it.each([
    ['deferred', { cancel }, true],
    ['deferred', { metLimit: timeUp }, true],
    ['deferred', {}, false],
    ['in_doubt', { cancel }, true],
    ['in_doubt', { metLimit: timeUp }, false],
    ['in_doubt', {}, false],
  ] as const)('that is an agent and %s is stopped under %o: %s', (status, more, isStopped) => {
    const child = working({ status, child: 'other', recovery: 'rerun' }, more)
    expect(keys(child)).toEqual(isStopped ? [`tool ${id} 1 stop`] : [])
    expect(keys(working({ status, recovery: 'rerun' }, more))).toEqual([])
  })

  it('in doubt is reconciled where it can be, once by each writer', () => {
    const doubtful = working({ status: 'in_doubt', recovery: 'reconcile' })
    expect(requiredEffects(doubtful)).toMatchObject([
      { kind: 'reconcile', key: `reconcile ${id} ${doubtful.epoch}` },
    ])
    expect(keys(working({ status: 'settled', recovery: 'reconcile' }))).toEqual([])
    expect(keys(working({ status: 'awaiting_approval' }))).toEqual([])
  })
})

describe('the results of a turn', () => {
  const two = executing(['look', 'look'])
  const both = [...two, startedCall(1), startedCall(2), endedCall(1), endedCall(2)]
  const settled = (page = both, more: Partial<ExecutingState> = {}): ExecutingState =>
    withDefinition(stateOf<ExecutingState>(page, more), { guardrails: [resultGuardrail] })

  it('are checked when all of them are there', () => {
    expect(requiredEffects(settled())).toMatchObject([
      { kind: 'guardrails', key: 'guardrails results 1', on: 'tool_output', guardrails: ['clean'] },
    ])
    expect(keys(settled(both.slice(0, -1)))).toEqual([expect.stringMatching(/^tool .* 1$/)])
    expect(keys(withDefinition(settled(), { guardrails: [outputGuardrail] }))).toEqual([])
    expect(keys(withDefinition(settled(), { guardrails: undefined as never }))).toEqual([])
  })

  it('are checked once, and not after a cancel', () => {
    expect(keys(settled(both, { resultsChecked: true }))).toEqual([])
    expect(keys(settled(both, { cancel }))).toEqual([])
  })

  it.each([
    ['success', true],
    ['failed', true],
    ['timed_out', true],
    ['repeated', true],
    ['denied', false],
    ['cancelled', false],
  ] as const)('that are %s come from a tool: %s', (outcome, isFromTool) => {
    const state = settled()
    const calls = state.calls.map((call) => ({ ...call, result: { ...call.result!, outcome } }))
    expect(listAnsweredCalls({ ...state, calls })).toHaveLength(isFromTool ? 2 : 0)
    expect(keys({ ...state, calls })).toEqual(isFromTool ? ['guardrails results 1'] : [])
  })

  it('come from the calls that have one', () => {
    expect(listAnsweredCalls(settled(both.slice(0, -1)))).toHaveLength(1)
  })
})
