import { type RunResult, type Ledger, type Run, LedgerConflictError } from '@tallystick/core'
import { deriveChildRunId, type Signal } from '@tallystick/core/vocabulary'
import { sampleCallId, sampleRunId, manualClock } from '@tallystick/testkit'
import { describe, expect, it } from 'vitest'
import { toChildStop, toSettleCommand, type ChildStop, startChild } from '../src/runtime/children.ts'
import { dyingAt, listening, office } from './office.ts'
import { ofType, recorded } from './stage.ts'

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

describe('a run that is cancelled', () => {
  it('cancels the child runs that it waits for, each once, and needs no other report of their ends', async () => {
    const set = office()
    const { ledger: view, put } = listening(set.ledger)
    const { runtime, rootId } = await set.begin({ view })
    const run = runtime.resume(rootId)
    expect(await set.settled(run.cancel('enough'))).toEqual({ accepted: true })
    expect(await set.settled(run.result)).toMatchObject({ reason: 'cancelled' })
    await set.settled(runtime.idle())
    for await (const { runId } of set.ledger.runs()) {
      expect(await set.lastOf(runId)).toMatchObject({ type: 'run_finished', reason: 'cancelled' })
    }
    expect(put.map(({ command }) => command.type)).toEqual(['cancel', 'cancel', 'cancel'])
    expect(set.clock.pending).toBe(0)
  })

  it('cancels each of them once, though it has other work that ends meanwhile', async () => {
    const set = office({ isLooking: true })
    const { ledger: view, put } = listening(set.ledger)
    const { runtime, rootId } = await set.begin({ view, looks: () => new Promise(() => {}) })
    const run = runtime.resume(rootId)
    await set.settled(run.cancel('enough'))
    expect(await set.settled(run.result)).toMatchObject({ reason: 'cancelled' })
    const results = ofType(await recorded(set.ledger, rootId), 'tool_result')
    expect(results.map(({ outcome }) => outcome)).toEqual(['cancelled', 'cancelled'])
    expect(put.map(({ command }) => command.type)).toEqual(['cancel', 'cancel', 'cancel'])
    expect(set.clock.pending).toBe(0)
  })

  it.each(['asks for it', 'records its first event'])(
    'waits while its ledger %s for a child run, and cancels that',
    async (what) => {
      const set = office()
      const gate = Promise.withResolvers<void>()
      const view: Ledger = {
        ...set.ledger,
        async head(runId) {
          if (what === 'asks for it' && runId !== run.id) await gate.promise
          return await set.ledger.head(runId)
        },
        async append(runId, expected, events, options) {
          if (runId !== run.id && events[0]?.type === 'run_started') await gate.promise
          return await set.ledger.append(runId, expected, events, options)
        },
      }
      const { runtime, boss } = set.open({ view })
      const run: Run = runtime.run(boss, 'Go.')
      const has = async (type: string) =>
        (await recorded(set.ledger, run.id)).some((event) => event.type === type)
      await set.until(() => has('tool_started'))
      const cancelled = run.cancel('enough')
      await set.until(() => has('cancel_requested'))
      for (let turn = 0; turn < 500; turn++) await Promise.resolve()
      gate.resolve()
      await set.settled(cancelled)
      expect(await set.settled(run.result)).toMatchObject({ reason: 'cancelled', children: { runs: 1 } })
      await set.settled(runtime.idle())
      const [{ child = '' } = {}] = ofType(await recorded(set.ledger, run.id), 'tool_started')
      expect(await set.lastOf(child)).toMatchObject({ type: 'run_finished', reason: 'cancelled' })
    },
  )

  it('begins no child run that had not begun when its process died', async () => {
    const set = office()
    const view = dyingAt(set.ledger, ({ type }, isOfFirst) => !isOfFirst && type === 'run_started')
    const { runtime, boss } = set.open({ view })
    const { id } = runtime.run(boss, 'Go.')
    await set.settled(runtime.idle())
    await set.ledger.put(id, { key: 'c', at: 0, command: { type: 'cancel', reason: 'enough' } })
    const resumed = set.open().runtime.resume(id)
    expect(await set.settled(resumed.result)).toMatchObject({ reason: 'cancelled', children: { runs: 0 } })
    const results = ofType(await recorded(set.ledger, id), 'tool_result')
    expect(results).toMatchObject([
      {
        outcome: 'cancelled',
        content: [{ text: expect.stringContaining('before this call was complete') as string }],
      },
    ])
    expect(await Array.fromAsync(set.ledger.runs())).toHaveLength(1)
  })
})

describe('a call whose work a child run does', () => {
  // What the call of a parent hears of the run that does its work.

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
