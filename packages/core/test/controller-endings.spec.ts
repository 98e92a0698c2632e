import { describe, expect, it } from 'vitest'
import { requiredEffects, type Action } from '@tallystick/core/machine'
import { deriveToolCallId, type Fact } from '@tallystick/core/vocabulary'
import { given } from '@tallystick/testkit'
import {
  begun,
  called,
  endedCall,
  executing,
  failure,
  replyFinished,
  requested,
  runId,
  startedCall,
  wrote,
  answered,
  pending,
  cancelRequested,
} from './pages.ts'

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
