import { LedgerDamagedError, type Ledger, type RuntimeEvent } from '@tallystick/core'
import { sampleFacts, sampleRunId, stampFacts } from '@tallystick/testkit'
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
