import type { RunId, Usage } from '@tallystick/core'
import { isRunDriven } from '@tallystick/core/internal'
import { addUsage, type ModelRef } from '@tallystick/core/vocabulary'
import {
  type DaySpending,
  type LedgerStats,
  ledgerStats,
  type ListedRun,
  runSummaries,
  type SessionTotals,
} from '@tallystick/ledger'
import { type Command, Option } from 'commander'
import { onLedger, positiveNumber } from '../command/arguments.ts'
import { type CommandContext, commandLine } from '../command/context.ts'
import type { ExitCode } from '../command/exit-code.ts'
import { counted, table, timeText } from '../command/text.ts'
import { type SummarizedLedger, withSummaries } from '../runs/open-ledger.ts'
import {
  isReadable,
  runRow,
  type RunRow,
  runStatuses,
  type RunStatusView,
  statusText,
  UnreadableRuns,
} from '../runs/run-status.ts'
import type { Done } from '../verbs.ts'
import { nextCommand } from '../view/run-table.ts'

/** What one agent took of one model. */
export interface AgentSpending {
  readonly agent: string
  readonly model: ModelRef
  readonly calls: number
  readonly usage: Usage
  /** US dollars for the calls that had a price; absent where none had. */
  readonly costUsd?: number
  /** Calls that had no price. */
  readonly unpriced: number
}

/** The same on one day. */
export interface DatedSpending extends AgentSpending {
  /** Such as `2026-06-30`, in UTC. */
  readonly day: string
}

/** What each agent took of each model; the dearest first, then those with most tokens. */
export function byAgentAndModel(spending: readonly DaySpending[]): readonly AgentSpending[] {
  const lines = Map.groupBy(spending, ({ agent, model }) =>
    JSON.stringify([agent, model.provider, model.api, model.modelId]),
  )
  return [...lines.values()]
    .map((days) => days.map(({ day: _day, ...of }) => of).reduce(added))
    .sort(
      (a, b) =>
        (b.costUsd ?? 0) - (a.costUsd ?? 0) ||
        tokensOf(b) - tokensOf(a) ||
        b.calls - a.calls ||
        (a.agent < b.agent ? -1 : 1),
    )
}

/** What each agent took of each model on each day, the last day first. */
export function byDay(spending: readonly DaySpending[]): readonly DatedSpending[] {
  return spending
    .toSorted((a, b) => b.day - a.day || (a.agent < b.agent ? -1 : 1))
    .map(({ day, ...of }) => ({ day: timeText(day * dayMs).slice(0, 10), ...of }))
}

/** A table of what agents took of models, with the sum of it. */
export function spendingText(spending: readonly AgentSpending[]): string {
  if (spending.length === 0) return ''
  const heads = ['AGENT', 'MODEL', 'CALLS', 'TOKENS IN', 'TOKENS OUT', 'COST']
  const rows = spending.map((line) => [line.agent, modelText(line.model), ...spentCells(line)])
  return table([heads, ...rows, ['all', '', ...spentCells(spending.reduce(added))]])
}

/** The same, day by day. */
export function daysText(spending: readonly DatedSpending[]): string {
  if (spending.length === 0) return ''
  const heads = ['DAY', 'AGENT', 'MODEL', 'CALLS', 'TOKENS IN', 'TOKENS OUT', 'COST']
  return table([
    heads,
    ...spending.map((line) => [line.day, line.agent, modelText(line.model), ...spentCells(line)]),
  ])
}

/** A table of what sessions come to. */
export function sessionsText(sessions: readonly SessionTotals[]): string {
  if (sessions.length === 0) return ''
  const heads = ['SESSION', 'RUNS', 'TURNS', 'CALLS', 'TOKENS IN', 'TOKENS OUT', 'LAST EVENT', 'COST']
  return table([
    heads,
    ...sessions.map(({ sessionId, runs, turns, toolCalls, usage, lastAt, costUsd }) => [
      sessionId,
      `${runs}`,
      `${turns}`,
      `${toolCalls}`,
      `${usage.inputTokens ?? 0}`,
      `${usage.outputTokens ?? 0}`,
      timeText(lastAt),
      costUsd === undefined ? '' : `$${costUsd.toFixed(4)}`,
    ]),
  ])
}

function modelText({ provider, modelId }: ModelRef): string {
  return `${provider} ${modelId}`
}

function spentCells({ calls, usage, ...cost }: Omit<AgentSpending, 'agent' | 'model'>): readonly string[] {
  return [`${calls}`, `${usage.inputTokens ?? 0}`, `${usage.outputTokens ?? 0}`, costText(cost)]
}

