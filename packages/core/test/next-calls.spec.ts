import { describe, expect, it } from 'vitest'
import type { Limits } from '@tallystick/core'
import { computeDigest, type Fact } from '@tallystick/core/vocabulary'
import { given, sampleRunId } from '@tallystick/testkit'
import { isStubbed, stubbed } from '../src/machine/retry.ts'
import { nextForCalls, settleCalls } from '../src/machine/next-calls.ts'
import type { Call, CollectingState, ExecutingState } from '../src/machine/state.ts'
import { answers, at, brief, doubtful, next, settled, started, working } from './open-calls.ts'
import { begun, called, callId, replyFinished, requested } from './pages.ts'

type Met = NonNullable<ExecutingState['metLimit']>

const cancel = { at }
const fork = (writes: 'ask' | 'stub') =>
  ({ parent: { runId: sampleRunId(9), seq: 0, relation: 'fork', writes } }) as const

describe('each step, when nothing comes before it', () => {
  const asked = { status: 'awaiting_approval', expiresAt: 0 } as const
  const write = { effect: 'write' } as const
  const deferred = {
    status: 'deferred',
    attempts: 1,
    deferred: { externalId: 'job', deadlineAt: 0 },
  } as const

  it.each<readonly [string, ExecutingState, readonly unknown[]]>([
    ['a refusal is recorded', working([{ status: 'to_settle' }, {}]), ['settle_calls', 'skipped 1']],
    ['a call whose time outside is up', working([deferred, {}]), ['settle_calls', 'timed_out 1']],
    [
      'a limit is met',
      working([{}], { limits: { maxToolCalls: 0 } }),
      ['meet_limit', 'met maxToolCalls 0 of 0'],
    ],
    [
      'an answer is served again',
      working([{}, {}], { limits: { maxRepeats: 3 }, callLog: answers({ call: 1 }, 'a', 'a', 'a') }),
      ['settle_calls', 'repeated 1'],
    ],
    ['a write of a fork is left out', working([write, {}], fork('stub')), ['settle_calls', 'skipped 1']],
    ['an approval expires', working([asked, {}]), ['ask_approval', 'approval_decided 1']],
    ['a person is asked', working([{ status: 'to_ask' }, {}]), ['ask_approval', 'approval_requested 1']],
    [
      'a write of a fork is asked about',
      working([write, {}], fork('ask')),
      ['ask_approval', 'approval_requested 1'],
    ],
    ['calls start', working([{}, {}]), ['run_tools', 'tool_started 1', 'tool_started 2']],
    ['results enter', working([settled(), settled()]), ['inject', 'tool_results_injected']],
    ['the run waits for what runs', working([started, settled()]), ['wait']],
    ['the run waits for a person', working([{ status: 'awaiting_approval' }, settled()]), ['suspend']],
  ])('%s', (_name, state, action) => {
    expect(next(state)).toEqual(action)
  })
})

