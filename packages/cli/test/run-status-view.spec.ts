import { sampleCallId, sampleRunId } from '@tallystick/testkit'
import type { RunSummary } from '@tallystick/ledger'
import { describe, expect, it } from 'vitest'
import { formatStatus, toSummaryStatusView, type WaitedFor } from '../src/runs/run-status.ts'

const runId = sampleRunId(1)
const child = sampleRunId(2)
const toolCallId = sampleCallId(runId)
const none: WaitedFor = { approvals: [], deferred: [], children: [] }

/** What is said of a run of this summary. */
function reported(
  summary: Partial<RunSummary>,
  { waits = none, isDriven = false, detail }: { waits?: WaitedFor; isDriven?: boolean; detail?: string } = {},
): string {
  const whole = {
    runId,
    turn: 2,
    started: [],
    isStreaming: false,
    waits: {},
    ...summary,
  } as unknown as RunSummary
  return formatStatus(
    toSummaryStatusView(whole, { waits, isDriven, ...(detail !== undefined && { detail }) }),
  )
}

describe('the status of a run in words', () => {
  it('given a run that has ended, when it is shown, then with its reason, and its detail where there is one', () => {
    expect(reported({ status: 'done', reason: 'answered' })).toBe('done: answered')
    expect(reported({ status: 'failed', reason: 'model_failed' }, { detail: 'Try\nlater.' })).toBe(
      'done: model_failed (Try later.)',
    )
    expect(reported({ status: 'done', reason: 'answered' }, { detail: ' ' })).toBe('done: answered')
  })

  it('given calls that wait, when they are shown, then each with its run, where that is another one', () => {
    const call = { runId, toolCallId, name: 'pay' }
    const other = { runId: child, toolCallId, name: 'ship' }
    const suspended = { status: 'suspended' } as const
    expect(reported(suspended, { waits: { ...none, approvals: [call], deferred: [other] } })).toBe(
      `suspended on pay ${toolCallId}, ship ${toolCallId} of run ${child}`,
    )
    const childWait = { toolCallId, name: 'ask', runId: child }
    const working = { ...childWait, status: 'unfinished' as const }
    const waiting = { ...childWait, status: 'suspended' as const }
    expect(reported(suspended, { waits: { ...none, approvals: [call], children: [waiting, working] } })).toBe(
      `suspended on pay ${toolCallId}, run ${child}, which is unfinished`,
    )
    expect(reported(suspended, { waits: { ...none, children: [waiting] } })).toBe(`suspended on run ${child}`)
  })

  it('given nothing that waits, when it is shown, then the limit that was met, or else an input', () => {
    const limit = { limit: { limit: 'maxTurns', max: 3 } } as never
    expect(reported({ status: 'suspended', waits: limit })).toBe('suspended on the limit maxTurns')
    expect(reported({ status: 'suspended' })).toBe('suspended on an input')
  })

  it('given work under way, when it is shown, then what it is, and whether a process may be at it', () => {
    const status = 'unfinished'
    const started = [{ toolCallId, name: 'look' }] as RunSummary['started']
    expect(reported({ status, isStreaming: true, started })).toBe('interrupted in the model call of turn 2')
    expect(reported({ status, started }, { isDriven: true })).toBe(`under way: look ${toolCallId}`)
    expect(reported({ status })).toBe('interrupted in turn 2')
    expect(reported({ status, turn: 0 })).toBe('interrupted in its beginning')
  })

  it('given a detail that is long, when there is little room, then it is cut', () => {
    const view = { status: 'continued', detail: '0123456789' } as const
    expect(formatStatus(view, 5)).toBe('under way: 0123…')
    expect(formatStatus(view)).toBe('under way: 0123456789')
  })
})
