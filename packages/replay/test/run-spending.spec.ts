import { memoryLedger, type Ledger, type Usage } from '@tallystick/core'
import { sampleFacts, sampleCallId, sampleRunId, stampFacts } from '@tallystick/testkit'
import { type Fact, type FactOf } from '@tallystick/core/vocabulary'
import { diffRuns, type RunTail } from '@tallystick/replay'
import { describe, expect, it } from 'vitest'

const [one, two] = [sampleRunId(1), sampleRunId(2)]
const {
  run_started: { parent: _fork, sessionId: _session, sessionPlace: _place, ...started },
  ...facts
} = sampleFacts(one)
const { model_call_started: asked, usage_updated: reported, tool_started: tool, tool_result: result } = facts

const calls = (turn: number, attempt = 1): Fact => ({ ...asked, turn, attempt })
function uses(
  place: { readonly turn: number; readonly attempt?: number },
  usage: Usage,
  costUsd?: number,
): Fact {
  const { costUsd: _cost, price: _price, ...rest } = reported
  return { ...rest, ...place, usage, ...(costUsd !== undefined && { costUsd }) }
}
function summary(usage?: Usage, costUsd?: number): Fact {
  const { usage: _usage, costUsd: _cost, price: _price, ...rest } = facts.context_compacted
  return { ...rest, ...(usage && { usage }), ...(costUsd !== undefined && { costUsd }) }
}
const starts = (ordinal: number, attempt = 1): Fact => ({
  ...{ ...tool, toolCallId: sampleCallId(one, ordinal), attempt },
})
/** What a call came to: where a child run did it, with what that used. */
function answers(ordinal: number, child?: { readonly usage: Usage; readonly costUsd?: number }): Fact {
  const { child: given, reused: _reused, ...rest } = result
  const run = { runId: given?.runId ?? one, turns: 1, toolCalls: 0 }
  return { ...rest, toolCallId: sampleCallId(one, ordinal), ...(child && { child: { ...run, ...child } }) }
}

/** A ledger of two runs that have nothing in common but their first input, or not even that. */
async function ledgerOf(left: readonly Fact[], right: readonly Fact[]): Promise<Ledger> {
  const ledger = memoryLedger()
  for (const [runId, events] of [
    [one, left],
    [two, right],
  ] as const) {
    await ledger.append(runId, { expectedSeq: 0, epoch: 1 }, stampFacts(runId, events), {
      durability: 'lazy',
    })
  }
  return ledger
}

const other: FactOf<'run_started'> = { ...started, agent: 'other' }
/** What a run of these events after its first used, beside a run of another agent. */
async function spendingOf(...events: readonly Fact[]): Promise<RunTail> {
  return (await diffRuns(await ledgerOf([started, ...events], [other]), one, two)).left
}

describe('two runs that part at their first event', () => {
  it('have nothing in common, and each did all of it after that', async () => {
    const deltas = [facts.assistant_text_delta, facts.tool_input_delta, facts.assistant_reasoning_delta]
    const left = [started, facts.input_received, calls(1), ...deltas, facts.tool_progress]
    const ledger = await ledgerOf(left, [other, facts.input_received])
    const diff = await diffRuns(ledger, one, two)
    expect(diff.shared).toBe(0)
    expect(diff.differences).toEqual([{ path: 'agent', recorded: 'assistant', happened: 'other' }])
    expect(diff.left.events.map(({ type }) => type)).toEqual([
      ...['run_started', 'input_received', 'model_call_started'],
    ])
    expect(diff.right.events.map(({ seq }) => seq)).toEqual([1, 2])
    expect([diff.left.runId, diff.right.runId]).toEqual([one, two])
  })
})

describe('what a run used', () => {
  it('is the last report of each attempt of its model calls, and of each of them', async () => {
    const spent = await spendingOf(
      ...[calls(1), uses({ turn: 1 }, { inputTokens: 10 }, 0.5), uses({ turn: 1 }, { inputTokens: 30 }, 1)],
      ...[calls(1, 2), uses({ turn: 1, attempt: 2 }, { inputTokens: 200, outputTokens: 1 }, 2)],
      ...[calls(2), uses({ turn: 2 }, { inputTokens: 1000 }, 4)],
    )
    expect(spent).toMatchObject({
      ...{ turns: 2, toolCalls: 0, reused: 0 },
      usage: { inputTokens: 1230, outputTokens: 1 },
      costUsd: 7,
    })
    expect(spent.own).toEqual({
      ...{ turns: 2, toolCalls: 0, reused: 0, costUsd: 7 },
      usage: { inputTokens: 1230, outputTokens: 1 },
    })
  })

  it('counts each call once, however often it was started, with what its child run used', async () => {
    const child = { usage: { inputTokens: 7 }, costUsd: 0.25 }
    const { child: _child, ...served } = { ...result, toolCallId: sampleCallId(one, 4) }
    const spent = await spendingOf(
      ...[starts(1), starts(1, 2), answers(1, child), starts(2), answers(2, child)],
      ...[starts(3), answers(3), starts(4), served],
    )
    expect(spent).toMatchObject({ toolCalls: 4, reused: 1, usage: { inputTokens: 14 }, costUsd: 0.5 })
  })

  it('counts what its summaries used, where a model wrote them', async () => {
    const spent = await spendingOf(summary({ inputTokens: 40 }, 1), summary(), summary({ inputTokens: 2 }, 2))
    expect(spent).toMatchObject({ usage: { inputTokens: 42 }, costUsd: 3 })
    expect(await spendingOf(summary())).toMatchObject({ usage: {} })
  })

  it('has a cost where a price is on record, and none where no price is', async () => {
    const reports = [uses({ turn: 1 }, { inputTokens: 3 }), uses({ turn: 2 }, { inputTokens: 4 })]
    const free = await spendingOf(...reports)
    expect(free.usage).toEqual({ inputTokens: 7 })
    expect([free, free.own].map((spent) => 'costUsd' in spent)).toEqual([false, false])
    expect(await spendingOf(...reports, uses({ turn: 3 }, {}, 0.5))).toMatchObject({ costUsd: 0.5 })
  })

  it('begins for a fork after the event that it was forked at, and for any other run at its first', async () => {
    const work = [
      calls(1),
      uses({ turn: 1 }, { inputTokens: 1 }, 1),
      starts(1),
      uses({ turn: 2 }, { inputTokens: 2 }),
    ]
    const own = async (relation: 'fork' | 'branch', seq: number): Promise<unknown> => {
      const parent = { runId: sampleRunId(9), seq, relation } as NonNullable<FactOf<'run_started'>['parent']>
      const ledger = await ledgerOf([{ ...started, parent }, ...work], [other])
      return (await diffRuns(ledger, one, two)).left.own
    }
    const whole = { turns: 1, toolCalls: 1, reused: 0, usage: { inputTokens: 3 }, costUsd: 1 }
    expect(await own('fork', 1)).toEqual(whole)
    expect(await own('fork', 2)).toEqual({ ...whole, turns: 0 })
    expect(await own('fork', 3)).toEqual({
      ...{ turns: 0, toolCalls: 1, reused: 0, usage: { inputTokens: 2 } },
    })
    expect(await own('fork', 4)).toMatchObject({ toolCalls: 0, usage: { inputTokens: 2 } })
    expect(await own('branch', 4)).toEqual(whole)
  })
})