describe('a cancel', () => {
  it.each<readonly [string, Partial<Call>, readonly unknown[]]>([
    ['ready', {}, ['settle_calls', 'cancelled 1']],
    ['to_settle', { status: 'to_settle' }, ['settle_calls', 'cancelled 1']],
    ['to_ask', { status: 'to_ask' }, ['settle_calls', 'cancelled 1']],
    ['awaiting_approval', { status: 'awaiting_approval' }, ['settle_calls', 'cancelled 1']],
    ['asked about again', { status: 'awaiting_approval', attempts: 1 }, ['settle_calls', 'interrupted 1']],
    ['in_doubt', doubtful, ['settle_calls', 'interrupted 1']],
    ['deferred', { status: 'deferred', attempts: 1 }, ['settle_calls', 'interrupted 1']],
    ['started', started, ['wait', 500]],
    ['deferred to a child run', { status: 'deferred', attempts: 1, child: 'a' }, ['wait', 500]],
    ['a child run in doubt', { ...doubtful, child: 'a' }, ['wait', 500]],
    ['settled', settled(), ['inject', 'tool_results_injected']],
  ])('settles a call that is %s: %s', (_name, call, action) => {
    expect(next(working([call], { cancel, limits: { graceMs: 500 } }))).toEqual(action)
  })

  it('gives what runs the grace time, and a child run time to report what it used', () => {
    const limits = { graceMs: 500 }
    expect(next(working([started], { cancel, limits }), 499)).toEqual(['wait', 500])
    expect(next(working([started], { cancel, limits }), 500)).toEqual(['settle_calls', 'cancelled 1'])
    const child = working([{ ...started, child: 'a', grant: { turns: 2 } }], { cancel, limits })
    expect(next(child, 30_499)).toEqual(['wait', 30_500])
    expect(next(child, 30_500)).toEqual(['settle_calls', 'cancelled 1'])
    const lost = working([{ ...doubtful, child: 'a', grant: { turns: 2 } }], { cancel, limits })
    expect(next(lost, 30_500)).toEqual(['settle_calls', 'interrupted 1'])
  })

  it('counts for a child run all that it was granted, where the runtime ends its call', () => {
    const grant = { turns: 2, toolCalls: 3, tokens: 90, costUsd: 0.5 }
    const child = working([{ ...started, child: 'a', grant }], { cancel })
    const action = nextForCalls(child, Number.MAX_SAFE_INTEGER)
    expect(action).toMatchObject({
      facts: [{ child: { turns: 2, toolCalls: 3, usage: { inputTokens: 90 }, costUsd: 0.5 } }],
    })
  })
})

describe('a run whose time is up', () => {
  const limits: Limits = { maxDurationMs: 10_000, graceMs: 500, onLimit: 'stop' }
  const upAt = (state: ExecutingState): number => state.startedAt + state.waitedMs + 10_000 - state.at
  const met = (more: Partial<Met> = {}): Partial<ExecutingState> => ({
    ...{
      limits: { ...limits, maxDurationMs: 60_000 },
      metLimit: { limit: 'maxDurationMs', policy: 'stop', at, ...more },
    },
  })

  it('meets its limit on time, and not before', () => {
    const state = working([started], { limits })
    expect(next(state, upAt(state) - 1)).toEqual(['wait', upAt(state)])
    expect(next(state, upAt(state))).toEqual(['meet_limit', 'met maxDurationMs 10000 of 10000'])
  })

  it('starts nothing more, and gives what runs the grace time', () => {
    expect(next(working([started, {}], met()))).toEqual(['settle_calls', 'limit_reached 2'])
    const running = working([started, settled(), doubtful], met())
    expect(next(working([started, settled()], met()), 499)).toEqual(['wait', 500])
    expect(next(running, 500)).toEqual(['settle_calls', 'timed_out 1'])
    const child = working([{ ...started, child: 'a', grant: {} }], met())
    expect(next(child, 30_499)).toEqual(['wait', 30_500])
    expect(next(child, 30_500)).toEqual(['settle_calls', 'timed_out 1'])
  })

  it('gives nothing up for another limit that was met, or for the reply that writes the answer', () => {
    expect(next(working([started], met({ limit: 'maxTurns' })), 50_000)).toEqual(['wait'])
    const late = working([started], { limits })
    const closing = { ...late, reply: { ...late.reply, finalizing: true } }
    expect(next(closing, 20_000)).toEqual(['wait'])
  })

  it('waits no longer for guardrails that look at results: it withholds those', () => {
    const guardrails = [{ name: 'clean', on: 'tool_output' }] as const
    const checking = (more: Partial<ExecutingState>): ExecutingState => {
      const state = working([settled(), settled('denied')], more)
      return { ...state, definition: { ...state.definition, guardrails } }
    }
    expect(next(checking({}))).toEqual(['wait'])
    const timed = checking({ limits })
    expect(next(timed, upAt(timed) - 1)).toEqual(['wait', upAt(timed)])
    const metLimit = { limit: 'maxDurationMs', policy: 'stop', at: timed.at } as const
    expect(next({ ...timed, metLimit }, upAt(timed))).toEqual([
      ...['settle_calls', 'guardrail_tripped 1', 'guardrails_checked'],
    ])
    const asking = { ...timed, metLimit: { ...metLimit, policy: 'ask' } } as const
    expect(next(asking, upAt(timed))).toEqual(['wait'])
  })
})

