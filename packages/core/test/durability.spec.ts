import { describe, expect, it } from 'vitest'
import { memoryLedger, type Ledger, type RunState, type RuntimeEvent } from '@tallystick/core'
import { given, testTool, type TestToolOptions } from '@tallystick/core/testing'
import type { Fact } from '@tallystick/core/vocabulary'
import { durabilityOf } from '../src/machine/durability.ts'
import type { ExecutingState } from '../src/machine/state/state.ts'
import { begun, called, endedCall, executing, replyFinished, startedCall } from './pages.ts'
import { checkedRun, stage } from './stage.ts'

/** A state with one call, started, of a tool that recovers in this way. */
function started(recovery: 'rerun' | 'report' | 'ask' | 'reconcile', attempts = 1): RunState {
  const state = given([...executing(['look']), startedCall(1)]).state as ExecutingState
  return { ...state, calls: state.calls.map((call) => ({ ...call, recovery, attempts })) }
}

const durability = (state: RunState | undefined, ...facts: readonly Fact[]): string =>
  durabilityOf(state, facts as readonly RuntimeEvent[])

describe('the append of a result', () => {
  it('is lazy only where the call may run again, or was never started', () => {
    expect(durability(started('rerun'), endedCall(1))).toBe('lazy')
    expect(durability(started('report', 0), endedCall(1))).toBe('lazy')
    for (const recovery of ['report', 'ask', 'reconcile'] as const)
      expect([recovery, durability(started(recovery), endedCall(1))]).toEqual([recovery, 'barrier'])
    expect(durability(undefined, endedCall(1))).toBe('barrier')
    expect(durability(started('rerun'), endedCall(2))).toBe('barrier')
  })

  it('is a barrier where anything beside it is', () => {
    expect(durability(started('rerun'), endedCall(1), called(2))).toBe('barrier')
    expect(durability(started('rerun'), replyFinished([]), endedCall(1))).toBe('lazy')
    expect(durability(given(begun()).state)).toBe('lazy')
  })
})

/** A ledger that notes how durably each event was appended. */
function noting(ledger: Ledger) {
  const noted = new Map<number, string>()
  let barriers = 0
  const append: Ledger['append'] = (runId, expected, events, options) => {
    if (options.durability === 'barrier') barriers++
    for (const { seq } of events) noted.set(seq, options.durability)
    return ledger.append(runId, expected, events, options)
  }
  return { ledger: { ...ledger, append }, noted, barriers: () => barriers }
}

async function played(tools: readonly TestToolOptions[], replies: readonly (readonly string[])[]) {
  const { ledger, noted, barriers } = noting(memoryLedger())
  const steps = [
    ...replies.map((names, turn) => ({
      toolCalls: names.map((name, place) => ({ name, input: { turn, place } })),
    })),
    { text: 'Done.' },
  ]
  const set = stage({ ledger, steps, tools: tools.map((tool) => testTool(tool)) })
  const run = set.start()
  const result = await set.untilSettled(run.result)
  const events = checkedRun(await set.eventsOf(run))
  const of = (type: string): readonly (string | undefined)[] =>
    events.filter((event) => event.type === type).map(({ seq }) => noted.get(seq))
  return { result, of, last: noted.get(events.length), barriers: barriers() }
}

describe('a run', () => {
  it('takes two barriers for a turn of a tool: where the call starts and where the next turn begins', async () => {
    const turns = 5
    const { of, barriers } = await played(
      [{ name: 'look' }],
      Array.from({ length: turns }, () => ['look']),
    )
    // And one for the first model call, and one for the end.
    expect(barriers).toBe(2 * turns + 2)
    expect(of('tool_started')).toEqual(Array(turns).fill('barrier'))
    expect(of('model_call_started')).toEqual(Array(turns + 1).fill('barrier'))
    expect(of('run_finished')).toEqual(['barrier'])
  })

  it('keeps the result of a write before anything else, and that of a read with what follows from it', async () => {
    for (const [effect, kept] of [
      ['read', 'lazy'],
      ['write', 'barrier'],
    ] as const) {
      const slow = Promise.withResolvers<string>()
      const tools = [
        { name: 'first', effect },
        { name: 'slow', run: () => slow.promise },
      ]
      const playing = played(tools, [['first', 'slow']])
      for (let turn = 0; turn < 1_000; turn++) await Promise.resolve()
      slow.resolve('late')
      expect([effect, ...(await playing).of('tool_result')]).toEqual([effect, kept, 'barrier'])
    }
  })

  it('that waits for a person has lost nothing when it stops', async () => {
    const pay: TestToolOptions = { name: 'pay', check: () => ({ kind: 'ask' }) }
    const { result, of, last } = await played([pay, { name: 'look' }], [['pay', 'look']])
    expect([result.status, ...of('tool_result'), last]).toEqual(['suspended', 'barrier', 'barrier'])
  })
})
