import { decide } from '@tallystick/core/machine'
import { computeDigest, type Fact, type Signal } from '@tallystick/core/vocabulary'
import { given, stampFacts } from '@tallystick/testkit'
import { describe, expect, it } from 'vitest'
import type { RunState } from '../src/machine/state.ts'
import {
  begun,
  called,
  callId,
  collected,
  endedCall,
  executing,
  replyFinished,
  requested,
  runId,
  startedCall,
} from './pages.ts'

const streaming = [...begun(), called()]

describe('given a reply with calls, when they are checked', () => {
  const calls = [requested(1, 'look', { at: 'sky' }), requested(2, 'pay', { usd: 5 }), requested(3, 'dream')]
  const collecting = [...streaming, ...calls, replyFinished(calls)]

  it('each gets its plan, with the digest of its input, in the order of the reply', () => {
    given(collecting)
      .when({
        ...{ type: 'calls_checked', turn: 1 },
        calls: [
          {
            toolCallId: callId(2),
            effect: 'write',
            recovery: 'report',
            verdict: { kind: 'ask', reason: 'money' },
          },
          { toolCallId: callId(1), effect: 'read', recovery: 'rerun', verdict: { kind: 'run' } },
          { toolCallId: callId(3), verdict: { kind: 'refuse', outcome: 'unknown_tool', text: 'No dream.' } },
        ],
      })
      .then([
        {
          ...{ type: 'tool_requests_collected', turn: 1 },
          calls: [
            {
              ...{ toolCallId: callId(1), name: 'look', plan: 'run', effect: 'read', recovery: 'rerun' },
              inputDigest: computeDigest({ at: 'sky' }),
            },
            {
              ...{ toolCallId: callId(2), name: 'pay', plan: 'ask', effect: 'write', recovery: 'report' },
              ...{ inputDigest: computeDigest({ usd: 5 }), reason: 'money' },
            },
            {
              ...{ toolCallId: callId(3), name: 'dream', plan: 'settle', inputDigest: computeDigest({}) },
              refusal: { outcome: 'unknown_tool', text: 'No dream.' },
            },
          ],
        },
      ])
  })

  it('an unchecked call has no tool', () => {
    const { decision } = given(collecting).when({ type: 'calls_checked', turn: 1, calls: [] })
    expect(decision).toMatchObject({
      facts: [{ calls: [1, 2, 3].map(() => ({ plan: 'settle', refusal: { outcome: 'unknown_tool' } })) }],
    })
  })

  it('a check that comes too late changes nothing', () => {
    const checked: Signal = { type: 'calls_checked', turn: 1, calls: [] }
    given(executing()).when(checked).then([])
    given(streaming).when(checked).then([])
    given(collecting)
      .when({ ...checked, turn: 2 })
      .then([])
  })
})

describe('given a call that runs, when its tool', () => {
  const running = [...executing(['look', 'look']), startedCall(1)]
  const ended = (attempt = 1, ordinal = 1): Signal => ({
    ...{ type: 'tool_ended', toolCallId: callId(ordinal), attempt, outcome: 'success', durationMs: 7 },
    content: [{ type: 'text', text: 'blue' }],
  })
  const progressed = (attempt = 1, ordinal = 1): Signal => ({
    ...{ type: 'tool_progressed', toolCallId: callId(ordinal), attempt, data: 'half' },
  })

  it('tells how far it is, and ends, both are on record', () => {
    given(running)
      .when(progressed())
      .then([{ type: 'tool_progress', turn: 1, toolCallId: callId(1), attempt: 1, data: 'half' }])
    given(running)
      .when(ended())
      .then([endedCall(1, { durationMs: 7 })])
  })

  it('defers its call, the time to settle it ends at a whole millisecond', () => {
    const { at } = stampFacts(runId, running).at(-1)!
    const signal = { type: 'tool_deferred', toolCallId: callId(1), attempt: 1, externalId: 'r1' } as const
    const fact = { type: 'tool_deferred', turn: 1, toolCallId: callId(1), attempt: 1, receipt: 'r1' } as const
    given(running).when(signal).then([fact])
    given(running)
      .when({ ...signal, deadlineMs: 1_000.25 })
      .then([{ ...fact, deadlineAt: at + 1_001 }])
    given([...running, fact])
      .when(signal)
      .then([])
    given([...running, fact])
      .when(ended())
      .then([])
  })

  it('has deferred its call to a child run, that is on record once, and its end is still heard', () => {
    const page = [...executing(['look'], { child: 'clerk' }), startedCall()]
    const deferral = { type: 'tool_deferred', toolCallId: callId(1), attempt: 1, externalId: 'r1' } as const
    const fact = { type: 'tool_deferred', turn: 1, toolCallId: callId(1), attempt: 1, receipt: 'r1' } as const
    given(page).when(deferral).then([fact])
    given([...page, fact])
      .when(deferral)
      .then([])
    given([...page, fact])
      .when(ended())
      .then([endedCall(1, { durationMs: 7 })])
  })

  it('speaks of another attempt, of a call that does not run, or after its end, it is ignored', () => {
    for (const signal of [ended(2), ended(1, 2), ended(1, 9), progressed(2), progressed(1, 2)]) {
      given(running).when(signal).then([])
    }
    for (const signal of [ended(), progressed()]) {
      given([...running, endedCall(1)])
        .when(signal)
        .then([])
      given(streaming).when(signal).then([])
    }
    expect(given(running).state?.phase).toBe('executing')
  })
})