describe('a limit about which a person is asked', () => {
  const metLimit = { limit: 'maxTurns', policy: 'ask', at: 1 } as const
  const asked = { status: 'awaiting_approval', expiresAt: 0 } as const

  it('holds every start back, and no denial', () => {
    expect(next(working([{}], { metLimit }))).toEqual(['suspend'])
    expect(next(working([{ status: 'to_ask' }], { metLimit }))).toEqual(['suspend'])
    expect(next(working([asked, {}], { metLimit }))).toEqual(['ask_approval', 'approval_decided 1'])
  })

  it('on tool calls holds back only those past it', () => {
    const onCalls = { ...metLimit, limit: 'maxToolCalls' } as const
    expect(next(working([{}, {}], { metLimit: onCalls, limits: { maxToolCalls: 1 } }))).toEqual([
      ...['run_tools', 'tool_started 1'],
    ])
  })
})

describe('an approval', () => {
  const waiting = { status: 'awaiting_approval', inputDigest: 'd' } as const

  it('that does not come in time counts as denied, from that moment on', () => {
    const state = working([{ ...waiting, expiresAt: at + 50 }, waiting])
    expect(next(state, 49)).toEqual(['suspend'])
    expect(next(state, 50)).toEqual(['ask_approval', 'approval_decided 1'])
    expect(nextForCalls(working([{ ...waiting, attempts: 2, expiresAt: 0 }]), at)).toMatchObject({
      facts: [{ attempt: 3, inputDigest: 'd', approved: false, by: 'expiry' }],
    })
  })

  it.each<readonly [string, Partial<Call>, Partial<ExecutingState>, unknown]>([
    ['what the policy says', { status: 'to_ask', askReason: 'It is dear.' }, {}, 'It is dear.'],
    ['nothing', { status: 'to_ask' }, {}, undefined],
    [
      'that it may have run',
      { ...doubtful, recovery: 'ask', askReason: 'x' },
      {},
      expect.stringMatching(/^It was started before/),
    ],
    ['that it is of a fork', { effect: 'write' }, fork('ask'), expect.stringMatching(/^This run is a fork/)],
  ])('gives as its reason %s', (_name, call, more, reason) => {
    const action = nextForCalls(working([call], more), at)
    const [fact] = 'facts' in action ? action.facts : []
    expect((fact as { readonly reason?: string }).reason).toEqual(reason)
  })

  it('of equal calls is asked for once, as long as the answer to one may serve the other', () => {
    const equal = { status: 'to_ask', inputDigest: 'd' } as const
    const limits = { maxRepeats: 1 }
    expect(next(working([equal, equal], { limits }))).toEqual(['ask_approval', 'approval_requested 1'])
    expect(next(working([equal, equal], { limits: { maxRepeats: 2 } }))).toEqual([
      ...['ask_approval', 'approval_requested 1', 'approval_requested 2'],
    ])
  })
})

