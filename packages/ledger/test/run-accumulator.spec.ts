import type { RuntimeEvent } from '@tallystick/core'
import { sampleFacts, sampleRunId, stampFacts } from '@tallystick/testkit'
import { describe, expect, it } from 'vitest'
import { RunAccumulator, listSpending } from '../src/projection/run-accumulator.ts'

const facts = sampleFacts(sampleRunId(1))
const { parent: fork, ...start } = facts.run_started
const { usage: _usage, costUsd: _cost, ...usageOf } = facts.usage_updated
const { usage: _summaryUsage, costUsd: _summaryCost, ...compacted } = facts.context_compacted

type Facts = Parameters<typeof stampFacts>[1]

/** What is accumulated of a run of these facts. */
function accumulated(of: Facts) {
  const accumulator = new RunAccumulator()
  for (const event of stampFacts(sampleRunId(1), of)) accumulator.add(event)
  return accumulator.run
}

/** What each model call of a run took, by the turn and the attempt. */
function callsOf(of: Facts): readonly unknown[] {
  return accumulated(of).open.map(({ key, usage = {}, costUsd }) => [key, usage, costUsd])
}

const call = (turn: number, attempt = 1) => ({ ...facts.model_call_started, turn, attempt })
const used = (turn: number, attempt: number, outputTokens: number, costUsd?: number) => ({
  ...usageOf,
  ...{ turn, attempt, usage: { outputTokens } },
  ...(costUsd !== undefined && { costUsd }),
})

describe('what is accumulated of a run', () => {
  it('is nothing before its first event', () => {
    expect(new RunAccumulator().run).toStrictEqual({
      ...{
        agents: [],
        childRunIds: [],
        calls: [],
        lastCalls: [],
        failedAttempts: 0,
        sharedSeq: 0,
        summaries: 0,
      },
      ...{ open: [], settled: [] },
    })
  })

  it('continues from what was accumulated before', () => {
    const before = accumulated([start, call(1)])
    const accumulator = new RunAccumulator(before)
    expect(accumulator.run).toBe(before)
    const [handedOff] = stampFacts(sampleRunId(1), [facts.agent_handed_off], { afterSeq: 2 })
    accumulator.add(handedOff as RuntimeEvent)
    expect(accumulator.run).toEqual({ ...before, agents: ['assistant', 'booking'] })
  })

  it('is who had the conversation, in order', () => {
    const on = { ...facts.agent_handed_off, to: 'payment' }
    expect(accumulated([start]).agents).toEqual(['assistant'])
    expect(accumulated([start, facts.agent_handed_off, on]).agents).toEqual([
      ...['assistant', 'booking', 'payment'],
    ])
  })

  it('is which child runs it had, each once', () => {
    const { child: _child, ...alone } = facts.tool_started
    const other = { ...facts.tool_started, child: sampleRunId(78) }
    const { childRunIds } = accumulated([
      ...[start, facts.tool_started, alone, facts.tool_result],
      ...[facts.tool_started, other],
    ])
    expect(childRunIds).toEqual([sampleRunId(77), sampleRunId(78)])
  })

  it('is how its calls ended, and how many attempts failed', () => {
    const denied = { ...facts.tool_result, outcome: 'denied' } as const
    const run = accumulated([
      ...[start, facts.model_stream_failed, facts.tool_result, denied],
      ...[facts.model_stream_failed, facts.tool_result, call(1)],
    ])
    expect(run.failedAttempts).toBe(2)
    expect(run.calls).toEqual([
      { name: 'get_weather', outcome: 'success', count: 2 },
      { name: 'get_weather', outcome: 'denied', count: 1 },
    ])
    expect(run).toMatchObject({ agents: ['assistant'], open: [{ key: '1 1' }] })
  })
})

