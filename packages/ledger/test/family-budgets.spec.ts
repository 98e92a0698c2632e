import { describe, expect, it } from 'vitest'
import {
  agentTool,
  createRuntime,
  defineAgent,
  memoryLedger,
  type Ledger,
  type RunId,
  type RuntimeEvent,
  type Usage,
} from '@tallystick/core'
import { manualClock, scriptedModel, waitUntilSettled } from '@tallystick/testkit'
import { verifyRun } from '@tallystick/ledger'

interface Family {
  readonly parent: readonly RuntimeEvent[]
  readonly child: readonly RuntimeEvent[]
}

/** A parent with a limit of tokens, and its child run. */
async function family(): Promise<Family> {
  const usage = { inputTokens: 100, outputTokens: 20 }
  const clock = manualClock()
  const worker = defineAgent({
    ...{ name: 'worker', description: 'Works.', instructions: 'Work.' },
    model: scriptedModel([{ text: 'Worked.', usage }]),
  })
  const boss = defineAgent({
    ...{ name: 'boss', instructions: 'Lead.', tools: [agentTool(worker)], limits: { maxTotalTokens: 5_000 } },
    model: scriptedModel([
      { toolCalls: [{ name: 'worker', input: { task: 'Work.' } }], usage },
      { text: 'Done.', usage },
    ]),
  })
  const ledger = memoryLedger()
  const run = createRuntime({ ledger, agents: [boss], host: { clock } }).run(boss, 'Go.')
  await waitUntilSettled(clock, run.result)
  const parent = await Array.fromAsync(ledger.read(run.id))
  const child = parent.flatMap((event) => (event.type === 'tool_started' && event.child ? [event.child] : []))
  return { parent, child: await Array.fromAsync(ledger.read(child[0]!)) }
}

/** The events as a ledger that checks nothing would give them out. */
function forgedLedger(runs: readonly (readonly RuntimeEvent[])[]): Ledger {
  const of = (runId: RunId): readonly RuntimeEvent[] => runs.find(([first]) => first?.runId === runId) ?? []
  const ledger: Partial<Ledger> = {
    head: (runId) => {
      const last = of(runId).at(-1)
      return Promise.resolve(last && { seq: last.seq, epoch: last.epoch })
    },
    inbox: () => Promise.resolve([]),
    read: async function* (runId, { fromSeq = 1, toSeq = Infinity } = {}) {
      yield* of(runId).filter(({ seq }) => seq >= fromSeq && seq <= toSeq)
    },
    find: async function* ({ runId, types = [] } = {}) {
      if (runId !== undefined) yield* of(runId).filter(({ type }) => types.includes(type))
    },
  }
  return ledger as Ledger
}

async function brokenLaw(runs: readonly (readonly RuntimeEvent[])[]): Promise<unknown> {
  const [parent] = runs
  const { broken } = await verifyRun(forgedLedger(runs), parent![0]!.runId)
  return broken && [broken.what, broken.expected]
}

describe('verify, of a run and its child runs', () => {
  it('finds nothing where limits are within grants and totals are those of the child', async () => {
    const { parent, child } = await family()
    expect(await brokenLaw([parent, child])).toBeUndefined()
    // A child that retention has dropped is not a fault of its parent.
    expect(await brokenLaw([parent])).toBeUndefined()
  })

  it('finds a child run whose limits are beyond its grant', async () => {
    const { parent, child } = await family()
    const greedy = child.map((event) =>
      event.type === 'run_started' ? { ...event, limits: { ...event.limits, maxTotalTokens: 4_900 } } : event,
    )
    expect(await brokenLaw([parent, greedy])).toEqual([
      'law 9',
      expect.stringMatching(/maxTotalTokens of child run .* within its grant/),
    ])
  })

  it('finds a parent that counts less than its child used', async () => {
    const { parent, child } = await family()
    const result = parent.findIndex(({ type }) => type === 'tool_result')
    const cheap = parent.slice(0, result + 1).map((event) => {
      if (event.type !== 'tool_result' || event.child === undefined) return event
      return { ...event, child: { ...event.child, usage: { inputTokens: 99, outputTokens: 20 } } }
    })
    expect(await brokenLaw([parent.slice(0, result + 1), child])).toBeUndefined()
    expect(await brokenLaw([cheap, child])).toEqual([
      'law 9',
      expect.stringMatching(/100 input tokens of child run/),
    ])
    // A result without totals counts nothing.
    const silent = cheap.map((event) => {
      if (event.type !== 'tool_result') return event
      const { child: _child, ...others } = event
      return others
    })
    expect(await brokenLaw([silent, child])).toEqual([
      'law 9',
      expect.stringMatching(/100 input tokens of child run/),
    ])
  })

  it('holds a parent that ended before its child to what it granted', async () => {
    const { parent, child } = await family()
    const counted = (usage: Usage): RuntimeEvent[] =>
      parent.slice(0, parent.findIndex(({ type }) => type === 'tool_result') + 1).map((event) => {
        if (event.type !== 'tool_result' || event.child === undefined) return event
        return { ...event, child: { ...event.child, usage, estimated: true } }
      })
    // Tokens are granted together, so it does not matter of which kind they are.
    expect(await brokenLaw([counted({ inputTokens: 0, outputTokens: 120 }), child])).toBeUndefined()
    expect(await brokenLaw([counted({ inputTokens: 100, outputTokens: 19 }), child])).toEqual([
      'law 9',
      expect.stringMatching(/120 tokens of child run/),
    ])
  })
})
