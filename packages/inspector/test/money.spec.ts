import { describe, expect, it } from 'vitest'
import {
  agentTool,
  createRuntime,
  defineAgent,
  memoryLedger,
  type RunState,
  type RuntimeEvent,
  type Usage,
} from '@tallystick/core'
import { evolve } from '@tallystick/core/machine'
import { manualClock, scriptedModel, type ScriptedStep, waitUntilSettled } from '@tallystick/testkit'
import { findPoint, type Money, MoneyBuilder } from '../src/page/worker/money.ts'

const price = { inputUsd: 10, outputUsd: 100, cacheReadUsd: 1 }
const use = (inputTokens: number, outputTokens: number, cacheReadTokens: number = 0): Usage => ({
  ...{ inputTokens, outputTokens, cacheReadTokens },
})

/** A run of an agent with a child agent, and its events. */
async function play(steps: readonly ScriptedStep[], limits = {}): Promise<readonly RuntimeEvent[]> {
  const clock = manualClock()
  const ledger = memoryLedger({ clock })
  const child = defineAgent({
    ...{ name: 'researcher', description: 'Looks.', instructions: 'Look.' },
    model: scriptedModel([{ text: 'Four.', usage: use(500, 50) }]),
  })
  const agent = defineAgent({
    ...{
      name: 'buyer',
      instructions: 'Buy.',
      model: scriptedModel(steps),
      tools: [agentTool(child)],
      limits,
    },
  })
  const host = { clock, random: () => 0, report: () => undefined }
  const runtime = createRuntime({ ledger, agents: [agent, child], host, prices: () => price })
  const { runId } = await waitUntilSettled(clock, runtime.run(agent, 'Go.').result)
  return await Array.fromAsync(ledger.read(runId))
}

function count(events: readonly RuntimeEvent[]): Money {
  const builder = new MoneyBuilder()
  let state: RunState | undefined
  for (const event of events) {
    state = evolve(state, event)
    builder.add(event, state)
  }
  return builder.build()
}

const ask: ScriptedStep = {
  toolCalls: [{ name: 'researcher', input: { task: 'How many?' } }],
  usage: use(1_000, 100, 400),
}

describe('what a run used', () => {
  it('is told by turn and by child run, and adds up to what the run ended with', async () => {
    const events = await play([ask, { text: 'Four.', usage: use(2_000, 200) }])
    const { spenders } = count(events)
    expect(spenders.map(({ kind, turn, usage }) => [kind, turn, usage.inputTokens])).toEqual([
      ['turn', 1, 1_000],
      ['child', 1, 500],
      ['turn', 2, 2_000],
    ])
    const end = events.at(-1)!
    const total = spenders.reduce((sum, { costUsd = 0 }) => sum + costUsd, 0)
    expect(end).toMatchObject({ type: 'run_finished' })
    expect(total).toBeCloseTo((end as { readonly costUsd?: number }).costUsd!)
  })

  it('adds the attempts of a turn', async () => {
    const failing: ScriptedStep = { text: 'Fo', usage: use(1_000, 10), fail: 'overloaded' }
    const { spenders } = count(await play([failing, { text: 'Four.', usage: use(1_000, 20) }]))
    expect(spenders).toMatchObject([{ kind: 'turn', attempts: 2, usage: use(2_000, 30) }])
  })

  it('marks what no provider reported as estimated', async () => {
    const { spenders } = count(await play([{ text: 'Four.' }], { maxTotalTokens: 5_000 }))
    expect(spenders[0]!.estimated).toEqual(['inputTokens', 'outputTokens'])
  })

  it('tells budgets as what is spent, and what is granted beyond', async () => {
    const limits = { maxCostUsd: 1, maxTurns: 8 }
    const events = await play([ask, { text: 'Four.', usage: use(2_000, 200) }], limits)
    const { budgets, children } = count(events)
    const cost = budgets.find(({ field }) => field === 'costUsd')!
    const started = events.find(({ type }) => type === 'tool_started')!
    const during = findPoint(cost, started.seq)!
    expect(during.max).toBe(1)
    expect(during.granted).toBeCloseTo(children[0]!.grant.costUsd!)
    expect(during.spent + during.granted).toBeLessThanOrEqual(1)
    expect(findPoint(cost, Infinity)).toMatchObject({ granted: 0 })
    expect(findPoint(cost, 0)).toBeUndefined()
    expect(children).toMatchObject([{ name: 'researcher', spent: { tokens: 550, isEstimated: false } }])
  })

  it('has no point where nothing changed', async () => {
    const { budgets } = count(await play([ask, { text: 'Four.', usage: use(2_000, 200) }]))
    for (const { seqs, spent, granted, max } of budgets) {
      const told = [...seqs].map((_, row) => `${spent[row]} ${granted[row]} ${max[row]}`)
      expect(told.filter((each, index) => each === told[index - 1])).toEqual([])
    }
  })
})
