import { deriveIdempotencyKey } from '@tallystick/core/internal'
import { describe, expect, it } from 'vitest'
import {
  computeDigest,
  type Fact,
  type FactOf,
  type Grant,
  type ParentRef,
} from '@tallystick/core/vocabulary'
import { given, sampleRunId } from '@tallystick/testkit'
import type { Call, ExecutingState } from '../src/machine/state.ts'
import { begun, called, callId, executing, replyFinished, requested, runId, verdict, wrote } from './pages.ts'

function working(call: Partial<Call> = {}, more: Partial<ExecutingState> = {}): ExecutingState {
  const state = given(executing()).state as ExecutingState
  return { ...state, ...more, calls: state.calls.map((each) => ({ ...each, ...call })) }
}

describe('the start of a call', () => {
  const input = { call: 1 }
  const key = deriveIdempotencyKey(runId, callId(1))
  const started = (more: Partial<FactOf<'tool_started'>> = {}): Fact => ({
    ...{ type: 'tool_started', turn: 1, toolCallId: callId(1), name: 'look', attempt: 1 },
    ...{ effect: 'read', idempotencyKey: key, inputDigest: computeDigest(input), ...more },
  })
  const doubtful = { status: 'in_doubt', attempts: 1 } as const
  const child = sampleRunId(7)
  const forked = (writes: ParentRef['writes']): Partial<ExecutingState> => ({
    parent: { runId: sampleRunId(9), seq: 3, relation: 'fork', ...(writes && { writes }) },
  })
  const limited = { limits: { maxToolCalls: 4, maxTurns: 9 } }
  const grant: Grant = { turns: 3, toolCalls: 3 }

  it.each<readonly [string, ExecutingState, Partial<FactOf<'tool_started'>>, string]>([
    ['as it was collected', working(), {}, 'sound'],
    [
      'by an earlier release, which recorded no digest of the input',
      working(),
      { inputDigest: undefined as never },
      'sound',
    ],
    ['with another input', working(), { inputDigest: computeDigest({}) }, '13: call'],
    ['with an input that was changed on record', working({ input: {} }), {}, '13: call'],
    ['past the limit', working({}, { limits: { maxToolCalls: 0 } }), {}, '9: call'],
    ['at the limit', working({}, { limits: { maxToolCalls: 1 } }), {}, 'sound'],
    [
      'again past the limit',
      working({ ...doubtful, recovery: 'rerun' }, { limits: { maxToolCalls: 0 } }),
      { attempt: 2 },
      'sound',
    ],
    ['again as its tool allows', working({ ...doubtful, recovery: 'reconcile' }), { attempt: 2 }, 'sound'],
    [
      'again though a person is to be asked',
      working({ ...doubtful, recovery: 'ask' }),
      { attempt: 2 },
      '10: call',
    ],
    [
      'again though it is to be reported',
      working({ ...doubtful, recovery: 'report' }),
      { attempt: 2 },
      '10: call',
    ],
    ['under another key', working(), { idempotencyKey: 'mine' }, '10: the idempotency key'],
    ['as a write', working(), { effect: 'write' }, '10: call'],
    ['as a read that was collected as a write', working({ effect: 'write' }), {}, '10: call'],
    ['as a write of unknown effect', working({ effect: undefined as never }), { effect: 'write' }, 'sound'],
    ['as a read of unknown effect', working({ effect: undefined as never }), {}, '10: call'],
    ['as a write of a fork', working({ effect: 'write' }, forked('ask')), { effect: 'write' }, '8: call'],
    [
      'as a write of a fork that performs them',
      working({ effect: 'write' }, forked('run')),
      { effect: 'write' },
      'sound',
    ],
    [
      'as a write of a fork that the record answers',
      working({ effect: 'write' }, forked('ask')),
      { effect: 'write', recorded: callId(2) },
      'sound',
    ],
    [
      'as a write of a fork, answered when it was collected',
      working({ effect: 'write', recorded: callId(2) }, forked('ask')),
      { effect: 'write' },
      'sound',
    ],
    [
      'as a write that a fork shares',
      working({ effect: 'write' }, { parent: { ...forked('ask').parent!, seq: 99 } }),
      { effect: 'write' },
      'sound',
    ],
    ['of a child run without a grant', working(), { child }, '9: call'],
    ['with a grant for no child run', working(), { grant }, '9: call'],
    ['of a child run within what is left', working({}, limited), { child, grant }, 'sound'],
    [
      'of a child run beside whose start too little is left',
      working({}, limited),
      { child, grant: { ...grant, toolCalls: 4 } },
      '9: call',
    ],
    [
      'of a child run whose grant bounds too little',
      working({}, limited),
      { child, grant: { turns: 3 } },
      '9: call',
    ],
    [
      'of a child run again under its grant',
      working({ ...doubtful, recovery: 'rerun', grant }),
      { attempt: 2, child, grant },
      'sound',
    ],
    [
      'of a child run again under another grant',
      working({ ...doubtful, recovery: 'rerun', grant }),
      { attempt: 2, child, grant: {} },
      '9: call',
    ],
  ])('%s', (_name, state, more, said) => {
    expect(verdict(state, started(more)).slice(0, said.length)).toBe(said)
  })
})

