import { describe, expect, it } from 'vitest'
import type { Limits } from '@tallystick/core'
import { computeDigest } from '@tallystick/core/vocabulary'
import { findCallsAwaitingEqual, nextForCallLimits, serveRepeats } from '../src/machine/call-limits.ts'
import type { Call, ExecutingState, MetLimit } from '../src/machine/state.ts'
import { answers, at, brief, doubtful, settled, started, working } from './open-calls.ts'
import { callId } from './pages.ts'

/** What a limit makes of the calls of a turn: nothing, a limit that is met, or results. */
function limited(state: ExecutingState): readonly string[] {
  const action = nextForCallLimits(state)
  return action && 'facts' in action ? action.facts.map(brief) : []
}

const met = (limit: MetLimit['limit'], policy: MetLimit['policy'] = 'finalize') => ({
  metLimit: { limit, policy, at },
})
/** A run that has started so many calls of a tool before. */
function spent(state: ExecutingState, toolCallsByTool: { readonly [tool: string]: number }): ExecutingState {
  const toolCalls = Object.values(toolCallsByTool).reduce((sum, count) => sum + count, 0)
  return { ...state, totals: { ...state.totals, toolCalls, toolCallsByTool } }
}
const three = [{}, {}, {}]
const asked = { status: 'awaiting_approval' } as const

describe('the limit on tool calls of a run', () => {
  it.each<readonly [string, readonly Partial<Call>[], Partial<ExecutingState>, readonly string[]]>([
    ['is met by the first call past it', three, { limits: { maxToolCalls: 2 } }, ['met maxToolCalls 0 of 2']],
    ['is not met at it', three, { limits: { maxToolCalls: 3 } }, []],
    [
      'counts calls that wait for a person',
      [{}, asked, { status: 'to_ask' }],
      { limits: { maxToolCalls: 2 } },
      ['met maxToolCalls 0 of 2'],
    ],
    [
      'counts no call that has begun or ended',
      [{}, started, doubtful, settled()],
      { limits: { maxToolCalls: 1 } },
      [],
    ],
    [
      'counts none that is asked about again',
      [{}, { ...asked, attempts: 1 }],
      { limits: { maxToolCalls: 1 } },
      [],
    ],
    [
      'turns away what is past it, once met',
      three,
      { limits: { maxToolCalls: 2 }, ...met('maxToolCalls') },
      ['limit_reached 3'],
    ],
    [
      'waits for a person, where one is asked',
      three,
      { limits: { maxToolCalls: 2 }, ...met('maxToolCalls', 'ask') },
      [],
    ],
    [
      'waits for a child run, which may give something back',
      [{ ...started, grant: { toolCalls: 1 } }, {}],
      { limits: { maxToolCalls: 0 } },
      [],
    ],
    [
      'waits for none that has ended',
      [{ ...settled(), grant: { toolCalls: 1 } }, {}],
      { limits: { maxToolCalls: 0 } },
      ['met maxToolCalls 0 of 0'],
    ],
    [
      'counts no call that is served an answer',
      [{}, {}],
      { limits: { maxToolCalls: 1, maxRepeats: 1 }, callLog: answers({ call: 1 }, 'a') },
      [],
    ],
    [
      'counts no call that may yet be',
      [{ inputDigest: 'd' }, { inputDigest: 'd' }],
      { limits: { maxToolCalls: 1, maxRepeats: 1 } },
      [],
    ],
  ])('%s', (_name, calls, more, facts) => {
    expect(limited(working(calls, more))).toEqual(facts)
  })

  it('counts what was started before', () => {
    expect(limited(spent(working([{}], { limits: { maxToolCalls: 2 } }), { look: 2 }))).toEqual([
      'met maxToolCalls 2 of 2',
    ])
  })
})

describe('another limit that was met', () => {
  it.each(['maxTurns', 'maxDurationMs', 'maxTotalTokens', 'maxRepeats'] as const)(
    'turns every call away: %s',
    (limit) => {
      expect(limited(working([{}, started, { status: 'to_ask' }], met(limit)))).toEqual([
        'limit_reached 1',
        'limit_reached 3',
      ])
      expect(limited(working([started], met(limit)))).toEqual([])
    },
  )
})

