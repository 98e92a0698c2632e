import { memoryLedger } from '@tallystick/core'
import { sampleRunId } from '@tallystick/testkit'
import type { LedgerStats, ListedRun } from '@tallystick/ledger'
import { describe, expect, it } from 'vitest'
import { type ProjectedRun, ProjectedRuns } from '../src/projection/projections.ts'
import type { SpendingLine } from '../src/projection/run-accumulator.ts'
import { readStats } from '../src/projection/stats.ts'

const hourMs = 3_600_000
const since = 48 * hourMs

/** The run at a place. */
const run = (pos: number, status: ListedRun['status'], more: object = {}): ProjectedRun => ({
  pos,
  summary: {
    ...{ runId: sampleRunId(pos), status, startedAt: since, lastAt: since, turns: 2, toolCalls: 3 },
    ...{ children: { runs: 0, turns: 0, toolCalls: 0 }, usage: { inputTokens: 7, outputTokens: 2 } },
    costUsd: 0.5,
    ...more,
  } as unknown as ListedRun,
  spending: [],
})

const spent = (hour: number, more: Partial<SpendingLine> = {}): SpendingLine => ({
  ...{ hour, agent: 'clerk', model: { provider: 'p', api: 'a', modelId: 'm' }, calls: 1 },
  ...{ usage: { inputTokens: 7 }, costNano: 5e8, unpriced: 0 },
  ...more,
})

const statsOf = (runs: readonly ProjectedRun[], maxListed = 10): Promise<LedgerStats> =>
  readStats(new ProjectedRuns(memoryLedger(), undefined, runs), { since, maxListed })

const spendingOf = async (...lines: readonly SpendingLine[]): Promise<LedgerStats['spending']> =>
  (await statsOf([{ ...run(1, 'done'), spending: lines }])).spending

const sessionsOf = async (runs: readonly object[], maxListed?: number): Promise<LedgerStats['sessions']> =>
  (
    await statsOf(
      runs.map((more, index) => run(index, 'done', more)),
      maxListed,
    )
  ).sessions

describe('stats of a ledger', () => {
  it('of an empty ledger count nothing', async () => {
    expect(await statsOf([])).toEqual({
      since,
      counts: { done: 0, failed: 0, suspended: 0, unfinished: 0, unreadable: 0 },
      ...{ suspended: [], unfinished: [], failed: [], unreadable: [], spending: [], sessions: [] },
    })
  })

  it('count runs by status, and name those that may need a person, the newest first, up to a number', async () => {
    const runs = [
      ...[3, 1, 5, 2, 4, 6].map((pos) => run(pos, 'unfinished')),
      ...[run(7, 'failed'), run(8, 'done'), run(9, 'unreadable')],
    ]
    const { counts, unfinished, failed, unreadable, suspended } = await statsOf(runs, 2)
    expect(counts).toEqual({ done: 1, failed: 1, suspended: 0, unfinished: 6, unreadable: 1 })
    expect(unfinished.map(({ runId }) => runId)).toEqual([sampleRunId(6), sampleRunId(5)])
    expect(failed).toEqual([run(7, 'failed').summary])
    expect(unreadable).toEqual([run(9, 'unreadable').summary])
    expect(suspended).toEqual([])
    expect((await statsOf(runs, 0)).unfinished).toEqual([])
  })

  it.each([
    ['a suspended run', run(1, 'suspended'), true],
    ['a suspended fork', run(1, 'suspended', { parent: { relation: 'fork' } }), true],
    [
      'a suspended child run, for which its parent waits',
      run(1, 'suspended', { parent: { relation: 'child' } }),
      false,
    ],
    ['a run that failed since then', run(1, 'failed'), true],
    ['a run that failed before', run(1, 'failed', { lastAt: since - 1 }), false],
    ['an unfinished run', run(1, 'unfinished', { lastAt: 0 }), true],
    ['an unreadable run', run(1, 'unreadable', { lastAt: 0 }), true],
    ['a run that is done', run(1, 'done'), false],
  ])('name %s or not', async (_what, one, isNamed) => {
    const { suspended, unfinished, failed, unreadable } = await statsOf([one])
    expect([...suspended, ...unfinished, ...failed, ...unreadable]).toEqual(isNamed ? [one.summary] : [])
  })
})

