import { isRunDriven } from '@tallystick/core/internal'
import { addUsage } from '@tallystick/core/vocabulary'
import {
  type DaySpending,
  type LedgerStats,
  readLedgerStats,
  type ListedRun,
  readRunSummaries,
  type SessionTotals,
} from '@tallystick/ledger'
import { type Command, Option } from '@commander-js/extra-typings'
import { declareLedger, parsePositiveNumber } from '../command/arguments.ts'
import { type CommandContext, formatCommand, printEither } from '../command/context.ts'
import { formatCost, formatCount, formatTable, formatTime } from '../command/text.ts'
import { type SummarizedLedger, UnreadableRuns, withSummaries } from '../runs/open-ledger.ts'
import { isReadable, readRow, type RunRow, runStatuses, formatStatus } from '../runs/run-status.ts'
import type { Done } from '../verbs.ts'
import { findNextCommand } from '../view/run-table.ts'

/** The usage of one model by one agent. */
export type AgentSpending = Omit<DaySpending, 'day'>

/** The same on one day, such as `2026-06-30`, in UTC. */
export type DatedSpending = AgentSpending & { readonly day: string }

/** Adds up the days for each agent and model: the dearest first, then those with most tokens. */
export function groupByAgentAndModel(spending: readonly DaySpending[]): readonly AgentSpending[] {
  const lines = Map.groupBy(spending, ({ agent, model }) =>
    JSON.stringify([agent, model.provider, model.api, model.modelId]),
  )
  return [...lines.values()]
    .map((days) => days.map(({ day: _day, ...of }) => of).reduce(addSpending))
    .sort(
      (a, b) =>
        (b.costUsd ?? 0) - (a.costUsd ?? 0) ||
        countTokens(b) - countTokens(a) ||
        b.calls - a.calls ||
        (a.agent < b.agent ? -1 : 1),
    )
}

/** The last day first. */
export function sortByDay(spending: readonly DaySpending[]): readonly DatedSpending[] {
  return spending
    .toSorted((a, b) => b.day - a.day || (a.agent < b.agent ? -1 : 1))
    .map(({ day, ...of }) => ({ day: formatTime(day * dayMs).slice(0, 10), ...of }))
}

const spendingHeads = ['AGENT', 'MODEL', 'CALLS', 'TOKENS IN', 'TOKENS OUT', 'COST']

/** A table with its total. */
export function formatSpending(spending: readonly AgentSpending[]): string {
  if (spending.length === 0) return ''
  const [, , ...total] = toCells(spending.reduce(addSpending))
  return formatTable([spendingHeads, ...spending.map(toCells), ['all', '', ...total]])
}

export function formatDays(spending: readonly DatedSpending[]): string {
  if (spending.length === 0) return ''
  return formatTable([['DAY', ...spendingHeads], ...spending.map((line) => [line.day, ...toCells(line)])])
}

export function formatSessions(sessions: readonly SessionTotals[]): string {
  if (sessions.length === 0) return ''
  const heads = ['SESSION', 'RUNS', 'TURNS', 'CALLS', 'TOKENS IN', 'TOKENS OUT', 'LAST EVENT', 'COST']
  return formatTable([
    heads,
    ...sessions.map(({ sessionId, runs, turns, toolCalls, usage, lastAt, costUsd }) => [
      sessionId,
      `${runs}`,
      `${turns}`,
      `${toolCalls}`,
      `${usage.inputTokens ?? 0}`,
      `${usage.outputTokens ?? 0}`,
      formatTime(lastAt),
      formatCost(costUsd),
    ]),
  ])
}

function toCells({ agent, model, calls, usage, costUsd, unpriced }: AgentSpending): readonly string[] {
  const without = unpriced === 0 ? '' : `${formatCount(unpriced, 'call')} without a price`
  const cost = [formatCost(costUsd), without].filter((text) => text !== '').join(' and ')
  const tokens = [usage.inputTokens ?? 0, usage.outputTokens ?? 0]
  return [agent, `${model.provider} ${model.modelId}`, ...[calls, ...tokens].map(String), cost]
}

function addSpending(left: AgentSpending, right: AgentSpending): AgentSpending {
  const costs = [left.costUsd, right.costUsd].filter((cost) => cost !== undefined)
  return {
    agent: left.agent,
    model: left.model,
    calls: left.calls + right.calls,
    usage: addUsage(left.usage, right.usage),
    ...(costs.length > 0 && { costUsd: costs.reduce((sum, cost) => sum + cost, 0) }),
    unpriced: left.unpriced + right.unpriced,
  }
}

function countTokens({ usage }: AgentSpending): number {
  return (usage.inputTokens ?? 0) + (usage.outputTokens ?? 0)
}

interface StatsOptions {
  /** Failures and costs of this many days are counted. */
  readonly days: number
  readonly by?: 'day' | 'session'
}

const dayMs = 24 * 60 * 60 * 1000
const maxStatusCharacters = 200

/** At most this many runs of a kind, and sessions, are named: to people, and to programs. */
const maxListed = { people: 20, programs: 1_000 }

/** The totals of a ledger, with the status of each run that they name. */
interface StatsRows {
  readonly runs: Readonly<Record<(typeof runStatuses)[number], number>>
  readonly stats: LedgerStats
  readonly suspended: readonly RunRow[]
  readonly unfinished: readonly RunRow[]
  readonly failed: readonly RunRow[]
}

