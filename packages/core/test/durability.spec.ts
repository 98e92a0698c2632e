import { describe, expect, it } from 'vitest'
import { memoryLedger, type Ledger, type Limits, type RunState, type RuntimeEvent } from '@tallystick/core'
import { given, testTool, type TestToolOptions } from '@tallystick/testkit'
import type { Fact } from '@tallystick/core/vocabulary'
import { chooseDurability } from '../src/machine/advance.ts'
import type { Call, ExecutingState } from '../src/machine/state.ts'
import { begun, called, cancelRequested, endedCall, executing, replyFinished, startedCall } from './pages.ts'
import { checkedRun, stage } from './stage.ts'

/** A state with one call, started, of a tool that recovers in this way. */
function started(recovery: 'rerun' | 'report' | 'ask' | 'reconcile', attempts = 1): RunState {
  const state = given([...executing(['look']), startedCall(1)]).state as ExecutingState
  return { ...state, calls: state.calls.map((call) => ({ ...call, recovery, attempts })) }
}

const durability = (before: RunState | undefined, ...facts: readonly Fact[]): string =>
  chooseDurability(facts as readonly RuntimeEvent[], { before })

/** How durable an append has to be that starts the first call of a reply, as it was collected. */
function startOf(
  more: Parameters<typeof executing>[1] = {},
  { known = {}, attempt = 1, beside = [] }: StartOptions = {},
): string {
  const state = given([...executing(['look', 'look'], more), startedCall(1)]).state as ExecutingState
  const calls = state.calls.map((call, index) => (index === 0 ? { ...call, ...known } : call))
  const facts: readonly Fact[] = [startedCall(1, attempt), ...beside]
  return chooseDurability(facts as readonly RuntimeEvent[], { after: { ...state, calls } })
}

/** What else is known of the call when it starts, and what its append holds beside the start. */
interface StartOptions {
  readonly known?: Partial<Call>
  readonly attempt?: number
  readonly beside?: readonly Fact[]
}

describe('the append of a start', () => {
  it('is lazy only for a read that may run again, as both are on record', () => {
    expect(startOf()).toBe('lazy')
    for (const recovery of ['report', 'ask', 'reconcile'] as const)
      expect([recovery, startOf({ recovery })]).toEqual([recovery, 'barrier'])
    expect(startOf({}, { known: { effect: 'write' } })).toBe('barrier')
    expect(startOf({}, { known: { effect: undefined } as unknown as Partial<Call> })).toBe('barrier')
    expect(startOf({}, { known: { recovery: undefined } as unknown as Partial<Call> })).toBe('barrier')
    const unknown: readonly Fact[] = [startedCall(3)]
    const events = unknown as readonly RuntimeEvent[]
    expect(chooseDurability(events, { after: given(executing()).state })).toBe('barrier')
    expect(chooseDurability(events, {})).toBe('barrier')
  })

  it('is a barrier where it is another attempt, a child run, a handoff, or was approved', () => {
    expect(startOf({}, { attempt: 2 })).toBe('barrier')
    expect(startOf({}, { known: { child: 'helper' } })).toBe('barrier')
    expect(startOf({}, { known: { handoff: { to: 'second' } } })).toBe('barrier')
    expect(startOf({}, { known: { approvedSeq: 7 } })).toBe('barrier')
  })

  it('is a barrier where anything beside it is', () => {
    expect(startOf({}, { beside: [startedCall(2)] })).toBe('lazy')
    const second = (ordinal: number) => (ordinal === 2 ? { effect: 'write' as const } : {})
    expect(startOf(second, { beside: [startedCall(2)] })).toBe('barrier')
    expect(startOf({}, { beside: [cancelRequested] })).toBe('barrier')
  })
})

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

async function played(
  tools: readonly TestToolOptions[],
  replies: readonly (readonly string[])[],
  limits: Limits = {},
) {
  const { ledger, noted, barriers } = noting(memoryLedger())
  const steps = [
    ...replies.map((names, turn) => ({
      toolCalls: names.map((name, place) => ({ name, input: { turn, place } })),
    })),
    { text: 'Done.' },
  ]
  const set = stage({ ledger, steps, limits, tools: tools.map((tool) => testTool(tool)) })
  const run = set.start()
  const result = await set.waitUntilSettled(run.result)
  const events = checkedRun(await set.eventsOf(run))
  const of = (type: string): readonly (string | undefined)[] =>
    events.filter((event) => event.type === type).map(({ seq }) => noted.get(seq))
  return { result, of, last: noted.get(events.length), barriers: barriers() }
}

describe('a run', () => {
  it('takes one barrier for a turn of a read, where the next turn begins, and two for one of a write', async () => {
    const turns = 5
    for (const [effect, start, each] of [
      ['read', 'lazy', 1],
      ['write', 'barrier', 2],
    ] as const) {
      const { of, barriers } = await played(
        [{ name: 'look', effect }],
        Array.from({ length: turns }, () => ['look']),
      )
      // And one for the first model call, and one for the end.
      expect([effect, barriers]).toEqual([effect, each * turns + 2])
      expect(of('tool_started')).toEqual(Array(turns).fill(start))
      expect(of('model_call_started')).toEqual(Array(turns + 1).fill('barrier'))
      expect(of('run_finished')).toEqual(['barrier'])
    }
  })

  it('starts reads that wait for their turn without a barrier', async () => {
    const { of } = await played([{ name: 'look' }], [['look', 'look', 'look']], { maxConcurrency: 1 })
    expect(of('tool_started')).toEqual(['lazy', 'lazy', 'lazy'])
  })

  it('starts a read that a person has approved with a barrier, also where its turn comes later', async () => {
    const { ledger, noted } = noting(memoryLedger())
    const slow = Promise.withResolvers<string>()
    const set = stage({
      ledger,
      limits: { maxConcurrency: 1 },
      steps: [{ toolCalls: ['slow', 'ask'].map((name) => ({ name, input: {} })) }, { text: 'Done.' }],
      tools: [
        testTool({ name: 'slow', run: () => slow.promise }),
        testTool({ name: 'ask', check: () => ({ kind: 'ask' }) }),
      ],
    })
    const run = set.start()
    run.events$.subscribe((event) => {
      if (event.type === 'approval_requested') void run.approve(event.toolCallId, { by: 'ada' })
      if (event.type === 'approval_decided') slow.resolve('late')
    })
    await set.waitUntilSettled(run.result)
    const events = checkedRun(await set.eventsOf(run))
    const [decided = 0, started = 0] = (['approval_decided', 'tool_started'] as const).map(
      (type) => events.findLast((event) => event.type === type)?.seq,
    )
    // The result of the other call, in the same append, would be lazy.
    expect(events.slice(decided, started).map(({ type }) => type)).toEqual(['tool_result', 'tool_started'])
    expect([noted.get(decided + 1), noted.get(started)]).toEqual(['barrier', 'barrier'])
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
