import { sampleCallId, sampleRunId } from '@tallystick/testkit'
import { describe, expect, it } from 'vitest'
import { findDecisionFault, raiseFault, ShownApprovals } from '../src/runtime/run.ts'

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
