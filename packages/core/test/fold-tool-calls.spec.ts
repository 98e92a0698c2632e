import { describe, expect, it } from 'vitest'
import type { CollectedCall } from '@tallystick/core/internal'
import { computeDigest, type Fact, type FactOf, type Outcome } from '@tallystick/core/vocabulary'
import { given, sampleRunId } from '@tallystick/testkit'
import { readCalls, readMessages, listSameAnswers } from '../src/machine/history.ts'
import type { Call, RunState } from '../src/machine/state.ts'
import { openTurnCalls } from '../src/machine/calls.ts'
import {
  after,
  begun,
  called,
  callId,
  collected,
  endedCall,
  executing,
  failure,
  refusal,
  replyFinished,
  requested,
  startedCall,
} from './pages.ts'

const callOf = (state: RunState, ordinal = 1): Call => openTurnCalls(state)[ordinal - 1]!
const input = { call: 1 }
const inputDigest = computeDigest(input)
const asked: Fact = {
  ...{ type: 'approval_requested', turn: 1, toolCallId: callId(1), name: 'look', attempt: 1, inputDigest },
}
const decided = (more: Partial<FactOf<'approval_decided'>> = {}): Fact => ({
  ...{ type: 'approval_decided', turn: 1, toolCallId: callId(1), attempt: 1, inputDigest },
  ...{ approved: true, by: 'ada', ...more },
})
const askable = (more: Partial<CollectedCall> = {}): readonly Fact[] =>
  executing(['look'], { plan: 'ask', ...more })
const waiting = (more: Partial<CollectedCall> = {}): readonly Fact[] => [...askable(more), asked]
const doubtful: readonly Fact[] = [
  ...executing(['look'], { recovery: 'ask' }),
  startedCall(),
  { type: 'run_resumed', turn: 1, why: 'crash', inDoubt: [callId(1)] },
]

describe('calls that are collected', () => {
  const calls = [requested(1)]
  const page = [...begun(), called(), ...calls, replyFinished(calls)]

  it.each([
    ['run', 'ready'],
    ['ask', 'to_ask'],
    ['settle', 'to_settle'],
  ] as const)('to %s are %s, with all that was said of them', (plan, status) => {
    const said: Partial<CollectedCall> = {
      ...{ effect: 'write', recovery: 'ask', child: 'clerk', handoff: { to: 'clerk' }, input: { a: 1 } },
      ...{ refusal: { outcome: 'denied', text: 'No.' }, recorded: callId(9), inputDigest: 'd' },
    }
    const call = callOf(after(page, collected(calls, { ...said, plan, reason: 'It is dear.' })))
    expect(call).toMatchObject({ ...said, status, askReason: 'It is dear.', attempts: 0 })
    const plain = callOf(after(page, collected(calls, { plan })))
    for (const field of ['child', 'handoff', 'refusal', 'recorded', 'askReason'])
      expect(plain).not.toHaveProperty(field)
    expect(plain.input).toEqual({})
  })
})

describe('a question to a person', () => {
  it('keeps why and until when it is asked, and asks for the next start', () => {
    const call = callOf(after(askable(), { ...asked, expiresAt: 7, reason: 'It is dear.' }))
    expect(call).toMatchObject({ status: 'awaiting_approval', expiresAt: 7, askReason: 'It is dear.' })
    const plain = callOf(after(askable({ reason: 'As it is.' }), asked))
    expect(plain.askReason).toBe('As it is.')
    expect(plain).not.toHaveProperty('expiresAt')
    expect(refusal(askable(), { ...asked, attempt: 2 })).toContain('attempt 2 where 1 is due')
    expect(refusal(doubtful, { ...asked, attempt: 2 })).toBe('taken')
  })

  it('about a call that may run is asked only of a write of a fork', () => {
    const parent = { runId: sampleRunId(9), seq: 3, relation: 'fork', writes: 'ask' } as const
    expect(refusal(executing(), asked)).toContain('it may run')
    expect(refusal(executing(), asked, { parent })).toContain('it may run')
    expect(refusal(executing(['look'], { effect: 'write' }), asked, { parent })).toBe('taken')
  })
})

