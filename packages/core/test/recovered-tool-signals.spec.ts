// The report of a tool that decided an event, made again from that event.
import { describe, expect, it } from 'vitest'
import { sampleFacts, sampleCallId, sampleRunId, stampFacts } from '@tallystick/testkit'
import { toolSignals } from '../src/machine/decide-signals.ts'

const runId = sampleRunId(1)
const toolCallId = sampleCallId(runId)
const facts = sampleFacts(runId)
const at = 1_760_000_000_001
const state = { calls: [{ toolCallId, attempts: 3 }], phase: 'executing' }
const recovered = (cause: string, fact: object, from: object = state) =>
  toolSignals[cause as keyof typeof toolSignals].recover(from as never, {
    recorded: stampFacts(runId, [fact as never]),
    index: 0,
  })

describe('the report that is made again from an event', () => {
  it('is undefined where the event is of another type', () => {
    const other = facts.input_received
    for (const cause of ['tool_progressed', 'tool_deferred', 'tool_ended', 'call_reconciled'])
      expect(recovered(cause, other)).toBeUndefined()
  })

  it('is that of progress', () => {
    expect(recovered('tool_progressed', facts.tool_progress)).toStrictEqual({
      ...{ type: 'tool_progressed', toolCallId, attempt: 1, data: { done: 0.5 } },
    })
  })

  it('is that of a call which ends later, with the time that it was given', () => {
    const { deadlineAt: _at, ...open } = facts.tool_deferred
    const deferred = { type: 'tool_deferred', toolCallId, attempt: 1, externalId: 'job-7' }
    expect(recovered('tool_deferred', open)).toStrictEqual(deferred)
    expect(recovered('tool_deferred', { ...open, deadlineAt: at + 500 })).toStrictEqual({
      ...{ ...deferred, deadlineMs: 500 },
    })
  })

  it('is that of an attempt which failed, to be tried again', () => {
    const { retryAfterMs: _ms, ...failed } = facts.tool_attempt_failed
    const ended = {
      ...{ type: 'tool_ended', toolCallId, attempt: 1, outcome: 'failed', durationMs: 7, retryable: true },
      content: failed.content,
    }
    expect(recovered('tool_ended', failed)).toStrictEqual(ended)
    expect(recovered('tool_ended', facts.tool_attempt_failed)).toStrictEqual({ ...ended, retryAfterMs: 800 })
  })

  it('is that of an ending, of the attempt that is under way', () => {
    const {
      projected,
      shown,
      child,
      reused,
      durationMs,
      name: _name,
      turn: _turn,
      ...result
    } = facts.tool_result
    const ended = { ...result, type: 'tool_ended', attempt: 3, durationMs: 0 }
    expect(recovered('tool_ended', { ...result, name: 'x', turn: 1 })).toStrictEqual(ended)
    expect(recovered('tool_ended', facts.tool_result)).toStrictEqual({
      ...{ ...ended, durationMs, projected, shown, child, reused },
    })
    expect(recovered('tool_ended', { ...result, turn: 1 }, { ...state, calls: [] })).toMatchObject({
      attempt: 0,
    })
  })

  it('is what became of a call in doubt', () => {
    const said = (fact: object) => recovered('call_reconciled', fact)
    const finding = (found: object) => ({ type: 'call_reconciled', toolCallId, finding: found })
    expect(said(facts.tool_started)).toStrictEqual(finding({ state: 'not_done' }))
    const { content } = facts.tool_result
    expect(said(facts.tool_result)).toStrictEqual(finding({ state: 'done', outcome: 'success', content }))
    expect(said({ ...facts.tool_result, outcome: 'interrupted' })).toStrictEqual(
      finding({ state: 'unknown' }),
    )
  })
})
