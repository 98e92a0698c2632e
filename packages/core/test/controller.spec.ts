import { requiredEffects, type Action } from '@tallystick/core/machine'
import { type Fact, type StopReason, deriveToolCallId } from '@tallystick/core/vocabulary'
import { given } from '@tallystick/testkit'
import { describe, expect, it } from 'vitest'
import {
  begun,
  called,
  callId,
  collected,
  endedCall,
  executing,
  replyFinished,
  requested,
  startedCall,
  answered,
  pending,
  cancelRequested,
  failure,
  runId,
  wrote,
} from './pages.ts'

const injected = (ordinals: readonly number[]): Fact => ({
  ...{ type: 'tool_results_injected', turn: 1, toolCallIds: ordinals.map((ordinal) => callId(ordinal)) },
})

describe('a run that has begun', () => {
  it('calls its model first, or what a limit or a cancel says instead', () => {
    expect(pending(begun())).toEqual(['call_model', 'call turn 1 attempt 1 auto'])
    expect(pending(begun({ limits: { maxTurns: 0 } }))).toEqual([
      'meet_limit',
      'met maxTurns 0 of 0 finalize',
    ])
    expect(pending(begun({ limits: { maxTurns: 1 } }))).toEqual([
      'meet_limit',
      'met maxTurns 0 of 1 finalize',
    ])
    expect(pending(begun({ limits: { maxTurns: 1, onLimit: 'stop' } }))).toEqual([
      ...['call_model', 'call turn 1 attempt 1 auto'],
    ])
    expect(pending([...begun(), { ...cancelRequested, turn: 0 }])).toEqual(['finish', 'finish cancelled'])
    expect(pending(begun().slice(0, 1))).toEqual(['suspend'])
  })
})

describe('a reply without calls', () => {
  it.each([
    ['end', 'finish answered'],
    ['tool_use', 'finish answered'],
    ['other', 'finish answered'],
    ['refused', 'finish refused'],
    ['content_filtered', 'finish refused'],
    ['max_tokens', 'finish output_truncated'],
    ['context_exceeded', 'finish context_overflow'],
  ] as const)('that stopped with %s ends the run: %s', (stopReason, end) => {
    expect(pending(answered(stopReason))).toEqual(['finish', end])
  })

  it.each(['paused', 'compacted'] as const)('that is %s continues with another turn', (stopReason) => {
    expect(pending(answered(stopReason))).toEqual(['call_model', 'call turn 2 attempt 1 auto'])
    expect(pending(answered(stopReason, { maxTurns: 2 }))).toEqual([
      'meet_limit',
      'met maxTurns 1 of 2 finalize',
    ])
  })

  it('counts as cancelled when the cancel came first', () => {
    expect(pending([...answered('end'), cancelRequested])).toEqual(['finish', 'finish cancelled'])
  })
})

describe('a reply with calls', () => {
  const calls = [requested(1), requested(2)]
  const reply = (stopReason: StopReason, partial = false): readonly Fact[] => [
    ...[...begun(), called(), ...calls],
    replyFinished(calls, { stopReason, partial }),
  ]

  it.each(['tool_use', 'end', 'paused', 'other'] as const)(
    'that stopped with %s has them checked',
    (stopReason) => {
      expect(pending(reply(stopReason))).toEqual(['wait'])
      expect(requiredEffects(given(reply(stopReason)).state!).map(({ kind }) => kind)).toEqual([
        'check_calls',
      ])
    },
  )

  it.each(['max_tokens', 'refused', 'content_filtered', 'context_exceeded', 'failed', 'compacted'] as const)(
    'that stopped with %s never has them run',
    (stopReason) => {
      const page = reply(stopReason)
      const { facts } = given(page).pending() as Extract<Action, { readonly facts: unknown }>
      expect(facts).toMatchObject([
        {
          type: 'tool_requests_collected',
          calls: [1, 2].map(() => ({ plan: 'settle', refusal: { outcome: 'skipped' } })),
        },
      ])
      expect(pending([...page, ...facts])).toEqual(['settle_calls', 'skipped 1', 'skipped 2'])
    },
  )

  it('that is partial, or cancelled, never has them run either', () => {
    expect(given(reply('tool_use', true)).pending()).toMatchObject({ kind: 'collect' })
    expect(given([...reply('tool_use'), cancelRequested]).pending()).toMatchObject({
      facts: [{ calls: [1, 2].map(() => ({ plan: 'settle', refusal: { outcome: 'cancelled' } })) }],
    })
  })

  it('continues with the next turn once its results are in, unless it was cut', () => {
    const done = (stopReason: StopReason): readonly Fact[] => [
      ...[
        ...begun(),
        called(),
        requested(1),
        replyFinished([requested(1)], { stopReason }),
        collected([requested(1)]),
      ],
      ...[startedCall(1), endedCall(1), injected([1])],
    ]
    expect(pending(done('tool_use'))).toEqual(['call_model', 'call turn 2 attempt 1 auto'])
    expect(pending(done('end'))).toEqual(['call_model', 'call turn 2 attempt 1 auto'])
    expect(pending(done('max_tokens'))).toEqual(['finish', 'finish output_truncated'])
    expect(pending([...done('tool_use'), cancelRequested])).toEqual(['finish', 'finish cancelled'])
  })
})