/** Declares `stats`: which runs wait and for what, which ended badly and why, and what agents cost. */
export function declareStats(verb: Command, context: CommandContext, done: Done): void {
  declareLedger(verb, 'show which runs wait, which failed and why, and what the last days cost')
    .option('--days <n>', 'count failures and costs of this many days', parsePositiveNumber, 7)
    .addOption(
      new Option('--by <part>', 'also show costs by day, or totals by session').choices(['day', 'session']),
    )
    .action(async (ledgerPath, options) => {
      done(
        await withSummaries(context, ledgerPath, async (opened) => {
          const rows = await readStats(opened, context.now() - options.days * dayMs)
          const unreadable = new UnreadableRuns(opened.context)
          for (const run of rows.stats.unreadable) unreadable.report(run)
          const text = formatStats(rows, ledgerPath, options, context)
          await printEither(opened.context, toData(rows, options), text)
          return unreadable.exitCode
        }),
      )
    })
}

async function readStats({ ledger, options, context }: SummarizedLedger, since: number): Promise<StatsRows> {
  const max = maxListed[context.json ? 'programs' : 'people']
  const found = await readLedgerStats(ledger, { since, maxListed: max }, options)
  const rows = async (runs: readonly ListedRun[]): Promise<readonly RunRow[]> => {
    const all: RunRow[] = []
    for (const run of runs) if (isReadable(run)) all.push(await readRow(ledger, run))
    return all
  }
  const { done, failed, suspended, unfinished, unreadable } = found.counts
  let underWay = 0
  if (unfinished > 0) {
    for await (const { runId } of readRunSummaries(ledger, { statuses: ['unfinished'] }, options))
      if (await isRunDriven(ledger, runId)) underWay++
  }
  return {
    runs: {
      done: done + failed,
      suspended,
      under_way: underWay,
      interrupted: unfinished - underWay,
      unreadable,
    },
    stats: found,
    suspended: await rows(found.suspended),
    unfinished: await rows(found.unfinished),
    failed: await rows(found.failed),
  }
}

function toData({ runs, stats: found, ...named }: StatsRows, { days, by }: StatsOptions): object {
  const [suspended, unfinished, failed] = [named.suspended, named.unfinished, named.failed].map((rows) =>
    rows.map(({ summary: { runId, agent, lastAt }, statusView }) => ({
      ...{ runId, agent, ...statusView },
      at: formatTime(lastAt),
    })),
  )
  return {
    days,
    since: formatTime(found.since),
    runs,
    suspended,
    unfinished,
    failed,
    spending: groupByAgentAndModel(found.spending),
    ...(by === 'day' && { byDay: sortByDay(found.spending) }),
    ...(by === 'session' && {
      bySession: found.sessions.map(({ startedAt, lastAt, ...session }) => ({
        ...session,
        startedAt: formatTime(startedAt),
        lastEventAt: formatTime(lastAt),
      })),
    }),
  }
}

function formatStats(
  { runs, stats: found, ...named }: StatsRows,
  ledgerPath: string,
  { days, by }: StatsOptions,
  context: CommandContext,
): string {
  const counts = runStatuses.filter((status) => runs[status] > 0).map((status) => `${runs[status]} ${status}`)
  const lately = `in the last ${formatCount(days, 'day')}`
  const listRuns = (rows: readonly RunRow[], ...words: readonly string[]): string => {
    const list = formatCommand(context.programName, 'list', ledgerPath, ...words)
    const more = rows.length < maxListed.people ? '' : `… all of them: ${list}\n`
    return formatRuns(rows, context, ledgerPath) + more
  }
  const { suspended, unfinished, failed } = named
  const underWay = runs.under_way > 0 ? 'under_way' : 'interrupted'
  return [
    `runs: ${counts.join(', ') || 'none'}\n`,
    formatSection('suspended', listRuns(suspended, '--status', 'suspended')),
    formatSection('under way or interrupted', listRuns(unfinished, '--status', underWay)),
    formatSection(
      `ended badly ${lately}`,
      listRuns(failed, '--status', 'failed', '--since', formatTime(found.since)),
    ),
    formatSection(`model calls ${lately}`, formatSpending(groupByAgentAndModel(found.spending))),
    ...(by === 'day'
      ? [formatSection(`model calls ${lately}, by day`, formatDays(sortByDay(found.spending)))]
      : []),
    ...(by === 'session' ? [formatSection(`sessions ${lately}`, formatSessions(found.sessions))] : []),
  ].join('\n')
}

function formatSection(title: string, text: string): string {
  return `${title}:${text === '' ? ' none' : `\n${text.trimEnd().replaceAll(/^/gm, '  ')}`}\n`
}

/** A line a run, and under it the command that continues it. */
function formatRuns(runs: readonly RunRow[], { programName }: CommandContext, ledgerPath: string): string {
  const lines = formatTable(
    runs.map(({ summary: { runId, agent, lastAt }, statusView }) => [
      runId,
      agent,
      formatTime(lastAt),
      formatStatus(statusView, maxStatusCharacters),
    ]),
  ).split('\n')
  return runs
    .map((run, index) => {
      const next = findNextCommand(run, { programName, ledgerPath })
      return `${lines[index]}\n${next === undefined ? '' : `  ${next}\n`}`
    })
    .join('')
}
