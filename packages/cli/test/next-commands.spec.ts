import { sampleCallId, sampleRunId } from '@tallystick/testkit'
import { deriveChildRunId } from '@tallystick/core/vocabulary'
import type { RunRow } from '../src/runs/run-status.ts'
import { findNextCommand } from '../src/view/run-table.ts'
import { formatAfterwards, formatContinuation, type StoppedRun } from '../src/command/next-commands.ts'
import { describe, expect, it } from 'vitest'

const [runId, childId] = [sampleRunId(1), sampleRunId(2)]
const callId = sampleCallId(runId)
const place = { programName: 'tallystick', ledgerPath: 'runs.db' }

const approval = { name: 'pay', toolCallId: callId, input: { usd: 5 }, runId }
const deferred = { name: 'ship', toolCallId: callId, input: {}, externalId: 'job-7', runId }
const stopped = (more: object = {}, metLimit?: StoppedRun['metLimit']): StoppedRun => {
  const result = { runId, pendingApprovals: [], deferredCalls: [], ...more }
  return { result, ...(metLimit && { metLimit }) } as unknown as StoppedRun
}
const lines = (...all: readonly string[]): string => all.map((line) => `${line}\n`).join('')
const resume = `  tallystick resume runs.db ${runId}`

describe('what to do with a run that was driven', () => {
  it('is to look at it once it is done', () => {
    expect(formatAfterwards(runId, place)).toBe(
      lines(
        'The ledger is runs.db. Look at it with:',
        '  tallystick list runs.db',
        `  tallystick show runs.db ${runId}`,
        '  tallystick verify runs.db',
        `  tallystick replay runs.db ${runId}`,
        `  tallystick export runs.db --run ${runId}`,
      ),
    )
  })

  it('is to continue it where it rests, with the options that it was driven with', () => {
    expect(formatContinuation(stopped(), place)).toBe(lines('The run rests here. This continues it:', resume))
    const resumeArguments = ['--model', 'a b']
    expect(formatContinuation(stopped(), { ...place, resumeArguments })).toBe(
      lines('The run rests here. This continues it:', `${resume} --model 'a b'`),
    )
  })

  it('is to decide about each call that waits for a person', () => {
    expect(formatContinuation(stopped({ pendingApprovals: [approval] }), place)).toBe(
      lines(
        'The run is suspended until a person decides about pay {"usd":5}:',
        `  tallystick approve runs.db ${runId} ${callId} --by you`,
        `  tallystick deny runs.db ${runId} ${callId} --by you --reason 'too many'`,
        'Then this continues it:',
        resume,
      ),
    )
    const long = { ...approval, runId: childId, input: { text: 'x'.repeat(500) } }
    const ofChild = formatContinuation(stopped({ pendingApprovals: [long] }), place)
    expect(ofChild).toContain(`about pay {"text":"${'x'.repeat(390)}…, which run ${childId} asks for:\n`)
    expect(ofChild).toContain(`  tallystick approve runs.db ${childId} ${callId} --by you\n`)
  })

  it('is to settle each call that continues outside, and none that a child run settles', () => {
    expect(formatContinuation(stopped({ deferredCalls: [deferred] }), place)).toBe(
      lines(
        'The run is suspended until ship, which continues outside as job-7, has come to an end:',
        `  tallystick settle runs.db ${runId} ${callId} --result 'what it came to'`,
        'Then this continues it:',
        resume,
      ),
    )
    const below = { ...deferred, runId: childId }
    expect(formatContinuation(stopped({ deferredCalls: [below] }), place)).toContain(
      `has come to an end, which run ${childId} asks for:\n  tallystick settle runs.db ${childId} `,
    )
    const child = { ...deferred, externalId: deriveChildRunId(runId, callId) }
    expect(formatContinuation(stopped({ deferredCalls: [child] }), place)).toContain('The run rests here.')
  })

  it('is to raise the limit that it has met, where it waits for nothing else', () => {
    const limit = { limit: 'maxTurns', max: 4 } as const
    expect(formatContinuation(stopped({}, limit), place)).toBe(
      lines(
        'The run is suspended at its limit maxTurns of 4, until a command raises it:',
        `  tallystick raise runs.db ${runId} maxTurns 8 --by you`,
        'Then this continues it:',
        resume,
      ),
    )
    expect(formatContinuation(stopped({ pendingApprovals: [approval] }, limit), place)).not.toContain('raise')
  })
})

describe('the command that takes a listed run further', () => {
  const row = (status: string, waits: object = {}, limit?: object): RunRow =>
    ({
      summary: { runId, waits: { limit } },
      statusView: { status },
      waits: { approvals: [], deferred: [], children: [], ...waits },
    }) as unknown as RunRow
  const next = (...given: Parameters<typeof row>) => findNextCommand(row(...given), place)
  const raised = { limit: 'maxTurns', max: 4 }

  it('is absent where the run is done, or under way', () => {
    expect([next('done'), next('continued'), next('unreadable')]).toEqual([undefined, undefined, undefined])
  })

  it('resumes what was interrupted, or waits for an input', () => {
    expect(next('interrupted')).toBe(`tallystick resume runs.db ${runId}`)
    expect(next('interrupted', { approvals: [approval] })).toBe(`tallystick resume runs.db ${runId}`)
    expect(next('suspended')).toBe(`tallystick resume runs.db ${runId}`)
    expect(next('suspended', { children: [{ runId: childId }] }, raised)).toBe(
      `tallystick resume runs.db ${runId}`,
    )
    expect(next('suspended', {}, { limit: 'maxTurns' })).toBe(`tallystick resume runs.db ${runId}`)
  })

  it('approves or settles the first call that waits, in its own run, or raises the limit', () => {
    const below = { ...approval, runId: childId }
    expect(next('suspended', { approvals: [below, approval], deferred: [deferred] })).toBe(
      `tallystick approve runs.db ${childId} ${callId} --by you`,
    )
    expect(next('suspended', { deferred: [deferred] }, raised)).toBe(
      `tallystick settle runs.db ${runId} ${callId} --result 'what it came to'`,
    )
    expect(next('suspended', {}, raised)).toBe(`tallystick raise runs.db ${runId} maxTurns 8 --by you`)
    expect(next('suspended', {}, { limit: 'maxTurns', max: 0 })).toContain('raise runs.db')
    expect(next('suspended', {}, { limit: 'maxTurns', max: 0 })).toContain(' maxTurns 1 --by you')
  })
})