describe('calls that may run', () => {
  const write = { effect: 'write', recovery: 'report' } as const

  it('start together when they read, up to the limit', () => {
    const page = executing(['a', 'b', 'c'], {}, { maxConcurrency: 2 })
    expect(pending(page)).toEqual(['run_tools', 'start 1 attempt 1', 'start 2 attempt 1'])
    const running = [...page, startedCall(1, 1, 'a'), startedCall(2, 1, 'b')]
    expect(pending(running)).toEqual(['wait'])
    expect(pending([...running, endedCall(2, { name: 'b' })])).toEqual(['run_tools', 'start 3 attempt 1'])
  })

  it('start one at a time, in request order, when they write', () => {
    const page = executing(['a', 'b'], write)
    expect(pending(page)).toEqual(['run_tools', 'start 1 attempt 1'])
    const running = [...page, startedCall(1, 1, 'a')]
    expect(pending(running)).toEqual(['wait'])
    expect(pending([...running, endedCall(1, { name: 'a' })])).toEqual(['run_tools', 'start 2 attempt 1'])
  })

  it('count as writes when their effect is unknown', () => {
    const calls = [requested(1, 'a'), requested(2, 'b')]
    const page = [...begun(), called(), ...calls, replyFinished(calls)]
    const plans = calls.map(({ toolCallId, name }) => ({
      toolCallId,
      name,
      plan: 'run' as const,
      inputDigest: 'd',
    }))
    expect(pending([...page, { type: 'tool_requests_collected', turn: 1, calls: plans }])).toEqual([
      'run_tools',
      'start 1 attempt 1',
    ])
  })

  it('let a write and reads run side by side', () => {
    const page = executing(['a', 'b', 'c'], (ordinal) => (ordinal === 2 ? write : {}))
    expect(pending(page)).toEqual([
      'run_tools',
      'start 1 attempt 1',
      'start 2 attempt 1',
      'start 3 attempt 1',
    ])
  })

  it('wait for a person where one has to decide, and nothing else waits with them', () => {
    const page = executing(['a', 'b'], (ordinal) =>
      ordinal === 1 ? { ...write, plan: 'ask', reason: 'money' } : {},
    )
    expect(given(page).pending()).toMatchObject({
      kind: 'ask_approval',
      facts: [{ type: 'approval_requested', toolCallId: callId(1), attempt: 1, reason: 'money' }],
    })
    const asked: Fact = {
      ...{ type: 'approval_requested', turn: 1, toolCallId: callId(1), name: 'a', attempt: 1 },
      inputDigest: given(page).state!.phase === 'executing' ? digestOfCall(page, 1) : '',
    }
    expect(pending([...page, asked])).toEqual(['run_tools', 'start 2 attempt 1'])
    expect(pending([...page, asked, startedCall(2, 1, 'b')])).toEqual(['wait'])
    expect(pending([...page, asked, startedCall(2, 1, 'b'), endedCall(2, { name: 'b' })])).toEqual([
      'suspend',
    ])
  })

  it('are asked about for as long as the limits say, to a whole millisecond', () => {
    const page = executing(['a'], { effect: 'write', plan: 'ask' }, { maxApprovalMs: 0.5 })
    const { at } = given(page).state!
    expect(given(page).pending()).toMatchObject({
      facts: [{ type: 'approval_requested', expiresAt: at + 1 }],
    })
  })

  it('are injected in request order, once each has its result', () => {
    const page = [...executing(['a', 'b']), startedCall(1, 1, 'a'), startedCall(2, 1, 'b')]
    const ended = [...page, endedCall(2, { name: 'b' }), endedCall(1, { name: 'a' })]
    expect(given(ended).pending()).toEqual({ kind: 'inject', facts: [injected([1, 2])] })
  })

  it('past the limit of a reply are turned away, and the rest run', () => {
    const page = executing(['a', 'b', 'c'], {}, { maxToolCallsPerTurn: 1 })
    expect(pending(page)).toEqual(['settle_calls', 'limit_reached 2', 'limit_reached 3'])
  })

  it.each(['finalize', 'stop'] as const)('past the limit of the run are turned away: %s', (onLimit) => {
    const limits = { maxToolCalls: 1, onLimit }
    const met: Fact = {
      type: 'limit_reached',
      turn: 1,
      limit: 'maxToolCalls',
      max: 1,
      used: 0,
      policy: onLimit,
    }
    const page = executing(['a', 'b'], {}, limits)
    expect(pending(page)).toEqual(['meet_limit', `met maxToolCalls 0 of 1 ${onLimit}`])
    expect(pending([...page, met])).toEqual(['settle_calls', 'limit_reached 2'])
    const rest = [...page, met, endedCall(2, { name: 'b', outcome: 'limit_reached' })]
    expect(pending(rest)).toEqual(['run_tools', 'start 1 attempt 1'])
    const last = [...rest, startedCall(1, 1, 'a'), endedCall(1, { name: 'a' }), injected([1, 2])]
    expect(pending(last)).toEqual(
      onLimit === 'stop'
        ? ['finish', 'finish tool_call_limit']
        : ['call_model', 'call turn 2 attempt 1 none finalizing'],
    )
  })

  it('past the limit of the run wait for a person, where one is to be asked', () => {
    const page = executing(['a', 'b'], {}, { maxToolCalls: 1, onLimit: 'ask' })
    const met: Fact = {
      type: 'limit_reached',
      turn: 1,
      limit: 'maxToolCalls',
      max: 1,
      used: 0,
      policy: 'ask',
    }
    expect(pending([...page, met])).toEqual(['run_tools', 'start 1 attempt 1'])
    const ended = [...page, met, startedCall(1, 1, 'a'), endedCall(1, { name: 'a' })]
    expect(pending(ended)).toEqual(['suspend'])
    const raised: Fact = { type: 'limit_raised', turn: 1, limit: 'maxToolCalls', max: 2, by: 'ada' }
    expect(pending([...ended, raised])).toEqual(['run_tools', 'start 2 attempt 1'])
    const tooLittle: Fact = { type: 'limit_raised', turn: 1, limit: 'maxToolCalls', max: 1, by: 'ada' }
    expect(pending([...ended, tooLittle])).toEqual(['meet_limit', 'met maxToolCalls 1 of 1 ask'])
  })
})