describe('spending', () => {
  it('is summed up by day, agent and model, from the first hour on', async () => {
    const line = { agent: 'clerk', model: { provider: 'p', api: 'a', modelId: 'm' } }
    expect(await spendingOf(...[47, 48, 71, 72].map((hour) => spent(hour)))).toStrictEqual([
      { ...line, calls: 2, usage: { inputTokens: 14 }, unpriced: 0, day: 2, costUsd: 1 },
      { ...line, calls: 1, usage: { inputTokens: 7 }, unpriced: 0, day: 3, costUsd: 0.5 },
    ])
  })

  it('is of one day after the other, and within a day in the order of names', async () => {
    const model = { provider: 'p', api: 'a', modelId: 'm' }
    const spending = await spendingOf(
      spent(72, { agent: 'a' }),
      spent(48, { agent: 'b' }),
      spent(49, { agent: 'a', model: { ...model, modelId: 'n' } }),
      spent(50, { agent: 'a', model: { ...model, api: 'b' } }),
      spent(51, { agent: 'a', model: { ...model, provider: 'q' } }),
      spent(52, { agent: 'a' }),
      spent(53, { agent: '"c"' }),
    )
    expect(spending.map((line) => [line.day, line.agent, ...Object.values(line.model)])).toEqual([
      [2, '"c"', 'p', 'a', 'm'],
      [2, 'a', 'p', 'a', 'm'],
      [2, 'a', 'p', 'a', 'n'],
      [2, 'a', 'p', 'b', 'm'],
      [2, 'a', 'q', 'a', 'm'],
      [2, 'b', 'p', 'a', 'm'],
      [3, 'a', 'p', 'a', 'm'],
    ])
  })

  it('has no cost where nothing had a price', async () => {
    const [line] = await spendingOf(spent(48, { costNano: 0, unpriced: 1 }))
    expect(line).toMatchObject({ calls: 1, unpriced: 1 })
    expect(line).not.toHaveProperty('costUsd')
    const [some] = await spendingOf(spent(48, { costNano: 0, unpriced: 1 }), spent(48, { usage: {} }))
    expect(some).toMatchObject({ calls: 2, unpriced: 1, costUsd: 0.5, usage: { inputTokens: 7 } })
  })
})

describe('sessions', () => {
  it('come with all that their runs took, those of child runs included', async () => {
    const children = { runs: 1, turns: 10, toolCalls: 20 }
    expect(await sessionsOf([{ sessionId: '"ann"', children }])).toStrictEqual([
      {
        ...{ sessionId: '"ann"', runs: 1, startedAt: since, lastAt: since, turns: 12, toolCalls: 23 },
        ...{ usage: { inputTokens: 7, outputTokens: 2 }, unpriced: 0, costUsd: 0.5 },
      },
    ])
    const [free] = await sessionsOf([{ sessionId: 'ann', costUsd: undefined }])
    expect(free).toMatchObject({ unpriced: 1 })
    expect(free).not.toHaveProperty('costUsd')
  })

  it('are those with an event since then, with their older runs', async () => {
    const old = { startedAt: since - 9, lastAt: since - 8 }
    const ann = [{ sessionId: 'ann' }, { sessionId: 'ann', ...old }]
    expect(await sessionsOf([...ann, { sessionId: 'bob', ...old }, {}])).toMatchObject([
      { sessionId: 'ann', runs: 2, turns: 4, toolCalls: 6, costUsd: 1, startedAt: since - 9, lastAt: since },
    ])
  })

  it('come the dearest first, then those with most tokens, then by name, as many as were asked for', async () => {
    const usage = { inputTokens: 7, outputTokens: 2 }
    const more: readonly object[] = [
      {},
      {},
      { usage: { ...usage, inputTokens: 8 } },
      { usage: { ...usage, outputTokens: 4 } },
      { costUsd: 0.6, usage: {} },
      { costUsd: 0.4, usage: { inputTokens: 99 } },
    ]
    const sessions = await sessionsOf(
      ['e', 'd', 'c', 'b', 'a', 'f'].map((sessionId, index) => ({ sessionId, ...more[index] })),
      5,
    )
    expect(sessions.map(({ sessionId }) => sessionId)).toEqual(['a', 'b', 'c', 'd', 'e'])
  })
})