describe('a question to a person, and what was collected', () => {
  it('are about the arguments of the call', () => {
    const asked = (inputDigest: string): Fact => ({
      ...{
        type: 'approval_requested',
        turn: 1,
        toolCallId: callId(1),
        name: 'look',
        attempt: 1,
        inputDigest,
      },
    })
    const state = working({ status: 'to_ask' })
    expect(verdict(state, asked(computeDigest({ call: 1 })))).toBe('sound')
    expect(verdict(state, asked('x'))).toMatch(/^13: call .* is asked about with other arguments/)
    const calls = [requested(1)]
    const collecting = given([...begun(), called(), ...calls, replyFinished(calls)]).state!
    const collected = (more: object): Fact => ({
      ...{ type: 'tool_requests_collected', turn: 1 },
      calls: [{ toolCallId: callId(1), name: 'look', plan: 'run', inputDigest: computeDigest({}), ...more }],
    })
    expect(verdict(collecting, collected({}))).toBe('sound')
    expect(verdict(collecting, collected({ input: { a: 1 }, inputDigest: computeDigest({ a: 1 }) }))).toBe(
      'sound',
    )
    expect(verdict(collecting, collected({ input: { a: 1 } }))).toMatch(/^13: the digest of call/)
    // What is gone cannot be compared.
    expect(verdict({ ...state, removedFrom: 1 }, asked('x'))).toBe('sound')
  })
})

describe('a message', () => {
  const page = [...begun(), called(), wrote('Hm.', 2), wrote('Well. ', 0), requested(2)]
  const text = (said: string) => ({ type: 'text' as const, text: said })
  const call = {
    type: 'tool_call' as const,
    toolCallId: callId(2),
    providerCallId: 'c',
    name: 'look',
    input: {},
  }
  const message = (more: Partial<FactOf<'assistant_message_finished'>>): string =>
    verdict(given(page).state!, replyFinished([], { parts: [text('Well. '), call, text('Hm.')], ...more }))

  it('is what was streamed and requested, to the letter', () => {
    expect(message({})).toBe('sound')
    expect(message({ parts: [text('Hm.'), call, text('Well. ')] })).toMatch(/^12: the text of the message/)
    expect(message({ parts: [text('Well. Hm.'), { ...call, input: { a: 1 } }] })).toMatch(/^12: call/)
    expect(message({ parts: [text('Well. Hm.'), { ...call, name: 'pay' }] })).toMatch(/^12: call/)
    expect(message({ parts: [text('Well. Hm.'), { ...call, providerCallId: 'd' }] })).toMatch(/^12: call/)
    const reasoned = { type: 'reasoning' as const, text: 'So.' }
    expect(message({ parts: [text('Well. Hm.'), call, reasoned] })).toMatch(/^12: the reasoning/)
  })

  it('names a place for each part, in order', () => {
    for (const places of [
      [0, 1, 2],
      [0, 3, 9],
      [1, 1, 2],
    ])
      expect(message({ places })).toBe('sound')
    for (const places of [
      [0, 1],
      [0, 2, 1],
      [0, 1, 2, 3],
      [-1, 1, 2],
    ]) {
      expect(message({ places })).toMatch(/^12: the places of the message are not those of its 3 parts/)
    }
  })
})