function added(left: AgentSpending, right: AgentSpending): AgentSpending {
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

function tokensOf({ usage }: AgentSpending): number {
  return (usage.inputTokens ?? 0) + (usage.outputTokens ?? 0)
}

/** A cost is that of the calls with a price; how many had none is said. */
function costText({ costUsd, unpriced }: Pick<AgentSpending, 'costUsd' | 'unpriced'>): string {
  const without = unpriced === 0 ? '' : `${counted(unpriced, 'call')} without a price`
  if (costUsd === undefined) return without
  return `$${costUsd.toFixed(4)}${without === '' ? '' : ` and ${without}`}`
}

/** By what costs can be listed, beside agent and model. */
const statsParts = ['day', 'session'] as const

/** What `stats` was given. */
export interface StatsOptions {
  readonly ledger: string
  /** How many days back ends and costs are counted. Default 7. */
  readonly days?: number
  /** By what else costs are listed. */
  readonly by?: (typeof statsParts)[number]
}

const dayMs = 24 * 60 * 60 * 1000
const daysDefault = 7
const maxStatusCharacters = 200

/** So many runs of a kind, and so many sessions, are named: to people, and to programs. */
const maxListed = { people: 20, programs: 1_000 }

/** The totals of a ledger, with the status of each run that they name. */
interface StatsRows {
  readonly runs: Readonly<Record<(typeof runStatuses)[number], number>>
  readonly stats: LedgerStats
  readonly suspended: readonly RunRow[]
  readonly unfinished: readonly RunRow[]
  readonly failed: readonly RunRow[]
}

/** Declares what `stats` takes. */
export function declareStats(verb: Command, context: CommandContext, done: Done): void {
  onLedger(verb, 'show which runs wait, which failed and why, and what the last days cost')
    .option('--days <n>', 'count failures and costs of this many days (default: 7)', positiveNumber)
    .addOption(new Option('--by <part>', 'also show costs by day, or totals by session').choices(statsParts))
    .action(async (ledger: string, options: Omit<StatsOptions, 'ledger'>) => {
      done(await stats(context, { ledger, ...options }))
    })
}

/** `stats`: which runs wait and for what, which ended badly and why, and what the last days cost by agent and model. */
export function stats(given: CommandContext, options: StatsOptions): Promise<ExitCode> {
  const { ledger: ledgerPath, days = daysDefault } = options
  return withSummaries(given, ledgerPath, async (rows) => {
    const { context } = rows
    const found = await statsRows(rows, context.now() - days * dayMs)
    const unreadable = new UnreadableRuns(context)
    for (const run of found.stats.unreadable) unreadable.report(run)
    await context.print(
      context.json
        ? `${JSON.stringify(dataOf(found, { ...options, days }))}\n`
        : textOf(found, { ...options, days }, context),
    )
    return unreadable.exitCode
  })
}

async function statsRows({ ledger, options, context }: SummarizedLedger, since: number): Promise<StatsRows> {
  const max = maxListed[context.json ? 'programs' : 'people']
  const found = await ledgerStats(ledger, { since, maxListed: max }, options)
  const rows = async (runs: readonly ListedRun[]): Promise<readonly RunRow[]> => {
    const all: RunRow[] = []
    for (const run of runs) if (isReadable(run)) all.push(await runRow(ledger, run))
    return all
  }
  const { done, failed, suspended, unfinished, unreadable } = found.counts
  let underWay = 0
  if (unfinished > 0) {
    for await (const { runId } of runSummaries(ledger, { statuses: ['unfinished'] }, options))
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

type Asked = StatsOptions & { readonly days: number }

function dataOf({ runs, stats: found, ...named }: StatsRows, { days, by }: Asked): object {
  const [suspended, unfinished, failed] = [named.suspended, named.unfinished, named.failed].map((rows) =>
    rows.map(notedData),
  )
  return {
    days,
    since: timeText(found.since),
    runs,
    suspended,
    unfinished,
    failed,
    spending: byAgentAndModel(found.spending),
    ...(by === 'day' && { byDay: byDay(found.spending) }),
    ...(by === 'session' && { bySession: found.sessions.map(sessionData) }),
  }
}

function sessionData({ startedAt, lastAt, ...session }: LedgerStats['sessions'][number]): object {
  return { ...session, startedAt: timeText(startedAt), lastEventAt: timeText(lastAt) }
}

function notedData({ summary, statusView }: RunRow): RunStatusView & {
  readonly runId: RunId
  readonly agent: string
  readonly at: string
} {
  const { runId, agent, lastAt } = summary
  return { runId, agent, ...statusView, at: timeText(lastAt) }
}

function textOf({ runs, stats: found, ...named }: StatsRows, asked: Asked, context: CommandContext): string {
  const { ledger: ledgerPath, days, by } = asked
  const counts = runStatuses.filter((status) => runs[status] > 0).map((status) => `${runs[status]} ${status}`)
  const lately = `in the last ${counted(days, 'day')}`
  const runsOf = (rows: readonly RunRow[], ...more: readonly string[]): string =>
    runsText(rows, context, ledgerPath) +
    moreText(rows, commandLine(context.programName, 'list', ledgerPath, ...more))
  const { suspended, unfinished, failed } = named
  const underWay = runs.under_way > 0 ? 'under_way' : 'interrupted'
  return [
    `runs: ${counts.join(', ') || 'none'}\n`,
    section('suspended', runsOf(suspended, '--status', 'suspended')),
    section('under way or interrupted', runsOf(unfinished, '--status', underWay)),
    section(`ended badly ${lately}`, runsOf(failed, '--status', 'failed', '--since', timeText(found.since))),
    section(`model calls ${lately}`, spendingText(byAgentAndModel(found.spending))),
    ...(by === 'day' ? [section(`model calls ${lately}, by day`, daysText(byDay(found.spending)))] : []),
    ...(by === 'session' ? [section(`sessions ${lately}`, sessionsText(found.sessions))] : []),
  ].join('\n')
}

function section(title: string, text: string): string {
  return `${title}:${text === '' ? ' none' : `\n${text.trimEnd().replaceAll(/^/gm, '  ')}`}\n`
}

/** A line a run, and under it what continues it. */
function runsText(runs: readonly RunRow[], { programName }: CommandContext, ledgerPath: string): string {
  const lines = table(
    runs.map(({ summary: { runId, agent, lastAt }, statusView }) => [
      runId,
      agent,
      timeText(lastAt),
      statusText(statusView, maxStatusCharacters),
    ]),
  ).split('\n')
  return runs
    .map((run, index) => {
      const next = nextCommand(run, { programName, ledgerPath })
      return `${lines[index]}\n${next === undefined ? '' : `  ${next}\n`}`
    })
    .join('')
}

/** Where the others are. */
function moreText(rows: readonly RunRow[], list: string): string {
  return rows.length < maxListed.people ? '' : `… all of them: ${list}\n`
}
