import type { Ledger, RuntimeEvent } from '@tallystick/core'
import {
  readLedgerStats,
  countProjectionLag,
  readRunSummaries,
  readRunSummary,
  type ListedRun,
  type SummaryFilter,
} from '@tallystick/ledger'
import { expect } from 'vitest'
import { getDatabase } from '../../src/store/store.ts'
import { refreshProjections } from '../../src/projection/projections.ts'
import { toldRun, toldStats, type ToldRun } from './expected-summaries.ts'

const hourMs = 60 * 60 * 1000
const statuses = ['done', 'failed', 'suspended', 'unfinished'] as const

/**
 * Brings projections up to date, or rejects: a caller that asks for something else does without them instead. In Postgres
 * events may wait for transactions of other tests.
 */
export async function refreshed(ledger: Ledger): Promise<void> {
  do await refreshProjections(ledger, getDatabase(ledger)!, () => {})
  while ((await countProjectionLag(ledger)) !== 0)
}

/** Expects a ledger to tell of these runs, the newest first, what their events say, in every way of asking. */
export async function expectTold(
  ledger: Ledger,
  runs: readonly (readonly RuntimeEvent[])[],
  refresh: boolean,
): Promise<void> {
  const reported = runs.map(toldRun)
  const times = reported.map(({ lastAt }) => lastAt).sort((a, b) => a - b)
  const middle = times[Math.floor(times.length / 2)] ?? 0
  for (const since of [0, middle, middle + hourMs]) {
    await expectStats(ledger, runs, since, refresh)
    await expectListed(
      ledger,
      reported.filter(({ lastAt }) => lastAt >= since),
      { since },
      refresh,
    )
  }
  await expectListed(ledger, reported, {}, refresh)
  await expectListed(
    ledger,
    reported.filter(({ isChild }) => !isChild),
    { roots: true },
    refresh,
  )
  const begun = reported.map(({ startedAt }) => startedAt).sort((a, b) => a - b)
  const startedSince = begun[Math.floor(begun.length / 3)] ?? 0
  const startedUntil = (begun[Math.floor((2 * begun.length) / 3)] ?? 0) + 1
  const ofTime = reported.filter(({ startedAt }) => startedAt >= startedSince && startedAt < startedUntil)
  await expectListed(ledger, ofTime, { startedSince, startedUntil }, refresh)
  for (const reason of new Set(reported.flatMap(({ reason: each }) => each ?? []))) {
    const having = reported.filter((run) => run.reason === reason)
    await expectListed(ledger, having, { reason }, refresh)
    const both = having.filter((run) => ofTime.includes(run))
    await expectListed(ledger, both, { reason, startedSince, startedUntil }, refresh)
  }
  for (const status of statuses) {
    const havingStatus = reported.filter((run) => run.status === status)
    await expectListed(ledger, havingStatus, { statuses: [status] }, refresh)
  }
  for (const agent of new Set(reported.flatMap(({ agents }) => agents))) {
    const having = reported.filter(({ agents }) => agents.includes(agent))
    await expectListed(ledger, having, { agent }, refresh)
    await expectListed(
      ledger,
      having.filter(({ status }) => status === 'done' || status === 'failed'),
      { agent, statuses: ['failed', 'done'] },
      refresh,
    )
  }
}

async function expectStats(
  ledger: Ledger,
  runs: readonly (readonly RuntimeEvent[])[],
  since: number,
  refresh: boolean,
): Promise<void> {
  const from = Math.floor(since / hourMs) * hourMs
  const stats = await readLedgerStats(ledger, { since, maxListed: 1000 }, { refresh })
  const due = toldStats(runs, from)
  expect(stats.since).toBe(from)
  expect(stats.counts).toEqual(due.counts)
  expect(sorted(stats.spending)).toEqual(sorted(due.spending))
  expect(sorted(stats.sessions)).toEqual(sorted(due.sessions))
  const reported = runs.map(toldRun)
  const idsOf = (named: readonly { readonly runId: string }[]): readonly string[] =>
    named.map(({ runId }) => runId)
  expect(idsOf(stats.unfinished)).toEqual(idsOf(reported.filter(({ status }) => status === 'unfinished')))
  expect(idsOf(stats.failed)).toEqual(
    idsOf(reported.filter(({ status, lastAt }) => status === 'failed' && lastAt >= from)),
  )
  const atTop = runs.filter(([first]) => first?.type === 'run_started' && first.parent?.relation !== 'child')
  expect(idsOf(stats.suspended)).toEqual(
    idsOf(atTop.map(toldRun).filter(({ status }) => status === 'suspended')),
  )
}

async function expectListed(
  ledger: Ledger,
  due: readonly ToldRun[],
  filter: SummaryFilter,
  refresh: boolean,
): Promise<void> {
  const listed = await Array.fromAsync(readRunSummaries(ledger, filter, { refresh }))
  expect(listed.map(reported)).toEqual(due)
  const [first, second] = due
  if (first === undefined || second === undefined) return
  const page = { ...filter, before: first.runId as ListedRun['runId'], limit: 1 }
  expect((await Array.fromAsync(readRunSummaries(ledger, page, { refresh }))).map(reported)).toEqual([second])
  expect(reported(await readRunSummary(ledger, second.runId as ListedRun['runId']))).toEqual(second)
}

function reported(run: ListedRun): ToldRun {
  if (run.status === 'unreadable') throw new Error(`Run ${run.runId} is unreadable: ${run.message}`)
  const { runId, seq, status, agents, startedAt, lastAt, reason, waits, usage, costUsd } = run
  const isChild = run.parent?.relation === 'child'
  const approvals = waits.approvals.map(({ toolCallId }) => toolCallId)
  return { runId, seq, status, agents, startedAt, lastAt, reason, isChild, approvals, usage, costUsd }
}

function sorted<T>(items: readonly T[]): readonly T[] {
  return items.toSorted((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1))
}