describe('the limit on calls of one reply, or of one tool', () => {
  const perTool = (limits: Limits, calls: readonly Partial<Call>[] = three): ExecutingState =>
    working(calls, { limits })

  it.each<readonly [string, ExecutingState, readonly string[]]>([
    [
      'turns away those past it in one reply',
      perTool({ maxToolCallsPerTurn: 1 }),
      ['limit_reached 2', 'limit_reached 3'],
    ],
    [
      'counts calls of the reply that have ended',
      perTool({ maxToolCallsPerTurn: 1 }, [settled(), {}]),
      ['limit_reached 2'],
    ],
    ['turns nothing away at it', perTool({ maxToolCallsPerTurn: 3 }), []],
    ['turns away those past it of one tool', perTool({ maxCallsByTool: { look: 2 } }), ['limit_reached 3']],
    [
      'counts what the tool was called before',
      spent(perTool({ maxCallsByTool: { look: 2 } }), { look: 1 }),
      ['limit_reached 2', 'limit_reached 3'],
    ],
    [
      'counts no other tool',
      spent(perTool({ maxCallsByTool: { look: 1 } }, [{ name: 'pay' }, {}]), { pay: 9 }),
      [],
    ],
    [
      'counts none in the reply that is to be refused',
      perTool({ maxCallsByTool: { look: 1 } }, [{ status: 'to_settle' }, {}]),
      [],
    ],
    [
      'comes before a limit of the run',
      perTool({ maxCallsByTool: { look: 2 }, maxToolCalls: 1 }),
      ['limit_reached 3'],
    ],
  ])('%s', (_name, state, facts) => {
    expect(limited(state)).toEqual(facts)
  })

  it('says how many may run, and what to do about it', () => {
    const text = (limits: Limits): unknown => {
      const action = nextForCallLimits(perTool(limits))
      return action && 'facts' in action && 'content' in action.facts[0]! ? action.facts[0].content : []
    }
    expect(text({ maxToolCallsPerTurn: 0 })).toMatchObject([
      { text: expect.stringMatching(/^At most 0 tool calls .* ask for this call again/) },
    ])
    expect(text({ maxCallsByTool: { look: 0 } })).toMatchObject([
      { text: expect.stringMatching(/^look may be called 0 times/) },
    ])
  })
})

describe('the limit on repeats', () => {
  const repeated = (count: number, limits: Limits = {}): ExecutingState => {
    const callLog = answers({ call: 1 }, ...Array.from({ length: 6 }, () => 'a'))
    return working([{}], { limits, callLog, standstill: { from: 0, replyFrom: 0, served: count } })
  }
  const failing = (count: number, limits: Limits = {}): ExecutingState =>
    working([{}], { limits, errorStreaks: { look: { resultDigest: 'd', count } } })

  it('is met by answers that were served again, or by as many equal errors of the tool, two at least', () => {
    expect(limited(repeated(5))).toEqual([])
    expect(limited(repeated(6))).toEqual(['met maxRepeats 6 of 6'])
    expect(limited(repeated(1, { maxRepeats: 1 }))).toEqual(['met maxRepeats 1 of 1'])
    expect(limited(failing(5))).toEqual([])
    expect(limited(failing(6))).toEqual(['met maxRepeats 6 of 6'])
    expect(limited(failing(2, { maxRepeats: 1 }))).toEqual(['met maxRepeats 2 of 1'])
    expect(limited({ ...failing(6), errorStreaks: { pay: { resultDigest: 'd', count: 6 } } })).toEqual([])
    expect(limited(failing(1, { maxRepeats: 1 }))).toEqual([])
    expect(limited({ ...repeated(6), ...met('maxToolCalls') })).toEqual([])
  })

  it('is met by the call that repeats itself, and keeps none from running that does not', () => {
    const stuck = repeated(6)
    const [call] = stuck.calls
    for (const other of [
      { effect: 'write' as const },
      { inputDigest: 'e' },
      { repeats: 'allowed' as const },
    ]) {
      expect(limited({ ...stuck, calls: [{ ...call!, ...other }] })).toEqual([])
    }
  })
})

