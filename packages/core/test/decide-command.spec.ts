import type { Fact } from '@tallystick/core/vocabulary'
import { sampleFacts, given, sampleMessage, stampFacts, sampleCallId, sampleRunId } from '@tallystick/testkit'
import { describe, expect, it } from 'vitest'
import { findDecisionFault, raiseFault, ShownApprovals } from '../src/runtime/run.ts'
import { begun, called, callId, executing, runId, startedCall } from './pages.ts'
import type { StartCommand } from '../src/events/commands.ts'

const streaming = [...begun(), called()]
const here = { turn: 1, attempt: 1 }
const at = stampFacts(runId, streaming).at(-1)!.at

describe('given a run, when a command comes', () => {
  const { definition, retry } = sampleFacts(runId).run_started
  const start: StartCommand = {
    ...{ type: 'start', runId, agent: 'agent', definition, retry, limits: { maxTurns: 3 } },
    input: sampleMessage('Go.'),
  }

  it('for its start, it exists and has its input; a second start is refused', () => {
    given([])
      .when({ ...start, sessionId: 's1', parent: { runId, seq: 3, relation: 'fork' } })
      .then([
        {
          ...{ type: 'run_started', turn: 0, agent: 'agent', definition, limits: { maxTurns: 3 }, retry },
          ...{ sessionId: 's1', parent: { runId, seq: 3, relation: 'fork' } },
        },
        { type: 'input_received', turn: 0, message: sampleMessage('Go.'), delivery: 'start' },
      ])
    given(streaming).when(start).thenRefused('run_exists')
    given([]).when({ type: 'cancel' }).thenRefused('not_supported')
  })

  it('to stop, that is on record once', () => {
    given(streaming)
      .when({ type: 'cancel', by: 'ada', reason: 'enough' })
      .then([{ type: 'cancel_requested', turn: 1, by: 'ada', reason: 'enough' }])
    given([...streaming, { type: 'cancel_requested', turn: 1 }])
      .when({ type: 'cancel' })
      .thenRefused('already_cancelled')
  })

  it('to raise a limit, it is raised, and never lowered', () => {
    const limited = streaming.map((event) =>
      event.type === 'run_started' ? { ...event, limits: { maxTurns: 3 } } : event,
    )
    const raise = { type: 'raise_limit', limit: 'maxTurns', by: 'ada' } as const
    given(limited)
      .when({ ...raise, max: 9 })
      .then([{ type: 'limit_raised', turn: 1, limit: 'maxTurns', max: 9, by: 'ada' }])
    given(limited)
      .when({ ...raise, max: 3 })
      .thenRefused('not_raised')
    given(streaming)
      .when({ ...raise, max: 9 })
      .thenRefused('not_raised')
  })

  it('to resume it, what was in flight is given up first', () => {
    const resume = { type: 'resume', why: 'crash', definition } as const
    const same = given(streaming).state!.definition
    given(streaming)
      .when({ ...resume, definition: same })
      .then([
        { type: 'run_resumed', turn: 1, why: 'crash', inDoubt: [] },
        {
          ...{ type: 'model_stream_failed', ...here, retryAt: at },
          failure: {
            ...{ class: 'interrupted', retryable: true },
            message: 'The process that made this call stopped before the reply was complete.',
          },
        },
      ])
    given([...executing(['look', 'look']), startedCall(2)])
      .when({ ...resume, definition: same })
      .then([{ type: 'run_resumed', turn: 1, why: 'crash', inDoubt: [callId(2)] }])
    const changed = { ...definition, digest: 'another' }
    given(begun())
      .when({ ...resume, why: 'command', definition: changed })
      .then([{ type: 'run_resumed', turn: 0, why: 'command', inDoubt: [], definition: changed }])
  })

  it('anything of a run that is done, that is refused', () => {
    const done: readonly Fact[] = [
      ...begun(),
      { type: 'run_finished', turn: 0, reason: 'turn_limit', turns: 0, toolCalls: 0, usage: {} },
    ]
    const message = sampleMessage('And?')
    for (const command of [
      { type: 'cancel' },
      { type: 'approve', toolCallId: callId(1), by: 'ada' },
      { type: 'deny', toolCallId: callId(1), by: 'ada', reason: 'no' },
      { type: 'raise_limit', limit: 'maxTurns', max: 9, by: 'ada' },
      { type: 'steer', message, receipt: 'r1' },
      { type: 'queue', message, receipt: 'r1' },
      { type: 'resume', why: 'command', definition },
    ] as const) {
      given(done).when(command).thenRefused('run_finished')
    }
    expect(given(done).state).toMatchObject({ phase: 'done', reason: 'turn_limit' })
  })
})

const toolCallId = sampleCallId(sampleRunId(1))
const shown = { toolCallId, attempt: 1, inputDigest: 'd' }
const by = { by: 'ada' }
const fault = (kind: 'approve' | 'deny', call: unknown, decision: unknown): string | undefined => {
  const found = findDecisionFault(kind, call, decision)
  return found && `${found.path} ${found.what}`
}