describe('an approval', () => {
  it('lets the call run as it is, or with the input that the approver gave it', () => {
    const call = callOf(after(waiting({ recorded: callId(9) }), decided()))
    expect(call).toMatchObject({ status: 'ready', input, inputDigest, recorded: callId(9) })
    expect(call).not.toHaveProperty('changeNote')
    const changed = callOf(
      after(waiting({ recorded: callId(9) }), decided({ input: { a: 1 }, note: 'Changed.' })),
    )
    expect(changed).toMatchObject({
      ...{ status: 'ready', input: { a: 1 }, inputDigest: computeDigest({ a: 1 }), changeNote: 'Changed.' },
    })
    // What is on record answers the input that was asked for.
    expect(changed).not.toHaveProperty('recorded')
  })

  it('is remembered by its place', () => {
    const page = waiting()
    const { seq } = given(page).state!
    const parent = { runId: sampleRunId(9), seq: 3, relation: 'fork', writes: 'ask' } as const
    expect(callOf(after(page, decided(), { parent })).approvedSeq).toBe(seq + 1)
    expect(callOf(after(page, decided())).approvedSeq).toBe(seq + 1)
    expect(callOf(after(page, decided({ approved: false })))).not.toHaveProperty('approvedSeq')
  })

  it('that is refused ends the call, with who refused it and why', () => {
    const denied = (page: readonly Fact[], more: Partial<FactOf<'approval_decided'>>): Call =>
      callOf(after(page, decided({ approved: false, ...more })))
    expect(denied(waiting(), {})).toMatchObject({
      ...{ status: 'to_settle', refusal: { outcome: 'denied', text: 'ada denied this call.' } },
    })
    expect(denied(waiting(), { reason: 'Too dear.' }).refusal?.text).toBe('ada denied this call: Too dear.')
    expect(denied(waiting(), { reason: '' }).refusal?.text).toBe('ada denied this call.')
    const again = [...doubtful, { ...asked, attempt: 2 } as Fact]
    expect(denied(again, { attempt: 2, reason: 'No.' }).refusal).toEqual({
      ...{ outcome: 'interrupted' },
      text: 'Nobody knows whether this call took effect, and ada decided not to start it again: No.',
    })
  })

  it('is about the arguments that were asked about, as far as they are there', () => {
    expect(refusal(waiting(), decided({ inputDigest: 'd' }))).toContain('it is about other arguments')
    expect(refusal(waiting(), decided({ inputDigest: 'd' }), { removedFrom: 1 })).toBe('taken')
    expect(refusal(waiting(), decided({ attempt: 2 }))).toContain('attempt 2 where 1 is due')
  })
})

describe('a start', () => {
  it('counts the first time, for the run and for its tool', () => {
    const page = executing(['look', 'pay', 'look'])
    const { totals } = given([...page, startedCall(1), startedCall(2, 1, 'pay'), startedCall(3)]).state!
    expect(totals).toMatchObject({ toolCalls: 3, toolCallsByTool: { look: 2, pay: 1 } })
    const again = after(doubtful, startedCall(1, 2))
    expect(again.totals).toMatchObject({ toolCalls: 1, toolCallsByTool: { look: 1 } })
    expect(callOf(again)).toMatchObject({ status: 'started', attempts: 2 })
    expect(callOf(again)).not.toHaveProperty('grant')
    expect(callOf(after(executing(), { ...startedCall(), grant: { turns: 2 } } as Fact)).grant).toEqual({
      turns: 2,
    })
  })
})

describe('a call that is settled later', () => {
  const deferred: Fact = { type: 'tool_deferred', turn: 1, toolCallId: callId(1), attempt: 1, receipt: 'job' }

  it('has its id outside, and the time that it has', () => {
    const page = [...executing(), startedCall()]
    expect(callOf(after(page, deferred))).toMatchObject({
      status: 'deferred',
      deferred: { externalId: 'job' },
    })
    expect(callOf(after(page, deferred)).deferred).not.toHaveProperty('deadlineAt')
    expect(callOf(after(page, { ...deferred, deadlineAt: 7 })).deferred?.deadlineAt).toBe(7)
  })

  it('is not cancelled, unless a child run is at work on it', () => {
    const page = (more: Partial<CollectedCall>): readonly Fact[] => [
      ...executing(['look'], more),
      startedCall(),
      deferred,
    ]
    expect(refusal(page({}), endedCall(1, { outcome: 'cancelled' }))).toContain('is deferred')
    expect(refusal(page({ child: 'clerk' }), endedCall(1, { outcome: 'cancelled' }))).toBe('taken')
    expect(refusal(page({}), endedCall(1, { outcome: 'failed' }))).toBe('taken')
  })
})