function digestOfCall(page: readonly Fact[], ordinal: number): string {
  const { state } = given(page)
  const call = state?.phase === 'executing' ? state.calls[ordinal - 1] : undefined
  return call?.inputDigest ?? ''
}

describe('a limit of turns', () => {
  const met = (policy: 'finalize' | 'stop' | 'ask'): Fact => ({
    ...{ type: 'limit_reached', turn: 1, limit: 'maxTurns', max: 2, used: 1, policy },
  })
  const page = answered('paused', { maxTurns: 2 })

  it('lets one last call write the answer, without tools, and whatever it asks for is turned away', () => {
    expect(pending([...page, met('finalize')])).toEqual([
      'call_model',
      'call turn 2 attempt 1 none finalizing',
    ])
    const last = [...page, met('finalize'), called(2, 1, { finalizing: true, toolChoice: { type: 'none' } })]
    expect(pending([...last, replyFinished([], { stopReason: 'end', turn: 2 })])).toEqual([
      'finish',
      'finish turn_limit',
    ])
    const asking = { ...requested(1), turn: 2, toolCallId: deriveToolCallId(runId, 2, 1, 1) }
    const asked = [...last, asking, replyFinished([asking], { turn: 2 })]
    const { facts } = given(asked).pending() as Extract<Action, { readonly facts: unknown }>
    expect(facts).toMatchObject([{ calls: [{ plan: 'settle', refusal: { outcome: 'limit_reached' } }] }])
    const failing: Fact = { type: 'model_stream_failed', turn: 2, attempt: 1, failure: failure(), retryAt: 0 }
    expect(pending([...last, failing])).toEqual(['call_model', 'call turn 2 attempt 2 none finalizing'])
  })

  it('ends the run at once, or waits until a person raises it', () => {
    expect(pending([...page, met('stop')])).toEqual(['finish', 'finish turn_limit'])
    expect(pending([...page, met('ask')])).toEqual(['suspend'])
    const raised: Fact = { type: 'limit_raised', turn: 1, limit: 'maxTurns', max: 3, by: 'ada' }
    expect(pending([...page, met('ask'), raised])).toEqual(['call_model', 'call turn 2 attempt 1 auto'])
    const another: Fact = { ...raised, limit: 'maxToolCalls' }
    expect(pending([...page, met('ask'), another])).toEqual(['suspend'])
  })
})