describe('a decision about a call', () => {
  it.each<readonly ['approve' | 'deny', unknown, unknown]>([
    ['approve', toolCallId, by],
    ['approve', shown, by],
    ['approve', { ...shown, runId: sampleRunId(1), name: 'pay', input: {}, reason: 'dear' }, by],
    ['approve', toolCallId, { ...by, via: 'prompt', attempt: 1, inputDigest: 'd', input: { a: 1 } }],
    ['deny', shown, { ...by, reason: '' }],
    ['deny', shown, { ...by, via: 'prompt', attempt: 2, inputDigest: 'd', reason: 'no' }],
  ])('may be to %s %j by %j', (kind, call, decision) => {
    expect(fault(kind, call, decision)).toBeUndefined()
  })

  it.each<readonly ['approve' | 'deny', unknown, unknown, string]>([
    ['approve', '', by, 'the tool call id is an empty text'],
    ['approve', 7, by, 'the tool call id is 7'],
    ['approve', { ...shown, attempt: 0 }, by, 'the approval.attempt is 0'],
    ['approve', { ...shown, attempt: 1.5 }, by, 'the approval.attempt is 1.5'],
    ['approve', { ...shown, attempt: undefined }, by, 'the approval.attempt is missing'],
    ['approve', { ...shown, inputDigest: '' }, by, 'the approval.inputDigest is an empty text'],
    ['approve', { ...shown, runId: sampleRunId(2) }, by, 'the approval.runId is not the run of its'],
    ['approve', { toolCallId }, by, 'the approval.attempt is missing'],
    ['approve', toolCallId, {}, 'by is missing'],
    ['approve', toolCallId, { ...by, attempt: 0 }, 'attempt is 0'],
    ['approve', toolCallId, { ...by, attempt: 1.5 }, 'attempt is 1.5'],
    ['approve', toolCallId, { ...by, inputDigest: '' }, 'inputDigest is an empty text'],
    ['approve', toolCallId, { ...by, via: '' }, 'via is an empty text'],
    ['approve', toolCallId, { ...by, input: 'x' }, 'input is a text'],
    ['approve', toolCallId, { ...by, reason: 7 }, 'reason is 7'],
    ['deny', toolCallId, by, 'reason is missing'],
    ['deny', toolCallId, { reason: 'no' }, 'by is missing'],
    ['deny', toolCallId, { ...by, reason: 'no', input: {} }, 'input is not an option'],
    ['deny', '', { ...by, reason: 'no' }, 'the tool call id is an empty text'],
  ])('may not be to %s %j by %j', (kind, call, decision, message) => {
    expect(fault(kind, call, decision)).toContain(message)
  })
})

describe('a limit that is raised', () => {
  it('is a limit, to a number, by a person', () => {
    expect(raiseFault('maxTurns', 0, by)).toBeUndefined()
    expect(raiseFault('maxCostUsd', 2.5, by)).toBeUndefined()
    expect(raiseFault('maxDurationMs', 2.5, by)).toBeUndefined()
    expect(raiseFault('maxTurns', 2.5, by)).toMatchObject({ path: 'maxTurns' })
    expect(raiseFault('maxTurns', 5, 'ada')?.what).toBe('is a text; expected an object')
    expect(raiseFault('maxTurns', 5, { ...by, reason: 'It is nearly done.' })).toBeUndefined()
    expect(raiseFault('sky', 1, by)).toMatchObject({ path: 'the limit' })
    expect(raiseFault('maxTurns', -1, by)).toMatchObject({ path: 'maxTurns' })
    expect(raiseFault('maxTurns', 1, { by: '' })).toMatchObject({ path: 'the decision.by' })
    expect(raiseFault('sky', -1, '')).toMatchObject({ path: 'the limit' })
    expect(raiseFault('maxTurns', '5', '')).toMatchObject({ path: 'maxTurns' })
  })
})

describe('the question that a decision answers', () => {
  it('is the one that was shown last, unless the decision names another', async () => {
    const approvals = new ShownApprovals()
    expect(approvals.answered(toolCallId, {})).toStrictEqual({ toolCallId })
    const other = { ...shown, attempt: 2, inputDigest: 'e' }
    approvals.takeResult(Promise.resolve({ pendingApprovals: [shown] } as never))
    approvals.takeResult(Promise.reject(new Error('the run failed')))
    await Promise.resolve()
    expect(approvals.answered(toolCallId, {})).toStrictEqual(shown)
    approvals.event({ type: 'approval_requested', ...other } as never)
    approvals.event({ type: 'approval_decided', ...shown } as never)
    expect(approvals.answered(toolCallId, {})).toStrictEqual(other)
    expect(approvals.answered(toolCallId, { attempt: 3 })).toStrictEqual({ ...other, attempt: 3 })
    expect(approvals.answered(toolCallId, { inputDigest: 'f' })).toStrictEqual({ ...other, inputDigest: 'f' })
    expect(approvals.answered(shown, {})).toStrictEqual(shown)
    expect(approvals.answered({ ...shown, name: 'pay' } as never, { attempt: 3 })).toStrictEqual({
      ...shown,
      attempt: 3,
    })
    expect(approvals.answered('call_2', {})).toStrictEqual({ toolCallId: 'call_2' })
  })
})