describe('given a call in doubt, when the outside world is asked about it', () => {
  const plan = { recovery: 'reconcile', effect: 'write' } as const
  const doubtful: readonly Fact[] = [
    ...executing(['look'], plan),
    startedCall(),
    { type: 'run_resumed', turn: 1, why: 'crash', inDoubt: [callId(1)] },
  ]
  const finding = (found: Extract<Signal, { type: 'call_reconciled' }>['finding']): Signal => ({
    ...{ type: 'call_reconciled', toolCallId: callId(1), finding: found },
  })

  it('and it was done, its result is on record and nothing is started', () => {
    const content = [{ type: 'text', text: 'It arrived.' }] as const
    given(doubtful)
      .when(finding({ state: 'done', outcome: 'success', content }))
      .then([endedCall(1, { content })])
  })

  it('and it was not done, it is started again, under the same key', () => {
    given(doubtful)
      .when(finding({ state: 'not_done' }))
      .then([{ ...startedCall(1, 2), effect: 'write', inputDigest: computeDigest({ call: 1 }) } as Fact])
  })

  it('and the answer is unknown, it stays in doubt for the model', () => {
    const { decision } = given(doubtful).when(finding({ state: 'unknown' }))
    expect(decision).toMatchObject({ facts: [{ type: 'tool_result', outcome: 'interrupted' }] })
    expect(JSON.stringify(decision)).toContain('It may have taken effect.')
  })

  it('too late, nothing follows', () => {
    const done = finding({ state: 'not_done' })
    given([...doubtful, endedCall(1)])
      .when(done)
      .then([])
    given([...executing(['look'], plan), startedCall()])
      .when(done)
      .then([])
    given(streaming).when(done).then([])
    expect(given(doubtful).state).toMatchObject({ calls: [{ status: 'in_doubt' }] })
  })
})

describe('the digest of a call', () => {
  it('is that of what the model wrote, whatever the order of its fields', () => {
    const [call] = [requested(1, 'look', { b: 1, a: 2 })]
    const page = [...streaming, call, replyFinished([call]), collected([call])]
    expect(given(page).state).toMatchObject({ calls: [{ inputDigest: computeDigest({ a: 2, b: 1 }) }] })
  })
})

const stamp = { at: 0, random: 0 }
const waiting = { ...given(begun()).state!, inputCheck: { seq: 2, from: 0, guardrails: ['clean', 'polite'] } }

/** The types of the facts that follow from a report about the input. */
function factsFor(state: RunState, guardrails: readonly string[], place = 2): readonly Fact['type'][] {
  const signal = { type: 'guardrails_checked', on: 'input', place, guardrails, finds: [] } as const
  const decision = decide(state, signal, stamp)
  return 'facts' in decision ? decision.facts.map(({ type }) => type) : []
}

describe('a report of the guardrails of an input', () => {
  it('is recorded where any of them is waited for', () => {
    for (const guardrails of [['clean'], ['clean', 'polite'], ['polite', 'gone']]) {
      expect(factsFor(waiting, guardrails)).toEqual(['guardrails_checked'])
    }
  })

  it('changes nothing where none of them is, or another input is', () => {
    expect(factsFor(waiting, ['gone'])).toEqual([])
    expect(factsFor(waiting, [])).toEqual([])
    expect(factsFor(waiting, ['clean'], 3)).toEqual([])
    expect(factsFor(given(begun()).state!, ['clean'])).toEqual([])
  })
})
