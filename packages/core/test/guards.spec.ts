import { describe, expect, it } from 'vitest'
import { IllegalTransitionError, type RunState, type RuntimeEvent } from '@tallystick/core'

import { evolve } from '@tallystick/core/machine'
import { defaultRetryPolicy, type Fact, type Outcome } from '@tallystick/core/vocabulary'
import { given, sampleMessage, sampleRunId, stampFacts } from '@tallystick/testkit'
import {
  begun,
  called,
  callId,
  collected,
  endedCall,
  executing,
  failure,
  replyFinished,
  requested,
  runId,
  startedCall,
  wrote,
} from './pages.ts'
import type { CallStatus } from '../src/machine/state.ts'

/** Says why the last fact of a page is refused; `taken` where it is not. */
function refusal(page: readonly Fact[], last: Fact | RuntimeEvent): string {
  const { state } = given(page)
  const [numbered] = stampFacts(runId, [last], { afterSeq: page.length })
  try {
    evolve(state, { ...numbered, ...last } as RuntimeEvent)
    return 'taken'
  } catch (error) {
    if (!(error instanceof IllegalTransitionError)) throw error
    const text = /is not legal in the phase \w+: (.*?)\. Legal would be/.exec(error.message)
    return text?.[1] ?? 'not legal in this phase'
  }
}

const streaming = [...begun(), called()]
const failed: Fact = { type: 'model_stream_failed', turn: 1, attempt: 1, failure: failure(), retryAt: 0 }
const end: Fact = { type: 'run_finished', turn: 1, reason: 'answered', turns: 1, toolCalls: 0, usage: {} }
const injection = (...ordinals: readonly number[]): Fact => ({
  ...{ type: 'tool_results_injected', turn: 1, toolCallIds: ordinals.map((ordinal) => callId(ordinal)) },
})

describe('law 1: a run does not continue while a call has no result', () => {
  const asked = [...streaming, requested(1)]
  const open = `call ${callId(1)} has no result`

  it('not to the next attempt, and not to its end', () => {
    expect(refusal([...asked, failed], called(1, 2))).toBe(open)
    expect(refusal([...asked, failed], end)).toBe(open)
    const closed = [...asked, failed, endedCall(1, { outcome: 'skipped' })]
    expect(refusal(closed, called(1, 2))).toBe('taken')
    expect(refusal(closed, end)).toBe('taken')
  })

  it('not into the history', () => {
    const running = [...executing(['a', 'b']), startedCall(1, 1, 'a'), endedCall(1, { name: 'a' })]
    expect(refusal(running, injection(1, 2))).toBe(`call ${callId(2)} has no result`)
    expect(refusal(running, injection(1))).toBe(`call ${callId(2)} has no result`)
  })

  it('not past a reply whose calls were not collected', () => {
    const settled = [...asked, failed, endedCall(1, { outcome: 'skipped' }), replyFinished([requested(1)])]
    expect(refusal(settled, called(2))).toBe('calls are not collected')
    expect(refusal(settled, end)).toBe('calls are not collected')
    expect(refusal([...asked, replyFinished([requested(1)])], called(2))).toBe(open)
  })

  it('and no result is recorded twice, under another name, or for a call that is not there', () => {
    const running = [...executing(['a']), startedCall(1, 1, 'a')]
    expect(refusal(running, endedCall(1, { name: 'a' }))).toBe('taken')
    expect(refusal(running, endedCall(1, { name: 'b' }))).toBe("the call's tool is a")
    expect(refusal(running, endedCall(2, { name: 'a' }))).toBe(`no open call ${callId(2)} in turn 1`)
    expect(refusal([...running, endedCall(1, { name: 'a' })], endedCall(1, { name: 'a' }))).toBe(
      `call ${callId(1)} is settled`,
    )
  })

  it('and no call of a reply that still streams is settled', () => {
    expect(refusal(asked, endedCall(1, { outcome: 'skipped' }))).toBe('the reply is still streaming')
  })
})

