import { RunNotFoundError, memoryLedger } from '@tallystick/core'
import { sampleRunId } from '@tallystick/testkit'
import {
  fitsFilter,
  readRunSummaries,
  readRunSummary,
  type ListedRun,
  type SummaryFilter,
} from '@tallystick/ledger'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { describe, expect, it, onTestFinished } from 'vitest'
import { refreshed } from './support/compare-projections.ts'
import { recordRun } from './support/record-run.ts'
import { emptyLedgerFile } from './support/temporary-folder.ts'

const calls = [
  { name: 'look', outcome: 'success', count: 2 },
  { name: 'pay', outcome: 'denied', count: 1 },
]
const run = {
  ...{
    runId: sampleRunId(1),
    status: 'done',
    agents: ['assistant', 'clerk'],
    calls,
    startedAt: 50,
    lastAt: 100,
  },
  ...{ reason: 'stopped', parent: { relation: 'child' } },
} as unknown as ListedRun
const unreadable = { runId: sampleRunId(2), status: 'unreadable' } as unknown as ListedRun

describe('a filter of runs', () => {
  it.each<readonly [SummaryFilter, boolean, boolean]>([
    [{}, true, true],
    [{ statuses: [] }, false, false],
    [{ statuses: ['done'] }, true, false],
    [{ statuses: ['failed', 'unreadable'] }, false, true],
    [{ agent: 'clerk' }, true, false],
    [{ agent: 'boss' }, false, false],
    [{ tool: 'pay' }, true, false],
    [{ tool: 'book' }, false, false],
    [{ outcome: 'success' }, true, false],
    [{ outcome: 'failed' }, false, false],
    [{ tool: 'pay', outcome: 'denied' }, true, false],
    [{ tool: 'pay', outcome: 'success' }, false, false],
    [{ since: 100 }, true, false],
    [{ since: 101 }, false, false],
    [{ reason: 'stopped' }, true, false],
    [{ reason: 'answered' }, false, false],
    [{ startedSince: 50 }, true, false],
    [{ startedSince: 51 }, false, false],
    [{ startedUntil: 50 }, false, false],
    [{ startedUntil: 51 }, true, false],
    [{ roots: true }, false, false],
    [{ roots: false }, true, true],
    [{ statuses: ['done'], agent: 'assistant', tool: 'look', since: 1 }, true, false],
    [{ statuses: ['done'], agent: 'assistant', tool: 'look', since: 101 }, false, false],
  ])('by %j fits a run that is done: %s, and one that cannot be read: %s', (filter, fitsDone, fitsOther) => {
    expect([fitsFilter(run, filter), fitsFilter(unreadable, filter)]).toEqual([fitsDone, fitsOther])
  })
})

describe('a list of runs', () => {
  it('asks projections where it may pass over many runs, and reads no event of them', async () => {
    const ledger = sqliteLedger(emptyLedgerFile())
    onTestFinished(() => ledger.close())
    const ids = [await recordRun(ledger, 1), await recordRun(ledger, 2), await recordRun(ledger, 3)]
    await refreshed(ledger)
    const reported: string[] = []
    const [read, runs] = [ledger.read.bind(ledger), ledger.runs.bind(ledger)]
    Object.assign(ledger, {
      read: (...given: Parameters<typeof read>) => (reported.push('read'), read(...given)),
      runs: (...given: Parameters<typeof runs>) => (reported.push('runs'), runs(...given)),
    })
    const listed = async (filter: SummaryFilter): Promise<readonly unknown[]> =>
      (await Array.fromAsync(readRunSummaries(ledger, filter))).map(({ runId }) => ids.indexOf(runId) + 1)
    for (const filter of [
      { statuses: ['done'] as const },
      { agent: 'assistant' },
      { tool: 'book_seat' },
      { outcome: 'success' } as const,
      { since: 0 },
      { reason: 'answered' } as const,
      { startedSince: 0 },
      { roots: true },
    ])
      expect(await listed(filter)).toEqual([3, 2, 1])
    expect(await listed({ since: 0, before: ids[2]!, limit: 1 })).toEqual([2])
    expect(await listed({ since: 0, limit: 0 })).toEqual([])
    expect(reported).toEqual([])
    expect(await listed({ limit: 2 })).toEqual([3, 2])
    expect(reported).toEqual(['runs'])
  })

  it.each([memoryLedger, () => sqliteLedger(emptyLedgerFile())])(
    'begins after a run that is there, and tells of one that is',
    async (open) => {
      const ledger = open()
      onTestFinished(() => ledger.close())
      const runId = await recordRun(ledger, 1)
      const unknown = sampleRunId(9)
      for (const filter of [{ before: unknown }, { before: unknown, since: 0 }])
        await expect(Array.fromAsync(readRunSummaries(ledger, filter))).rejects.toThrow(RunNotFoundError)
      await expect(readRunSummary(ledger, unknown)).rejects.toThrow(RunNotFoundError)
      expect(await readRunSummary(ledger, runId)).toMatchObject({
        runId,
        status: 'done',
        turns: 2,
        toolCalls: 2,
      })
    },
  )
})