describe('what a run spent', () => {
  it('is the last report of each attempt, with the kinds of tokens that an earlier one has named', () => {
    const first = { ...usageOf, usage: { inputTokens: 5, outputTokens: 1 }, costUsd: 0.1 }
    expect(callsOf([start, call(1)])).toEqual([['1 1', {}, undefined]])
    expect(callsOf([start, call(1), first, used(1, 1, 9)])).toEqual([
      ['1 1', { inputTokens: 5, outputTokens: 9 }, 0.1],
    ])
    expect(callsOf([start, call(1), first, used(1, 1, 9, 0.2)])).toEqual([
      ['1 1', { inputTokens: 5, outputTokens: 9 }, 0.2],
    ])
    expect(callsOf([start, call(1), call(1, 2), used(1, 2, 7), used(1, 1, 3)])).toEqual([
      ['1 1', { outputTokens: 3 }, undefined],
      ['1 2', { outputTokens: 7 }, undefined],
    ])
  })

  it('is that of each summary, too', () => {
    const asked = facts.compaction_started
    const reported = (outputTokens: number) => ({ ...compacted, usage: { outputTokens } })
    expect(callsOf([start, asked, compacted])).toEqual([['summary 1', {}, undefined]])
    expect(callsOf([start, asked, reported(4), asked, reported(5)])).toEqual([
      ['summary 1', { outputTokens: 4 }, undefined],
      ['summary 2', { outputTokens: 5 }, undefined],
    ])
    expect(accumulated([start, asked, reported(4), asked]).summaries).toBe(2)
  })

  it('is final with the next turn, and at the end of the run', () => {
    const first = [start, call(1), used(1, 1, 3, 0.25), call(1, 2), used(1, 2, 4)] as const
    const later = accumulated([...first, call(2)])
    expect(later.open.map(({ key }) => key)).toEqual(['2 1'])
    expect(later.settled).toMatchObject([
      { agent: 'assistant', calls: 2, usage: { outputTokens: 7 }, costNano: 250_000_000, unpriced: 1 },
    ])
    // The same line for the same hour, agent and model.
    const ended = accumulated([...first, call(2), used(2, 1, 5), facts.run_finished])
    expect(ended.open).toEqual([])
    expect(ended.settled).toMatchObject([{ calls: 3, usage: { outputTokens: 12 }, unpriced: 2 }])
    expect(listSpending(later)).toMatchObject([{ calls: 3, usage: { outputTokens: 7 }, unpriced: 2 }])
    expect(accumulated([...first, facts.run_finished]).settled).toHaveLength(1)
  })

  it('is counted for the agent that has the conversation when the call begins', () => {
    const on = { ...facts.agent_handed_off, to: 'payment' }
    const run = accumulated([
      start,
      call(1),
      facts.agent_handed_off,
      call(2),
      on,
      call(3),
      facts.run_finished,
    ])
    expect(run.settled.map(({ agent, calls }) => [agent, calls])).toEqual([
      ['assistant', 1],
      ['booking', 1],
      ['payment', 1],
    ])
  })

  it('leaves out what a fork shares with the other run, and nothing of a child run', () => {
    const parent = { ...(fork as NonNullable<typeof fork>), seq: 3 }
    const shared = [call(1), used(1, 1, 3), call(2), used(2, 1, 4)] as const
    expect(callsOf([{ ...start, parent }, ...shared])).toEqual([['2 1', { outputTokens: 4 }, undefined]])
    expect(accumulated([{ ...start, parent }, ...shared]).sharedSeq).toBe(3)
    const child = { ...parent, relation: 'child' } as const
    expect(accumulated([{ ...start, parent: child }, ...shared, facts.run_finished]).settled).toMatchObject([
      { calls: 2, usage: { outputTokens: 7 } },
    ])
    expect(accumulated([start, call(1)]).sharedSeq).toBe(0)
  })
})

describe('how the calls of a run ended', () => {
  const ending = (name: string, outcome: 'success' | 'failed' = 'success') =>
    ({ ...facts.tool_result, name, outcome }) as const

  it('is a line for each tool and outcome', () => {
    const endings = [ending('a'), ending('b'), ending('a', 'failed'), ending('a'), ending('b')]
    expect(accumulated([start, ...endings]).calls).toEqual([
      { name: 'a', outcome: 'success', count: 2 },
      { name: 'b', outcome: 'success', count: 2 },
      { name: 'a', outcome: 'failed', count: 1 },
    ])
  })

  it('is a line of no name for tools beyond a hundred lines', () => {
    const endings = Array.from({ length: 103 }, (_, ordinal) => ending(`tool ${ordinal}`))
    const { calls } = accumulated(endings)
    expect(calls).toHaveLength(101)
    expect(calls[99]).toEqual({ name: 'tool 99', outcome: 'success', count: 1 })
    expect(calls[100]).toEqual({ name: '…', outcome: 'success', count: 3 })
    // A tool that has a line keeps its name.
    const later = accumulated([...endings, ending('tool 7'), ending('tool 7', 'failed')]).calls
    expect(later[7]?.count).toBe(2)
    expect(later.at(-1)).toEqual({ name: 'tool 7', outcome: 'failed', count: 1 })
  })
})
