import { describe, expect, it } from 'vitest'
import { memoryLedger, type Ledger, type RunId } from '@tallystick/core'
import { requiredEffects } from '@tallystick/core/machine'
import { given, manualClock, testTool, type TestTool } from '@tallystick/testkit'
import type { Fact, Reconciliation, Recovery } from '@tallystick/core/vocabulary'
import {
  begun,
  called,
  callId,
  executing,
  replyFinished,
  requested,
  startedCall,
  pending,
  cancelRequested,
} from './pages.ts'
import { checkedRun, ofType, stage, typesOf, type Stage } from './stage.ts'

const resumed = (inDoubt: readonly number[]): Fact => ({
  ...{ type: 'run_resumed', turn: 1, why: 'crash', inDoubt: inDoubt.map((ordinal) => callId(ordinal)) },
})

/** A run whose process died while its tool ran: it started, and its end is on no record. */
async function inDoubt(
  recovery: Recovery,
  reconcile?: () => Promise<Reconciliation>,
): Promise<{ readonly set: Stage; readonly runId: RunId; readonly send: TestTool }> {
  const clock = manualClock()
  const ledger = memoryLedger({ clock })
  // A process that is gone renews no lease.
  const dying: Ledger = { ...ledger, renew: () => Promise.resolve([]) }
  const steps = [{ toolCalls: [{ name: 'send', input: {} }] }, { text: 'Sent.' }]
  const make = (run?: () => Promise<string>): TestTool =>
    testTool({
      name: 'send',
      effect: 'write',
      recovery,
      ...(run && { run }),
      ...(reconcile && { reconcile }),
    })
  const send = make()
  const first = stage({ ledger: dying, clock, steps, tools: [make(() => new Promise(() => {}))] })
  const run = first.start()
  const dead = new Promise<void>((resolve) => {
    run.events$.subscribe(({ type }) => {
      if (type === 'tool_started') resolve()
    })
  })
  await first.waitUntilSettled(dead)
  const set = stage({ ledger, clock: first.clock, steps: steps.slice(1), tools: [send] })
  return { set, runId: run.id, send }
}

describe('a call in doubt: it was started, its process died, and its end is on no record', () => {
  const ended: Reconciliation = {
    state: 'done',
    outcome: 'success',
    content: [{ type: 'text', text: 'sent' }],
  }
  it.each<[Recovery, readonly number[], string]>([
    ['report', [1], 'interrupted'],
    ['rerun', [1, 2], 'success'],
    ['reconcile', [1], 'success'],
  ])('is treated by a resume as its tool declares: %s', async (recovery, starts, outcome) => {
    const { set, runId, send } = await inDoubt(recovery, () => Promise.resolve(ended))
    expect(await set.waitUntilSettled(set.runtime.resume(runId).result)).toMatchObject({ status: 'done' })
    const events = checkedRun(await set.eventsOf(runId))
    expect(ofType(events, 'tool_started').map(({ attempt }) => attempt)).toEqual(starts)
    expect(ofType(events, 'tool_result').map((result) => result.outcome)).toEqual([outcome])
    expect(send.runs.map(({ attempt }) => attempt)).toEqual(starts.slice(1))
  })
})

describe('a call in doubt whose tool wants a person to decide', () => {
  it('is started again only if the person says so, under the same key', async () => {
    const { set, runId, send } = await inDoubt('ask')
    const rest = await set.waitUntilSettled(set.runtime.resume(runId).result)
    expect(rest).toMatchObject({ status: 'suspended', pendingApprovals: [{ name: 'send' }] })
    expect(rest.pendingApprovals[0]?.reason).toContain('nobody knows whether it took effect')
    const run = set.runtime.resume(rest.runId)
    await set.waitUntilSettled(run.approve(rest.pendingApprovals[0]!, { by: 'ada' }))
    expect(await set.waitUntilSettled(run.result)).toMatchObject({ status: 'done', toolCalls: 1 })
    const starts = ofType(checkedRun(await set.eventsOf(rest.runId)), 'tool_started')
    expect(starts.map(({ attempt }) => attempt)).toEqual([1, 2])
    expect(new Set(starts.map(({ idempotencyKey }) => idempotencyKey)).size).toBe(1)
    expect(send.runs.map(({ attempt, idempotencyKey }) => [attempt, idempotencyKey])).toEqual([
      [2, starts[0]!.idempotencyKey],
    ])
  })

  it('stays in doubt for the model when the person says no', async () => {
    const { set, runId, send } = await inDoubt('ask')
    const rest = await set.waitUntilSettled(set.runtime.resume(runId).result)
    const run = set.runtime.resume(rest.runId)
    await set.waitUntilSettled(run.deny(rest.pendingApprovals[0]!, { by: 'ada', reason: 'it arrived' }))
    expect(await set.waitUntilSettled(run.result)).toMatchObject({ status: 'done' })
    const events = checkedRun(await set.eventsOf(rest.runId))
    expect(ofType(events, 'tool_result').map(({ outcome }) => outcome)).toEqual(['interrupted'])
    expect(ofType(events, 'tool_result')[0]?.content).toMatchObject([
      {
        text: 'Nobody knows whether this call took effect, and ada decided not to start it again: it arrived',
      },
    ])
    expect(send.runs).toEqual([])
    expect(typesOf(events).filter((type) => type === 'tool_started')).toHaveLength(1)
  })
})

describe('the controller, about calls in doubt', () => {
  const doubtful = (recovery: Recovery): readonly Fact[] => [
    ...executing(['a'], { effect: 'write', recovery }),
    ...[startedCall(1, 1, 'a'), resumed([1])],
  ]

  it('go the way that their tool declares', () => {
    expect(pending(doubtful('rerun'))).toEqual(['run_tools', 'start 1 attempt 2'])
    expect(pending(doubtful('report'))).toEqual(['run_tools', 'interrupted 1'])
    expect(pending(doubtful('ask'))).toEqual(['ask_approval', 'ask 1 attempt 2'])
    expect(pending(doubtful('reconcile'))).toEqual(['wait'])
    expect(requiredEffects(given(doubtful('reconcile')).state!).map(({ kind }) => kind)).toEqual([
      'reconcile',
    ])
  })

  it('are not started again where nothing was declared', () => {
    const calls = [requested(1, 'a')]
    const plan = { toolCallId: callId(1), name: 'a', plan: 'run', inputDigest: 'd' } as const
    const page: readonly Fact[] = [
      ...[...begun(), called(), ...calls, replyFinished(calls)],
      { type: 'tool_requests_collected', turn: 1, calls: [plan] },
      ...[startedCall(1, 1, 'a'), resumed([1])],
    ]
    expect(pending(page)).toEqual(['run_tools', 'interrupted 1'])
  })

  it('hold back every write after them', () => {
    const page = [
      ...executing(['a', 'b'], { effect: 'write', recovery: 'reconcile' }),
      ...[startedCall(1, 1, 'a'), resumed([1])],
    ]
    expect(pending(page)).toEqual(['wait'])
  })

  it('stay in doubt when the run is cancelled', () => {
    for (const recovery of ['rerun', 'reconcile', 'ask', 'report'] as const) {
      expect(pending([...doubtful(recovery), cancelRequested])).toEqual(['settle_calls', 'interrupted 1'])
    }
  })

  it('do not count against the limit of calls a second time', () => {
    const page = executing(['a'], { recovery: 'rerun' }, { maxToolCalls: 1 })
    expect(pending([...page, startedCall(1, 1, 'a'), resumed([1])])).toEqual([
      'run_tools',
      'start 1 attempt 2',
    ])
  })
})