describe('a result', () => {
  const running = [...executing(), startedCall()]
  const content = [{ type: 'text', text: 'blue' }] as const

  it('of a child run counts what it took', () => {
    const child = { runId: sampleRunId(7), turns: 2, toolCalls: 3, usage: { inputTokens: 5 }, costUsd: 0.5 }
    const state = after(running, endedCall(1, { child }), {
      totals: { ...given(running).state!.totals, children: { runs: 1, turns: 1, toolCalls: 1 } },
    })
    expect(state.totals).toMatchObject({
      ...{ children: { runs: 2, turns: 3, toolCalls: 4 }, usage: { inputTokens: 5 }, costUsd: 0.5 },
    })
    expect(after(running, endedCall(1)).totals).toEqual(given(running).state!.totals)
  })

  it('ends a row of take-overs', () => {
    expect(after(running, endedCall(1), { takeOvers: 3 }).takeOvers).toBe(0)
  })

  it.each<readonly [Outcome, number, number]>([
    ['success', 1, 0],
    ['failed', 1, 1],
    ['timed_out', 1, 1],
    ['cancelled', 0, 0],
    ['interrupted', 0, 0],
  ])(
    'that is %s is compared with later ones %i time, and counts %i as an error',
    (outcome, logged, errors) => {
      const { callLog, errorStreaks } = after(running, endedCall(1, { outcome }))
      expect(readCalls(callLog)).toHaveLength(logged)
      expect(errorStreaks['look']?.count ?? 0).toBe(errors)
    },
  )

  it('is compared by its content, with the input that it ran with, and as the model reads it', () => {
    const [logged] = readCalls(after(running, endedCall(1)).callLog)
    expect(logged).toMatchObject({ toolCallId: callId(1), name: 'look', inputDigest })
    expect(logged?.result).toEqual({ toolCallId: callId(1), name: 'look', outcome: 'success', content })
    expect(logged?.resultDigest).toBeUndefined()
    const changed = [...waiting(), decided({ input: { a: 1 }, note: 'Changed.' }), startedCall()]
    const [noted] = readCalls(after(changed, endedCall(1)).callLog)
    expect(noted).toMatchObject({ inputDigest: computeDigest({ a: 1 }) })
    expect(noted?.result.content[0]).toEqual({ type: 'text', text: 'Changed.' })
    expect(noted?.resultDigest).toBe(computeDigest(['success', content as never]))
    const shown = [{ type: 'text' as const, text: 'Short.' }]
    const [short] = readCalls(after(running, endedCall(1, { shown })).callLog)
    expect(short?.result.content).toEqual(shown)
    expect(short?.resultDigest).toBe(computeDigest(['success', content as never]))
  })

  it('that repeats an error makes the row longer, and another ends it', () => {
    const ended = (...ends: readonly (readonly [Outcome, string])[]): number => {
      const page = executing(ends.map(() => 'look'))
      const facts = ends.flatMap(([outcome, text], index) => [
        startedCall(index + 1),
        endedCall(index + 1, { outcome, content: [{ type: 'text', text }] }),
      ])
      return given([...page, ...facts]).state!.errorStreaks['look']?.count ?? 0
    }
    expect(ended(['failed', 'a'], ['failed', 'a'])).toBe(2)
    expect(ended(['failed', 'a'], ['failed', 'b'])).toBe(1)
    expect(ended(['failed', 'a'], ['timed_out', 'a'])).toBe(1)
    expect(ended(['failed', 'a'], ['failed', 'a'], ['success', 'a'])).toBe(0)
    expect(ended(['failed', 'a'], ['success', 'a'], ['failed', 'a'])).toBe(1)
  })

  it('that was served again is counted, and neither an answer nor an error', () => {
    const state = after(executing(), endedCall(1, { outcome: 'repeated' }))
    expect(state.standstill.served).toBe(1)
    expect([readCalls(state.callLog), state.errorStreaks]).toEqual([[], {}])
  })
})

