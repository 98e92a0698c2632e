// What the call of a parent hears of the run that does its work.
import { LedgerConflictError } from '@tallystick/core'
import { manualClock, sampleCallId, sampleRunId } from '@tallystick/testkit'
import { deriveChildRunId, type Signal } from '@tallystick/core/vocabulary'
import { describe, expect, it } from 'vitest'
import { type ChildStop, startChild } from '../src/runtime/children.ts'

const runId = sampleRunId(1)
const toolCallId = sampleCallId(runId)
const externalId = deriveChildRunId(runId, toolCallId)
const totals = { runId: sampleRunId(2), usage: { inputTokens: 3 }, turns: 1, toolCalls: 0 }
const ending: ChildStop = {
  ...{ kind: 'ended', outcome: 'success', content: [{ type: 'text', text: 'Found.' }], totals },
}

/** A call whose child run a test lets stop. */
function withCall(
  status: 'started' | 'deferred' = 'started',
  known: () => Promise<unknown> = async () => totals,
) {
  const clock = manualClock()
  const posted: Signal[] = []
  const begun = Promise.withResolvers<ChildStop>()
  const cancelled = Promise.withResolvers<ChildStop>()
  const asked: string[] = []
  const driven = {
    begin: () => {
      asked.push('begin')
      return begun.promise
    },
    cancel: (reason: string) => {
      asked.push(`cancel: ${reason}`)
      return cancelled.promise
    },
    totals: known,
  } as never
  const state = { runId, limits: { graceMs: 500 }, cancel: {} } as never
  const call = { toolCallId, attempts: 2, status } as never
  const running = startChild(driven, { state, call, clock }, (signal) => posted.push(signal))
  return { ...{ clock, posted, begun, cancelled, asked, running } }
}

const turns = async (): Promise<void> => {
  for (let turn = 0; turn < 20; turn++) await Promise.resolve()
}
const ended = (more: object): object => ({ type: 'tool_ended', toolCallId, attempt: 2, ...more })
const deferred = { type: 'tool_deferred', toolCallId, attempt: 2, externalId }

describe('a call whose work a child run does', () => {
  it('ends with the child run, and tells what that took', async () => {
    const { clock, posted, begun, asked } = withCall()
    expect(asked).toEqual(['begin'])
    clock.advance(40)
    begun.resolve(ending)
    await turns()
    expect(posted).toStrictEqual([
      ended({ outcome: 'success', content: ending.content, child: totals, durationMs: 40 }),
    ])
  })

  it('is deferred while the child run waits, or another process drives it', async () => {
    for (const stop of ['waits', 'conflict']) {
      const { posted, begun } = withCall()
      if (stop === 'waits') begun.resolve({ kind: 'waits' })
      else begun.reject(new LedgerConflictError('epoch', 'Another process drives it.'))
      await turns()
      expect(posted).toStrictEqual([deferred])
    }
  })

  it('fails where the child run cannot be driven, with what it took as far as that is known', async () => {
    const unknown = withCall('started', () => Promise.resolve(undefined))
    unknown.begun.reject(new Error('no disk'))
    await turns()
    expect(unknown.posted[0]).not.toHaveProperty('child')
    const known = withCall()
    known.begun.reject(new Error('no disk'))
    await turns()
    expect(known.posted).toMatchObject([
      ended({
        ...{ outcome: 'failed', child: totals },
        content: [{ type: 'text', text: expect.stringContaining('The work could not be done: no disk') }],
      }),
    ])
  })

  it('that waits already begins nothing, and is only stopped', async () => {
    const { asked, running, cancelled, posted } = withCall('deferred')
    expect(asked).toEqual([])
    running.cancel('enough')
    running.cancel('really')
    expect(asked).toEqual(['cancel: enough'])
    cancelled.resolve({ kind: 'never_begun' })
    await turns()
    expect(posted).toMatchObject([ended({ outcome: 'cancelled', content: [{ type: 'text' }] })])
    expect(posted[0]).not.toHaveProperty('child')
  })

  it('is deferred by its cancel alone, once it is cancelled', async () => {
    const { running, begun, cancelled, posted } = withCall()
    running.cancel('enough')
    begun.resolve({ kind: 'waits' })
    await turns()
    expect(posted).toEqual([])
    cancelled.resolve({ kind: 'waits' })
    await turns()
    expect(posted).toStrictEqual([deferred])
  })

  it('may record its end behind the grace time, and counts what it says then', async () => {
    const { clock, running, cancelled, posted } = withCall()
    running.cancel('enough')
    clock.advance(2_500)
    await turns()
    expect(posted).toEqual([])
    const spent = { ...totals, turns: 3 }
    cancelled.resolve({ kind: 'ended', outcome: 'cancelled', content: [], totals: spent })
    await turns()
    expect(posted).toMatchObject([ended({ outcome: 'cancelled', child: spent, durationMs: 2_500 })])
  })

  it('is left where it does not even record its end', async () => {
    const { clock, running, posted } = withCall()
    running.cancel('enough')
    clock.advance(10_499)
    await turns()
    expect(posted).toEqual([])
    clock.advance(1)
    await turns()
    expect(posted).toMatchObject([
      ended({
        ...{ outcome: 'cancelled', child: totals, durationMs: 10_500 },
        content: [{ type: 'text', text: expect.stringContaining('had not stopped in time') }],
      }),
    ])
    const stopped = withCall()
    stopped.running.cancel('enough')
    stopped.running.stop()
    stopped.clock.advance(19_000)
    await turns()
    expect([stopped.posted, stopped.clock.pending]).toEqual([[], 0])
    const idle = withCall()
    expect(() => idle.running.stop()).not.toThrow()
  })
})
