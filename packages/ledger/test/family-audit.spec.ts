import {
  LedgerDamagedError,
  type Ledger,
  type RuntimeEvent,
  agentTool,
  createRuntime,
  defineAgent,
  memoryLedger,
  type RunId,
  type Usage,
} from '@tallystick/core'
import { verifyRun } from '@tallystick/ledger'
import {
  sampleFacts,
  sampleRunId,
  stampFacts,
  manualClock,
  scriptedModel,
  waitUntilSettled,
} from '@tallystick/testkit'
import { describe, expect, it } from 'vitest'
import { FamilyAudit } from '../src/verify/event-audit.ts'

const [run, child] = [sampleRunId(1), sampleRunId(77)]
const facts = sampleFacts(run)
const grant = { turns: 3, toolCalls: 4, tokens: 900, inputTokens: 800, outputTokens: 100, costUsd: 0.5 }
const limits = {
  ...{ maxTurns: 3, maxToolCalls: 4, maxTotalTokens: 900 },
  ...{ maxTotalInputTokens: 800, maxTotalOutputTokens: 100, maxCostUsd: 0.5 },
}
const totals = { turns: 3, toolCalls: 2, usage: { inputTokens: 100, outputTokens: 20 }, costUsd: 0.3 }
const [started, result] = stampFacts(
  run,
  [
    { ...facts.tool_started, child, grant, attempt: 1 },
    { ...facts.tool_result, child: { runId: child, ...totals } },
  ],
  { afterSeq: 4 },
) as readonly [RuntimeEvent, RuntimeEvent]
const parent = { runId: run, seq: 5, relation: 'tool', grant } as const
const [first, last] = stampFacts(child, [
  { ...facts.run_started, limits, parent },
  { ...facts.run_finished, ...totals },
] as Parameters<typeof stampFacts>[1]) as readonly [RuntimeEvent, RuntimeEvent]

interface Told {
  readonly parent?: readonly RuntimeEvent[]
  readonly first?: object
  readonly last?: object
  readonly read?: Ledger['read']
  readonly isThere?: boolean
}

/** What an audit of a parent finds over a child run of two events, with what differs from a sound family. */
async function audited(reported: Told = {}) {
  const asked: unknown[] = []
  const events = [
    { ...first, ...reported.first },
    { ...last, ...reported.last },
  ] as readonly RuntimeEvent[]
  const ledger = {
    head: async () => (reported.isThere === false ? undefined : { seq: 2, epoch: 1 }),
    read:
      reported.read ??
      async function* (_runId: unknown, range: { readonly fromSeq?: number; readonly toSeq?: number }) {
        asked.push(range)
        const { fromSeq = 1, toSeq = 2 } = range
        if (reported.isThere !== false) yield* events.slice(fromSeq - 1, toSeq)
      },
    find: async function* ({ types = [] }: NonNullable<Parameters<Ledger['find']>[0]>) {
      asked.push(types)
      if (reported.isThere !== false) yield* events.filter(({ type }) => types.includes(type))
    },
  }
  const audit = new FamilyAudit()
  for (const event of reported.parent ?? [started, result]) audit.handle(event)
  const found = await audit.fault(ledger as unknown as Ledger)
  return { found: found && [found.seq, found.what, found.expected, found.found], asked }
}

describe('the audit of a run with a child run', () => {
  it('reads the first event of the child and its end, and no more', async () => {
    expect(await audited()).toEqual({ found: undefined, asked: [{ toSeq: 1 }, ['run_finished']] })
    expect(await audited({ parent: [started] })).toEqual({ found: undefined, asked: [{ toSeq: 1 }] })
  })

  it.each([
    ['maxTurns', 3],
    ['maxToolCalls', 4],
    ['maxTotalTokens', 900],
    ['maxTotalInputTokens', 800],
    ['maxTotalOutputTokens', 100],
    ['maxCostUsd', 0.5],
  ])('finds a child whose %s is beyond its grant, or none', async (limit, granted) => {
    const expected = `${limit} of child run ${child} within its grant of ${granted}`
    const { found } = await audited({ first: { limits: { ...limits, [limit]: granted * 2 } } })
    expect(found).toEqual([5, 'law 9', expected, `${granted * 2}`])
    const without = await audited({ first: { limits: { ...limits, [limit]: undefined } } })
    expect(without.found).toEqual([5, 'law 9', expected, 'Infinity'])
    const within = await audited({ first: { limits: { ...limits, [limit]: granted / 2 } } })
    expect(within.found).toBeUndefined()
  })

  it('finds a child that was granted something else than its parent says', async () => {
    const expected = `the grant of child run ${child} as its parent recorded it`
    const { found } = await audited({ first: { parent: { ...parent, grant: { ...grant, turns: 5 } } } })
    expect(found?.slice(0, 3)).toEqual([5, 'law 9', expected])
    expect((await audited({ first: { parent: undefined } })).found?.at(3)).toBe('{}')
    const none = [{ ...started, grant: undefined } as unknown as RuntimeEvent, result]
    expect((await audited({ parent: none })).found?.at(2)).toBe(expected)
    expect((await audited({ parent: none, first: { parent: undefined } })).found).toBeUndefined()
  })

  it.each([
    ['input tokens', { usage: { inputTokens: 101, outputTokens: 20 } }, 101, 100],
    ['output tokens', { usage: { inputTokens: 100, outputTokens: 21 } }, 21, 20],
    ['dollars', { costUsd: 0.31 }, 0.31, 0.3],
    ['turns', { turns: 4 }, 4, 3],
    ['tool calls', { toolCalls: 3 }, 3, 2],
  ])('finds a parent that counts fewer %s than its child', async (what, change, its, mine) => {
    const expected = `${its} ${what} of child run ${child}, as its own events say`
    expect((await audited({ last: change })).found).toEqual([5, 'law 9', expected, `${mine}`])
  })

  it('names the first of several totals that a parent counts too low', async () => {
    const { found } = await audited({ last: { turns: 4, toolCalls: 3 } })
    expect(found?.at(2)).toBe(`4 turns of child run ${child}, as its own events say`)
  })

  it('lets dollars differ as their rounding does, and a parent count more', async () => {
    expect((await audited({ last: { costUsd: 0.3 + 1e-12 } })).found).toBeUndefined()
    expect((await audited({ last: { turns: 1, costUsd: undefined } })).found).toBeUndefined()
  })

  it('says nothing of a child that continues, is not there, or is damaged', async () => {
    expect((await audited({ last: { type: 'usage_updated', turns: 99 } })).found).toBeUndefined()
    expect((await audited({ first: { type: 'usage_updated', limits: {} } })).found).toBeUndefined()
    expect((await audited({ isThere: false })).found).toBeUndefined()
    const damaged = (): never => {
      throw new LedgerDamagedError('the child is damaged')
    }
    expect((await audited({ read: damaged })).found).toBeUndefined()
    const failing = (): never => {
      throw new Error('out of reach')
    }
    await expect(audited({ read: failing })).rejects.toThrow('out of reach')
  })

  it('takes no second start of a call for another child, and no result of an unknown one', async () => {
    const again = { ...started, attempt: 2, seq: 9, grant: { turns: 1 } } as unknown as RuntimeEvent
    expect((await audited({ parent: [started, again, result] })).found).toBeUndefined()
    expect(await audited({ parent: [result] })).toEqual({ found: undefined, asked: [] })
    const alone = { ...started, child: undefined } as unknown as RuntimeEvent
    expect(await audited({ parent: [alone, result] })).toEqual({ found: undefined, asked: [] })
  })
})

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