describe('law 2: how a call may end depends on how far it came', () => {
  const plan = (kind: 'run' | 'ask' | 'settle'): readonly Fact[] =>
    executing(['look'], { plan: kind, recovery: 'ask', inputDigest: 'd', retry: defaultRetryPolicy })
  const ask: Fact = {
    ...{ type: 'approval_requested', turn: 1, toolCallId: callId(1), name: 'look', attempt: 1 },
    inputDigest: 'd',
  }
  const resumed: Fact = { type: 'run_resumed', turn: 1, why: 'crash', inDoubt: [callId(1)] }
  const deferred: Fact = { type: 'tool_deferred', turn: 1, toolCallId: callId(1), attempt: 1, receipt: 'r1' }
  const attemptFailed: Fact = {
    ...{ type: 'tool_attempt_failed', turn: 1, toolCallId: callId(1), name: 'look', attempt: 1 },
    ...{ outcome: 'failed', content: [], durationMs: 1, retryAt: 2 },
  }
  const pages: { readonly [S in Exclude<CallStatus, 'settled'>]: readonly Fact[] } = {
    requested: [...streaming, requested(1), failed],
    to_settle: plan('settle'),
    to_ask: plan('ask'),
    awaiting_approval: [...plan('ask'), ask],
    ready: plan('run'),
    started: [...plan('run'), startedCall()],
    in_doubt: [...plan('run'), startedCall(), resumed],
    deferred: [...plan('run'), startedCall(), deferred],
    to_retry: [...plan('run'), startedCall(), attemptFailed],
  }
  const nothingRan = ['requested', 'to_settle', 'to_ask', 'awaiting_approval', 'ready']
  const allowed: { readonly [O in Outcome]: readonly string[] } = {
    success: ['started', 'in_doubt', 'deferred'],
    failed: ['started', 'in_doubt', 'deferred', 'to_retry'],
    timed_out: ['started', 'deferred', 'to_retry'],
    // A start that is asked about anew waits for its turn, or for a person, and may be in doubt still.
    interrupted: ['started', 'in_doubt', 'deferred', 'ready', 'to_retry', 'awaiting_approval', 'to_settle'],
    cancelled: [...nothingRan, 'started', 'in_doubt'],
    invalid_input: [...nothingRan, 'started'],
    unknown_tool: nothingRan,
    denied: nothingRan,
    repeated: nothingRan,
    limit_reached: nothingRan,
    skipped: nothingRan,
  }

  it.each(Object.entries(allowed))('%s', (outcome, statuses) => {
    const taken = Object.entries(pages).flatMap(([status, page]) => {
      const said = refusal(page, endedCall(1, { outcome: outcome as Outcome }))
      expect(['taken', `call ${callId(1)} is ${status}`]).toContain(said)
      return said === 'taken' ? [status] : []
    })
    expect(taken.toSorted()).toEqual(statuses.toSorted())
  })

  it('a call starts when it may, one attempt after the other', () => {
    const starting = Object.entries(pages).flatMap(([status, page]) => {
      const attempts = ['started', 'in_doubt', 'deferred', 'to_retry'].includes(status) ? 1 : 0
      return refusal(page, startedCall(1, attempts + 1)) === 'taken' ? [status] : []
    })
    expect(starting).toEqual(['ready', 'in_doubt', 'to_retry'])
    expect(refusal(pages.ready, startedCall(1, 2))).toBe('attempt 2 where 1 is due')
    expect(refusal(pages.in_doubt, startedCall(1, 1))).toBe('attempt 1 where 2 is due')
  })

  it('a person is asked about a call that waits for that, and decides about what was asked', () => {
    const decide = (more: Partial<Extract<Fact, { type: 'approval_decided' }>> = {}): Fact => ({
      ...{ type: 'approval_decided', turn: 1, toolCallId: callId(1), attempt: 1, approved: true, by: 'ada' },
      ...{ inputDigest: 'd', ...more },
    })
    const askable = Object.entries(pages).flatMap(([status, page]) => {
      const attempt = status === 'in_doubt' ? 2 : 1
      return refusal(page, { ...ask, attempt }) === 'taken' ? [status] : []
    })
    expect(askable).toEqual(['to_ask', 'in_doubt'])
    expect(refusal(pages.awaiting_approval, decide())).toBe('taken')
    expect(refusal(pages.awaiting_approval, decide({ inputDigest: 'e' }))).toBe('it is about other arguments')
    expect(refusal(pages.awaiting_approval, decide({ attempt: 2 }))).toBe('attempt 2 where 1 is due')
    expect(refusal(pages.to_ask, decide())).toBe(`call ${callId(1)} is to_ask`)
    expect(refusal([...pages.awaiting_approval, decide()], decide())).toBe(`call ${callId(1)} is ready`)
    const denied = [...pages.awaiting_approval, decide({ approved: false })]
    expect(refusal(denied, startedCall())).toBe(`call ${callId(1)} is to_settle`)
  })
})