describe('a cancel', () => {
  it('keeps the reply as far as it came, in the order of its parts', () => {
    const reasoned: Fact = { type: 'assistant_reasoning_delta', turn: 1, attempt: 1, part: 0, text: 'Hm.' }
    const page = [
      ...begun(),
      called(),
      wrote('Hel', 1),
      reasoned,
      wrote('lo', 1),
      requested(3),
      cancelRequested,
    ]
    expect(pending(page)).toEqual(['keep_partial', 'keep cancelled ["Hm.","Hello","tool_call"]'])
    expect(pending([...begun(), called(), cancelRequested])).toEqual(['finish', 'finish cancelled'])
  })

  it('closes what a given-up attempt has left open, before it ends the run', () => {
    const failed: Fact = { type: 'model_stream_failed', turn: 1, attempt: 1, failure: failure(), retryAt: 0 }
    const page = [...begun(), called(), requested(1), requested(2), failed]
    const half = [...page, endedCall(1, { outcome: 'skipped' }), cancelRequested]
    expect(pending(half)).toEqual(['finish', 'skipped 2', 'finish cancelled'])
    const action = given(half).pending()
    expect(given([...half, ...('facts' in action ? action.facts : [])]).state).toMatchObject({
      phase: 'done',
    })
  })

  it('gives what runs its grace time, and ends the rest at once', () => {
    const page = [
      ...executing(['a', 'b'], {}, { graceMs: 500, maxConcurrency: 1 }),
      startedCall(1, 1, 'a'),
      cancelRequested,
    ]
    expect(pending(page)).toEqual(['settle_calls', 'cancelled 2'])
    const rest = [...page, endedCall(2, { name: 'b', outcome: 'cancelled' })]
    // The last event is recorded a millisecond after the cancel.
    expect(given(rest).pending()).toMatchObject({ kind: 'wait' })
    expect(pending(rest, 498)).toEqual(['wait'])
    expect(pending(rest, 499)).toEqual(['settle_calls', 'cancelled 1'])
  })
})

describe('a run that is done', () => {
  it('has no next action', () => {
    const end: Fact = { type: 'run_finished', turn: 1, reason: 'answered', turns: 1, toolCalls: 0, usage: {} }
    expect(given([...answered('end'), end]).pending()).toEqual({ kind: 'finished' })
    expect(requiredEffects(given([...answered('end'), end]).state!)).toEqual([])
  })
})