describe('calls that start', () => {
  const write = { effect: 'write' } as const

  it('are as many reads as there is room for, and the first write that is open', () => {
    const limits = { maxConcurrency: 2 }
    expect(next(working([{}, {}, {}], { limits }))).toEqual(['run_tools', 'tool_started 1', 'tool_started 2'])
    expect(next(working([started, {}, {}], { limits }))).toEqual(['run_tools', 'tool_started 2'])
    expect(next(working([started, started, {}], { limits }))).toEqual(['wait'])
    expect(next(working([started, started, started, {}], { limits }))).toEqual(['wait'])
    expect(next(working([write, write, {}], { limits: { maxConcurrency: 1 } }))).toEqual([
      ...['run_tools', 'tool_started 1', 'tool_started 3'],
    ])
    expect(next(working([{ ...write, ...settled() }, write]))).toEqual(['run_tools', 'tool_started 2'])
    expect(next(working([{ ...write, status: 'awaiting_approval' }, write]))).toEqual(['suspend'])
    expect(next(working([{ ...write, ...started }, {}], { limits: { maxConcurrency: 1 } }))).toEqual([
      ...['run_tools', 'tool_started 2'],
    ])
  })

  it('are at most eight reads at a time where nothing else is said', () => {
    expect(next(working(Array.from({ length: 9 }, () => ({})))).length - 1).toBe(8)
  })

  it('come after the results of calls in doubt that are only reported', () => {
    expect(next(working([doubtful, {}]))).toEqual(['run_tools', 'tool_started 1', 'tool_started 2'])
    expect(next(working([{ ...doubtful, recovery: 'report' }, {}]))).toEqual(['run_tools', 'interrupted 1'])
    expect(next(working([{ ...doubtful, recovery: 'rerun' }, {}]))).toEqual([
      ...['run_tools', 'tool_started 1', 'tool_started 2'],
    ])
  })

  it('for the first time are no more than the limit leaves; those in doubt count no more', () => {
    const metLimit = { limit: 'maxToolCalls', policy: 'ask', at: 1 } as const
    const limits = { maxToolCalls: 1 }
    const rerun = { ...doubtful, recovery: 'rerun' } as const
    expect(next(working([rerun, {}, {}], { limits, metLimit }))).toEqual([
      ...['run_tools', 'tool_started 1', 'tool_started 2'],
    ])
  })

  it('of a child run have a grant, or a result that says that too little is left', () => {
    const child = { child: 'clerk' } as const
    const facts = (state: ExecutingState): readonly Fact[] => {
      const action = nextForCalls(state, state.at)
      return 'facts' in action ? action.facts : []
    }
    expect(facts(working([child], { limits: { maxTurns: 9, onLimit: 'stop' } }))).toMatchObject([
      { type: 'tool_started', grant: { turns: 7 } },
    ])
    expect(facts(working([{ ...child, ...doubtful, recovery: 'rerun', grant: { turns: 3 } }]))).toMatchObject(
      [{ type: 'tool_started', attempt: 2, grant: { turns: 3 } }],
    )
    const [refused] = facts(working([child], { limits: { maxTurns: 2, onLimit: 'stop' } }))
    expect(refused).toMatchObject({
      ...{ type: 'tool_result', outcome: 'limit_reached' },
      content: [{ text: 'The limit maxTurns of this run leaves too little for clerk. Nothing was run.' }],
    })
  })
})

describe('a write of a fork that is not performed', () => {
  it.each([
    ['skipped', {}],
    ['interrupted', { ...doubtful, recovery: 'rerun' }],
  ] as const)('says so, as %s', (outcome, call) => {
    const action = nextForCalls(working([{ ...call, effect: 'write' }], fork('stub')), at)
    expect(action).toMatchObject({ facts: [{ outcome, content: [{ text: stubbed.text }] }] })
    const content = [{ type: 'text', text: stubbed.text }] as const
    expect(isStubbed({ outcome, content })).toBe(true)
    expect(isStubbed({ outcome, content: [{ type: 'text', text: 'Skipped.' }] })).toBe(false)
    expect(isStubbed({ outcome: 'success', content })).toBe(false)
    expect(isStubbed({ outcome, content: [] })).toBe(false)
  })
})

describe('calls that are closed', () => {
  const calls = [requested(1), requested(2)]
  const collecting = given([...begun(), called(), ...calls, replyFinished(calls)]).state as CollectingState

  it('are collected first, with the reason, and have their results where they are open', () => {
    expect(settleCalls(collecting, collecting.calls, 'denied')).toMatchObject([
      {
        type: 'tool_requests_collected',
        calls: [1, 2].map((ordinal) => ({
          ...{ toolCallId: callId(ordinal), plan: 'settle', inputDigest: computeDigest({}) },
          refusal: { outcome: 'denied', text: 'This call was denied. Nothing was run.' },
        })),
      },
    ])
    const open = working([settled(), {}])
    expect(settleCalls(open, open.calls, 'skipped').map(brief)).toEqual(['skipped 2'])
  })
})