describe('law 3: results enter together, in the order of their requests', () => {
  const ended = [
    ...[...executing(['a', 'b']), startedCall(1, 1, 'a'), startedCall(2, 1, 'b')],
    ...[endedCall(2, { name: 'b' }), endedCall(1, { name: 'a' })],
  ]
  it('and no other', () => {
    expect(refusal(ended, injection(1, 2))).toBe('taken')
    expect(refusal(ended, injection(2, 1))).toBe('it is not in request order')
    expect(refusal(ended, injection(1))).toBe('it is not in request order')
  })

  it('and no summary parts a message from its results, or replaces what is not there', () => {
    const page = [...ended, injection(1, 2)]
    const compact = (replacedMessages: number): Fact => ({
      ...{ type: 'context_compacted', turn: 1, summary: sampleMessage('Before.'), replacedMessages },
    })
    // The input, the reply and its results.
    expect(given(page).state?.history.length).toBe(3)
    const fault = 'it would part a message from its results'
    expect([1, 2, 3, 4].map((count) => refusal(page, compact(count)))).toEqual([
      'taken',
      fault,
      'taken',
      fault,
    ])
  })

  it('and every call of a message is collected, in its order', () => {
    const calls = [requested(1), requested(2)] as const
    const page = [...streaming, ...calls, replyFinished(calls)]
    const fault = 'it does not name every call of the message, in order'
    expect(refusal(page, collected(calls))).toBe('taken')
    expect(refusal(page, collected([calls[0]]))).toBe(fault)
    expect(refusal(page, collected([calls[1], calls[0]]))).toBe(fault)
    expect(refusal([...streaming, replyFinished([])], collected([]))).toBe(fault)
  })
})

describe('law 4: events are in order', () => {
  const { state } = given(streaming)
  const next = (more: Partial<RuntimeEvent>): RuntimeEvent =>
    ({ ...stampFacts(runId, [wrote('Hi')], { afterSeq: streaming.length })[0]!, ...more }) as RuntimeEvent
  const fault = (event: RuntimeEvent, from: RunState | undefined = state): string => {
    expect(() => evolve(from, event)).toThrow(IllegalTransitionError)
    return refusal(streaming, event)
  }

  it('of one run, without gaps, repeats, or a falling epoch', () => {
    expect(refusal(streaming, next({}))).toBe('taken')
    expect(fault(next({ runId: sampleRunId(2) }))).toBe(`it belongs to run ${sampleRunId(2)}`)
    expect(fault(next({ seq: 5 }))).toBe('seq 5 follows 3')
    expect(fault(next({ seq: 3 }))).toBe('seq 3 follows 3')
    expect(refusal(streaming, next({ epoch: 2 }))).toBe('taken')
    expect(fault(next({ epoch: 0 }))).toBe('epoch 0 follows 1')
  })

  it('each in its own turn', () => {
    expect(fault(next({ turn: 2 }))).toBe('turn 2 follows 1')
    expect(fault(next({ turn: 0 }))).toBe('turn 0 follows 1')
    const answered = [...streaming, replyFinished([])]
    expect(refusal(answered, called(2))).toBe('taken')
    expect(refusal(answered, called(1))).toBe('turn 1 follows 1')
    expect(refusal(answered, called(3))).toBe('turn 3 follows 1')
  })
})