describe('a call that repeats itself', () => {
  const served = (call: Partial<Call>, texts: readonly string[], limits: Limits = { maxRepeats: 3 }) =>
    serveRepeats(working([call], { limits, callLog: answers({ call: 1 }, ...texts) })).map(brief)

  it('is served the answer that it has got as often as is allowed', () => {
    expect(served({}, ['a', 'a', 'a'])).toEqual(['repeated 1'])
    expect(served({}, ['a', 'a'])).toEqual([])
    expect(served({}, ['b', 'a', 'a'])).toEqual([])
    expect(served({}, ['a'], { maxRepeats: 1 })).toEqual(['repeated 1'])
    expect(served({}, [], { maxRepeats: 0 })).toEqual([])
    expect(served({ inputDigest: computeDigest({}) }, ['a', 'a', 'a'])).toEqual([])
    expect(served({ name: 'pay' }, ['a', 'a', 'a'])).toEqual([])
  })

  it('is served where it was to start or to be asked about, and nowhere else', () => {
    const thrice = ['a', 'a', 'a']
    expect(served({ status: 'to_ask' }, thrice)).toEqual(['repeated 1'])
    // A person is being asked: the question stays open.
    expect(served(asked, thrice)).toEqual([])
    for (const call of [started, doubtful, settled(), { status: 'to_settle' } as const, { attempts: 1 }]) {
      expect(served(call, thrice)).toEqual([])
    }
  })

  it('reads how often it was made, and the answer', () => {
    const [result] = serveRepeats(
      working([{}], { limits: { maxRepeats: 4 }, callLog: answers({ call: 1 }, 'a', 'a', 'a', 'a') }),
    )
    expect(result?.content).toMatchObject([
      {
        text: expect.stringMatching(
          /^This call was made 4 times with the same answer.* not run again.* The answer was:$/,
        ),
      },
      { text: 'a' },
    ])
    expect(result?.toolCallId).toBe(callId(1))
  })
})

describe('equal calls of one reply', () => {
  const equal = { inputDigest: 'd' }
  const waiting = (
    calls: readonly Partial<Call>[],
    more: Partial<ExecutingState> = {},
  ): readonly number[] => {
    const state = working(calls, more)
    return [...findCallsAwaitingEqual(state)].map((call) => state.calls.indexOf(call) + 1)
  }

  it.each<readonly [string, readonly Partial<Call>[], Limits, readonly number[]]>([
    [
      'wait from the first that would be a repeat',
      [equal, equal, equal, equal, equal],
      { maxRepeats: 3 },
      [4, 5],
    ],
    ['wait for one', [equal, equal, equal], { maxRepeats: 1 }, [2, 3]],
    [
      'wait for one that runs, or is asked about',
      [{ ...equal, ...started }, { ...equal, ...asked }, equal],
      { maxRepeats: 2 },
      [3],
    ],
    ['wait for none that has ended', [{ ...equal, ...settled() }, equal], { maxRepeats: 1 }, []],
    ['wait where a person is to be asked', [equal, { ...equal, status: 'to_ask' }], { maxRepeats: 1 }, [2]],
    [
      'wait no more once they were started or asked about',
      [equal, { ...equal, ...asked }, { ...equal, ...doubtful }],
      { maxRepeats: 1 },
      [],
    ],
    ['are of the same tool', [equal, { ...equal, name: 'pay' }], { maxRepeats: 1 }, []],
    ['wait for none behind a change', [equal, { effect: 'write' }, equal, equal], { maxRepeats: 1 }, []],
    ['are of the same input', [equal, { inputDigest: 'e' }], { maxRepeats: 1 }, []],
  ])('%s', (_name, calls, limits, places) => {
    expect(waiting(calls, { limits })).toEqual(places)
  })

  it('count the answers that are there', () => {
    const same = { inputDigest: computeDigest({ call: 1 }) }
    const limits = { maxRepeats: 3 }
    const twice = { limits, callLog: answers({ call: 1 }, 'a', 'a') }
    expect(waiting([same, same], twice)).toEqual([2])
    expect(waiting([same, same], { ...twice, standstill: { from: 1, replyFrom: 0, served: 0 } })).toEqual([])
    expect(waiting([same, same], { limits, callLog: answers({ call: 1 }, 'a') })).toEqual([])
  })
})
