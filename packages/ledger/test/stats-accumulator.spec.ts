import { sampleRunId } from '@tallystick/testkit'
import type { ListedRun } from '@tallystick/ledger'
import { describe, expect, it } from 'vitest'
import { toAmounts } from '../src/projection/run-accumulator.ts'
import { isNoted, StatsAccumulator } from '../src/projection/stats.ts'
import type { SessionChange, SpendingChange } from '../src/projection/stored-run.ts'

const hourMs = 3_600_000
const since = 48 * hourMs

const run = (ordinal: number, status: ListedRun['status'], more: object = {}): ListedRun =>
  ({ runId: sampleRunId(ordinal), status, lastAt: since, ...more }) as unknown as ListedRun

const spent = (hour: number, more: Partial<SpendingChange> = {}): SpendingChange => ({
  ...toAmounts({ inputTokens: 7 }, 0.5),
  ...{ hour, agent: 'clerk', provider: 'p', api: 'a', model_id: 'm', calls: 1 },
  ...more,
})

const session = (id: string, more: Partial<SessionChange> = {}): SessionChange => ({
  ...toAmounts({ inputTokens: 7, outputTokens: 2 }, 0.5),
  ...{ session_id: id, runs: 1, started_at: since, last_at: since, turns: 2, tool_calls: 3 },
  ...more,
})

const gathering = (maxListed = 10) => new StatsAccumulator({ since, maxListed })

describe('stats of a ledger', () => {
  it('of an empty ledger count nothing', () => {
    expect(gathering().stats).toEqual({
      since,
      counts: { done: 0, failed: 0, suspended: 0, unfinished: 0, unreadable: 0 },
      ...{ suspended: [], unfinished: [], failed: [], unreadable: [], spending: [], sessions: [] },
    })
  })

  it('count runs by status', () => {
    const stats = gathering()
    stats.count('done', 4)
    stats.count('failed', 1)
    stats.count('done', -1)
    expect(stats.stats.counts).toMatchObject({ done: 3, failed: 1, suspended: 0 })
  })

  it('name runs that may need a person, the newest first, and no more than were asked for', () => {
    const stats = gathering(2)
    for (const pos of [3, 1, 5, 2, 4, 6]) stats.note({ pos, run: run(pos, 'unfinished') })
    stats.note({ pos: 7, run: run(7, 'failed') })
    stats.note({ pos: 8, run: run(8, 'done') })
    stats.note({ pos: 9, run: run(9, 'unreadable') })
    const { unfinished, failed, unreadable, suspended } = stats.stats
    expect(unfinished.map(({ runId }) => runId)).toEqual([sampleRunId(6), sampleRunId(5)])
    expect(failed).toEqual([run(7, 'failed')])
    expect(unreadable).toEqual([run(9, 'unreadable')])
    expect(suspended).toEqual([])
    const none = gathering(0)
    none.note({ pos: 1, run: run(1, 'unfinished') })
    expect(none.stats.unfinished).toEqual([])
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
  ])('name %s or not', (_what, noted, isNamed) => {
    expect(isNoted(noted, since)).toBe(isNamed)
  })
})