describe('attempts are never spliced', () => {
  it('the next one starts when the one before it has failed, numbered on', () => {
    expect(refusal(streaming, called(1, 2))).toBe('attempt 1 of turn 1 has not ended')
    expect(refusal([...streaming, failed], called(1, 2))).toBe('taken')
    expect(refusal([...streaming, failed], called(1, 3))).toBe('attempt 3 where 2 is due')
    expect(refusal([...begun()], called(1, 2))).toBe('turn 1 follows 0')
  })

  it('what is of another attempt, or comes after a failure, is refused', () => {
    const gone = 'it is of attempt 1, which is not under way'
    expect(refusal([...streaming, failed], wrote('late'))).toBe(gone)
    expect(refusal([...streaming, failed, called(1, 2)], wrote('late'))).toBe(gone)
    expect(refusal([...streaming, failed, called(1, 2)], wrote('on time', 0, 2))).toBe('taken')
    expect(refusal([...streaming, failed], failed)).toBe(gone)
    expect(refusal([...streaming, failed, called(1, 2)], replyFinished([]))).toBe('it is of attempt 1')
  })

  it('a call is requested once, and the message holds those that were', () => {
    const asked = [...streaming, requested(1)]
    const again = `call ${callId(1)} or part 0 was requested before`
    expect(refusal(asked, requested(1))).toBe(again)
    expect(refusal(asked, { ...requested(1), part: 7 })).toBe(
      `call ${callId(1)} or part 7 was requested before`,
    )
    expect(refusal(asked, { ...requested(2), part: 0 })).toBe(
      `call ${callId(2)} or part 0 was requested before`,
    )
    const fault = 'its calls are not those that were requested'
    expect(refusal(asked, replyFinished([requested(1)]))).toBe('taken')
    expect(refusal(asked, replyFinished([]))).toBe(fault)
    expect(refusal(asked, replyFinished([requested(1), requested(2)]))).toBe(fault)
    expect(refusal(streaming, replyFinished([requested(1)]))).toBe(fault)
  })
})

describe('input that comes later', () => {
  const message = sampleMessage('Hurry.')
  const steer: Fact = { type: 'input_received', turn: 1, message, delivery: 'steer', receipt: 'r1' }
  const settle = (delivered: boolean): Fact => ({
    ...{ type: 'input_settled', turn: 1, receipt: 'r1', delivered },
  })
  const answered = [...streaming, replyFinished([])]

  it('has an id of its own, which is settled once, and before the end', () => {
    expect(refusal(streaming, steer)).toBe('taken')
    const nameless: Fact = { type: 'input_received', turn: 1, message, delivery: 'steer' }
    expect(refusal(streaming, nameless)).toBe('input that comes later needs an id of its own')
    expect(refusal([...streaming, steer], steer)).toBe('input that comes later needs an id of its own')
    expect(refusal(answered, settle(true))).toBe('no input r1 waits')
    expect(refusal([...answered, steer], settle(true))).toBe('taken')
    expect(refusal([...answered, steer, settle(true)], settle(true))).toBe('no input r1 waits')
    expect(refusal([...answered, steer], end)).toBe('input r1 is not settled')
    expect(refusal([...answered, steer, settle(false)], end)).toBe('taken')
  })

  it('enters the history between turns only', () => {
    expect(refusal([...streaming, steer], settle(true))).toBe('a model call is in flight')
    const running = [...executing(), startedCall(), steer]
    expect(refusal(running, settle(true))).toBe(`call ${callId(1)} has no result`)
    expect(given([...answered, steer, settle(true)]).state?.history.length).toBe(2)
    expect(given([...answered, steer, settle(false)]).state?.history.length).toBe(1)
  })
})
