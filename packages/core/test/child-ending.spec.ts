import { describe, expect, it } from 'vitest'
import type { RunResult } from '@tallystick/core'
import { sampleCallId, sampleRunId } from '@tallystick/testkit'
import { toChildStop, toSettleCommand } from '../src/runtime/children.ts'

const runId = sampleRunId(1)
const base = {
  ...{ runId, agent: 'worker', text: '', output: '', turns: 2, toolCalls: 3, usage: { inputTokens: 7 } },
  ...{
    children: { runs: 1, turns: 10, toolCalls: 20 },
    pendingApprovals: [],
    deferredCalls: [],
    messages: [],
    toInput: () => [],
    seq: 9,
  },
}
const ended = (reason: string, own: Partial<RunResult> = {}): RunResult =>
  ({ ...base, status: 'done', reason, ...own }) as unknown as RunResult

describe('the result of a call whose work a child run does', () => {
  const limits = [
    ...['turn_limit', 'tool_call_limit', 'token_limit', 'cost_limit', 'time_limit', 'repeat_limit'],
    'stopped',
  ]

  it.each<[RunResult, string, string]>([
    [ended('answered', { text: 'Found it.' }), 'success', 'Found it.'],
    [ended('answered'), 'success', 'The work is done, and its answer is empty.'],
    [
      ended('cancelled', { detail: 'enough', text: 'So f' }),
      'cancelled',
      'The work was cancelled (cancelled: enough).',
    ],
    [ended('cancelled'), 'cancelled', 'The work was cancelled (cancelled).'],
    ...limits.flatMap((reason): [RunResult, string, string][] => [
      [
        ended(reason, { text: 'Half of it.' }),
        'success',
        `The work was stopped early (${reason}). What there was of it:\nHalf of it.`,
      ],
      [ended(reason), 'failed', `The work ended without an answer (${reason}).`],
    ]),
    [
      ended('model_failed', { detail: 'overloaded', text: 'Looking.' }),
      'failed',
      'The work ended without an answer (model_failed: overloaded). Its last words were:\nLooking.',
    ],
    [ended('output_invalid'), 'failed', 'The work ended without an answer (output_invalid).'],
  ])('is what the child run ended in: %j', (result, outcome, text) => {
    expect(toChildStop(result)).toEqual({
      ...{ kind: 'ended', outcome, content: [{ type: 'text', text }] },
      totals: { runId, usage: { inputTokens: 7 }, turns: 12, toolCalls: 23 },
    })
  })

  it('counts what the child run cost, where that is known', () => {
    expect(toChildStop(ended('answered', { costUsd: 0 }))).toMatchObject({ totals: { costUsd: 0 } })
    expect(toChildStop(ended('answered'))).not.toHaveProperty('totals.costUsd')
  })

  it.each(['suspended', 'interrupted'] as const)('is still to come where the child run is %s', (status) => {
    expect(toChildStop({ ...base, status })).toEqual({ kind: 'waits' })
  })

  it.each([
    ['success', 'success'],
    ['failed', 'failed'],
    ['cancelled', 'failed'],
  ] as const)('that is %s settles the call of its parent as %s', (outcome, settled) => {
    const totals = { runId, usage: {}, turns: 1, toolCalls: 0 }
    const content = [{ type: 'text', text: 'So.' }] as const
    const toolCallId = sampleCallId(runId)
    expect(toSettleCommand(toolCallId, { kind: 'ended', outcome, content, totals })).toEqual({
      ...{ type: 'settle', toolCallId, outcome: settled, content, child: totals },
    })
  })
})