describe('spending', () => {
  it('is summed up by day, agent and model, from the first hour on', () => {
    const stats = gathering()
    stats.spend(spent(47))
    for (const hour of [48, 71, 72]) stats.spend(spent(hour))
    const line = { agent: 'clerk', model: { provider: 'p', api: 'a', modelId: 'm' } }
    expect(stats.stats.spending).toStrictEqual([
      { day: 2, ...line, calls: 2, usage: { inputTokens: 14 }, costUsd: 1, unpriced: 0 },
      { day: 3, ...line, calls: 1, usage: { inputTokens: 7 }, costUsd: 0.5, unpriced: 0 },
    ])
  })

  it('is of one day after the other, and within a day in the order of names', () => {
    const stats = gathering()
    const lines = [
      spent(72, { agent: 'a' }),
      spent(48, { agent: 'b' }),
      spent(49, { agent: 'a', model_id: 'n' }),
      spent(50, { agent: 'a', api: 'b' }),
      spent(51, { agent: 'a', provider: 'q' }),
      spent(52, { agent: 'a' }),
      spent(53, { agent: '"\\"c\\""' }),
    ]
    for (const line of lines) stats.spend(line)
    expect(
      stats.stats.spending.map(({ day, agent, model }) => [day, agent, ...Object.values(model)]),
    ).toEqual([
      [2, '"c"', 'p', 'a', 'm'],
      [2, 'a', 'p', 'a', 'm'],
      [2, 'a', 'p', 'a', 'n'],
      [2, 'a', 'p', 'b', 'm'],
      [2, 'a', 'q', 'a', 'm'],
      [2, 'b', 'p', 'a', 'm'],
      [3, 'a', 'p', 'a', 'm'],
    ])
  })

  it('has no cost where nothing had a price, and no line where nothing is left', () => {
    const stats = gathering()
    const { cost_nano: _cost, ...unpriced } = spent(48)
    stats.spend({ ...unpriced, cost_nano: 0, unpriced: 1 })
    stats.spend(spent(48, { agent: 'gone' }))
    stats.spend(spent(48, { agent: 'gone', calls: -1, cost_nano: -5e8, input_tokens: -7, input_told: -1 }))
    const [line, ...others] = stats.stats.spending
    expect(others).toEqual([])
    expect(line).toMatchObject({ calls: 1, unpriced: 1 })
    expect(line).not.toHaveProperty('costUsd')
  })
})

describe('sessions', () => {
  it('come with all that their runs took', () => {
    const stats = gathering()
    stats.session(session('"\\"ann\\""'))
    expect(stats.stats.sessions).toStrictEqual([
      {
        ...{ sessionId: '"ann"', runs: 1, startedAt: since, lastAt: since, turns: 2, toolCalls: 3 },
        ...{ usage: { inputTokens: 7, outputTokens: 2 }, costUsd: 0.5, unpriced: 0 },
      },
    ])
    const free = gathering()
    free.session(session('ann', { cost_nano: 0, unpriced: 1 }))
    expect(free.stats.sessions[0]).toMatchObject({ unpriced: 1 })
    expect(free.stats.sessions[0]).not.toHaveProperty('costUsd')
  })

  it('are the sum of their changes, with the times of the last one', () => {
    const later = { started_at: since - 9, last_at: since + 9 }
    const sum = { runs: 2, turns: 4, toolCalls: 6, costUsd: 1, startedAt: since - 9, lastAt: since + 9 }
    const stats = gathering()
    stats.session(session('ann'))
    stats.session(session('ann', later))
    expect(stats.stats.sessions).toMatchObject([sum])
    const above = gathering()
    above.session(session('ann', later))
    above.sessionBelow(session('ann'))
    above.sessionBelow(session('bob'))
    expect(above.stats.sessions).toMatchObject([sum, { sessionId: 'bob', runs: 1 }])
  })

  it('are those with a run, and an event since then', () => {
    const stats = gathering()
    stats.session(session('old', { last_at: since - 1 }))
    stats.session(session('gone', { runs: 0 }))
    stats.session(session('two', { runs: 2 }))
    stats.session(session('one'))
    expect(stats.stats.sessions.map(({ sessionId }) => sessionId)).toEqual(['one', 'two'])
  })

  it('come the dearest first, then those with most tokens, then by name, as many as were asked for', () => {
    const stats = gathering(5)
    const ids = ['e', 'd', 'c', 'b', 'a', 'f']
    const more: readonly Partial<SessionChange>[] = [
      {},
      {},
      { input_tokens: 8 },
      { output_tokens: 4 },
      { cost_nano: 6e8, input_tokens: 0, output_tokens: 0 },
      { cost_nano: 4e8, input_tokens: 99 },
    ]
    ids.forEach((id, index) => stats.session(session(id, more[index])))
    expect(stats.stats.sessions.map(({ sessionId }) => sessionId)).toEqual(['a', 'b', 'c', 'd', 'e'])
  })
})
