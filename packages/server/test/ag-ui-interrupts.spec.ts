import type { RunState } from '@tallystick/core'
import { sampleRunId } from '@tallystick/testkit'
import { expect, it } from 'vitest'
import { createAgUiTable } from '../src/ag-ui/map.ts'
import { toApprovalId } from '../src/stream/run-moves.ts'

const runId = sampleRunId(1)

/** The interrupts by which a client of AG-UI learns what a run waits for. */
function interruptsOf(waits: object): unknown {
  const state = { runId } as unknown as RunState
  const table = createAgUiTable({ threadId: 't1' })
  const [ended] =
    table.run_waits?.({ type: 'run_waits', state, waits: { approvals: [], deferred: [], ...waits } }) ?? []
  expect(ended).toMatchObject({ type: 'RUN_FINISHED', threadId: 't1', runId, outcome: { type: 'interrupt' } })
  return (ended as { outcome: { interrupts: unknown } } | undefined)?.outcome.interrupts
}

it('a run that waits for an approval interrupts with the question, and with what an answer may say', () => {
  const approval = {
    ...{ runId, toolCallId: 'call_1', attempt: 1, inputDigest: 'd1', name: 'pay', input: { usd: 5 } },
  }
  const interrupt = {
    ...{ id: toApprovalId(approval), reason: 'tool_approval', toolCallId: 'call_1' },
    message: 'May pay run with this input?',
    metadata: { name: 'pay', input: { usd: 5 } },
    responseSchema: {
      type: 'object',
      properties: { approved: { type: 'boolean' }, reason: { type: 'string' }, input: { type: 'object' } },
      required: ['approved'],
    },
  }
  expect(interruptsOf({ approvals: [approval] })).toEqual([interrupt])
  expect(interruptsOf({ approvals: [{ ...approval, reason: 'It is money.' }] })).toEqual([
    { ...interrupt, message: 'It is money.' },
  ])
})

it('a run that waits for another system interrupts with the call, and one at its limit with the limit', () => {
  const call = { toolCallId: 'call_2', name: 'ship', input: { to: 'Ada' }, externalId: 'job 7' }
  expect(interruptsOf({ deferred: [call], limit: 'maxTurns' })).toEqual([
    {
      ...{ id: 'call_2', reason: 'deferred_call', toolCallId: 'call_2' },
      metadata: { name: 'ship', input: { to: 'Ada' }, externalId: 'job 7' },
    },
    { id: 'maxTurns', reason: 'limit_reached' },
  ])
})