describe('answers that are the same', () => {
  const look = (ordinal: number, text: string): readonly Fact[] => [
    startedCall(ordinal),
    endedCall(ordinal, { content: [{ type: 'text', text }] }),
  ]
  const page = (texts: readonly string[]): RunState => {
    const calls = texts.map((_, index) => requested(index + 1))
    const facts = texts.flatMap((text, index) => look(index + 1, text))
    return given([...begun(), called(), ...calls, replyFinished(calls), collected(calls), ...facts]).state!
  }
  const count = (texts: readonly string[], call = { name: 'look', inputDigest: computeDigest({}) }): number =>
    listSameAnswers(page(texts).callLog, call).length

  it('are counted from the last backwards, of the same tool and input', () => {
    expect(count(['a', 'a', 'a'])).toBe(3)
    expect(count(['a', 'b', 'b'])).toBe(2)
    expect(count(['b', 'b', 'a'])).toBe(1)
    expect(count(['a'], { name: 'pay', inputDigest: computeDigest({}) })).toBe(0)
    expect(count(['a'], { name: 'look', inputDigest })).toBe(0)
    expect(
      listSameAnswers(page(['a', 'a']).callLog, { name: 'look', inputDigest: computeDigest({}) })[0]
        ?.toolCallId,
    ).toBe(callId(2))
  })
})

describe('a fork', () => {
  const running = [...executing(), startedCall()]
  const parent = { runId: sampleRunId(9), seq: 3, relation: 'fork' } as const
  const progress = (more: Partial<FactOf<'tool_result'>>, state: Partial<RunState> = {}) =>
    after(running, endedCall(1, more), { parent, ...state }).fork

  it('remembers what the record answered, and where a tool ran for real', () => {
    expect(progress({ reused: callId(9), durationMs: 0 })).toEqual({ reused: [callId(9)], own: [] })
    expect(progress({ durationMs: 5 })).toEqual({
      ...{ reused: [], own: [{ name: 'look', inputDigest }], divergedIn: 1 },
    })
    // A caller has settled it: nothing ran, and no record answers the same again.
    expect(progress({})).toEqual({ reused: [], own: [{ name: 'look', inputDigest }] })
    expect(progress({ outcome: 'failed' })).toEqual({ reused: [], own: [{ name: 'look', inputDigest }] })
    expect(progress({ outcome: 'cancelled' })).toBeUndefined()
    const fork = { reused: [callId(8)], own: [], divergedIn: 0 }
    expect(progress({ durationMs: 5 }, { fork })?.divergedIn).toBe(0)
    expect(progress({ reused: callId(9) }, { fork })?.reused).toEqual([callId(8), callId(9)])
  })

  it('remembers nothing of the events that it shares, and another run nothing at all', () => {
    const { seq } = given(running).state!
    expect(progress({ durationMs: 5 }, { parent: { ...parent, seq: seq + 1 } })).toBeUndefined()
    expect(progress({ durationMs: 5 }, { parent: { ...parent, seq } })).toBeDefined()
    expect(progress({ durationMs: 5 }, { parent: { ...parent, relation: 'child' } })).toBeUndefined()
  })
})

describe('results that enter the history', () => {
  const injected = (...ordinals: readonly number[]): Fact => ({
    ...{ type: 'tool_results_injected', turn: 1, toolCallIds: ordinals.map((ordinal) => callId(ordinal)) },
  })
  const answered = (more: Parameters<typeof executing>[1], outcome: Outcome = 'success'): readonly Fact[] => [
    ...[...executing(['look', 'look'], more), startedCall(1), startedCall(2)],
    ...[endedCall(1, { outcome }), endedCall(2)],
  ]

  it('end the turn, with the hand-over that the first success asks for', () => {
    const state = after(answered({}), injected(1, 2), { resultsChecked: true })
    expect(readMessages(state.history).at(-1)).toMatchObject({ role: 'tool', results: [{}, {}] })
    for (const field of ['resultsChecked', 'handoff', 'calls']) expect(state).not.toHaveProperty(field)
    const to = (ordinal: number) => ({ handoff: { to: `clerk ${ordinal}` } })
    const handoff = (outcome: Outcome) => {
      const next = after(answered(to, outcome), injected(1, 2))
      return next.phase === 'injecting' ? next.handoff : undefined
    }
    expect(handoff('success')).toEqual({ to: 'clerk 1', tool: 'look' })
    expect(handoff('failed')).toEqual({ to: 'clerk 2', tool: 'look' })
  })
})

describe('a call of an attempt that has failed', () => {
  it('is closed, and never starts', () => {
    const failed: Fact = { type: 'model_stream_failed', turn: 1, attempt: 1, failure: failure(), retryAt: 0 }
    const page = [...begun(), called(), requested(1), failed]
    expect(callOf(after(page, endedCall(1, { outcome: 'skipped' }))).status).toBe('settled')
    expect(refusal(page, endedCall(1))).toContain('is requested')
  })
})
