import type { RunId } from '@tallystick/core'
import type { LedgerStats, ListedRun } from '@tallystick/ledger'
import { ledgerStats } from '@tallystick/ledger'
import type { CommandContext } from '../../command/command-context.ts'
import { commandLine } from '../../command/command-context.ts'
import type { ExitCode } from '../../command/exit-code.ts'
import { isDrivenSomewhere } from '../../ledger/open-ledger.ts'
import { isReadable, toldRun, UnreadableRuns, type ToldRun } from '../../runs/run-row.ts'
import { withSummaries, type ToldLedger } from '../../ledger/with-summaries.ts'
import { nextCommand } from '../../view/run/next-command.ts'
import { counted } from '../../view/text/run-ending.ts'
import { runStatuses, statusText, type RunStatus } from '../../runs/run-status.ts'
import {
  byAgentAndModel,
  byDay,
  daysText,
  sessionsText,
  spendingText,
} from '../../view/list/spending-table.ts'
import type { statsParts } from '../../view/list/stats-parts.ts'
import { table } from '../../view/text/table.ts'
import { timeText } from '../../view/text/time-text.ts'

/** What `stats` was given. */
export interface StatsOptions {
  readonly ledger: string
  /** How many days back ends and costs are counted. Default 7. */
  readonly days?: number
  /** What else costs are told by. */
  readonly by?: (typeof statsParts)[number]
}

const dayMs = 24 * 60 * 60 * 1000
const daysDefault = 7
const statusCharactersMax = 200

/** So many runs of a kind, and so many sessions, are named: to people, and to programs. */
const listedMax = { people: 20, programs: 1_000 }

/** What a ledger says of its runs, with where each of those that are named stands. */
interface ToldStats {
  readonly runs: Readonly<Record<(typeof runStatuses)[number], number>>
  readonly stats: LedgerStats
  readonly suspended: readonly ToldRun[]
  readonly unfinished: readonly ToldRun[]
  readonly failed: readonly ToldRun[]
}

/** `stats`: which runs wait and for what, which ended badly and why, and what the last days cost by agent and model. */
export function stats(given: CommandContext, options: StatsOptions): Promise<ExitCode> {
  const { ledger: ledgerPath, days = daysDefault } = options
  const isDriven = isDrivenSomewhere(ledgerPath)
  return withSummaries(given, ledgerPath, async (told) => {
    const { context } = told
    const found = await toldStats(told, context.now() - days * dayMs, isDriven)
    const unreadable = new UnreadableRuns(context)
    for (const run of found.stats.unreadable) unreadable.hear(run)
    await context.print(
      context.json
        ? `${JSON.stringify(dataOf(found, { ...options, days }))}\n`
        : textOf(found, { ...options, days }, context),
    )
    return unreadable.exitCode
  })
}

async function toldStats(
  { ledger, options, context }: ToldLedger,
  since: number,
  isDriven: boolean,
): Promise<ToldStats> {
  const max = listedMax[context.json ? 'programs' : 'people']
  const found = await ledgerStats(ledger, { since, listedMax: max }, options)
  const told = async (runs: readonly ListedRun[]): Promise<readonly ToldRun[]> => {
    const all: ToldRun[] = []
    for (const run of runs) if (isReadable(run)) all.push(await toldRun(ledger, run, isDriven))
    return all
  }
  const { done, failed, suspended, unfinished, unreadable } = found.counts
  const [inFlight, interrupted] = isDriven ? [unfinished, 0] : [0, unfinished]
  return {
    runs: { done: done + failed, suspended, in_flight: inFlight, interrupted, unreadable },
    stats: found,
    suspended: await told(found.suspended),
    unfinished: await told(found.unfinished),
    failed: await told(found.failed),
  }
}

type Asked = StatsOptions & { readonly days: number }

function dataOf({ runs, stats: found, ...named }: ToldStats, { days, by }: Asked): object {
  const [suspended, unfinished, failed] = [named.suspended, named.unfinished, named.failed].map((told) =>
    told.map(notedData),
  )
  return {
    ...{ days, since: timeText(found.since), runs, suspended, unfinished, failed },
    spending: byAgentAndModel(found.spending),
    ...(by === 'day' && { byDay: byDay(found.spending) }),
    ...(by === 'session' && { bySession: found.sessions.map(sessionData) }),
  }
}

function sessionData({ startedAt, lastAt, ...session }: LedgerStats['sessions'][number]): object {
  return { ...session, startedAt: timeText(startedAt), lastEventAt: timeText(lastAt) }
}

function notedData({ summary, standing }: ToldRun): RunStatus & {
  readonly runId: RunId
  readonly agent: string
  readonly at: string
} {
  const { runId, agent, lastAt } = summary
  return { runId, agent, ...standing, at: timeText(lastAt) }
}

function textOf({ runs, stats: found, ...named }: ToldStats, asked: Asked, context: CommandContext): string {
  const { ledger: ledgerPath, days, by } = asked
  const counts = runStatuses.filter((status) => runs[status] > 0).map((status) => `${runs[status]} ${status}`)
  const lately = `in the last ${counted(days, 'day')}`
  const runsOf = (told: readonly ToldRun[], ...more: readonly string[]): string =>
    runsText(told, context, ledgerPath) +
    moreText(told, commandLine(context.programName, 'list', ledgerPath, ...more))
  const { suspended, unfinished, failed } = named
  const underWay = runs.in_flight > 0 ? 'in_flight' : 'interrupted'
  return [
    `runs: ${counts.join(', ') || 'none'}\n`,
    section('suspended', runsOf(suspended, '--status', 'suspended')),
    section('in flight or interrupted', runsOf(unfinished, '--status', underWay)),
    section(`ended badly ${lately}`, runsOf(failed, '--status', 'failed', '--since', timeText(found.since))),
    section(`model calls ${lately}`, spendingText(byAgentAndModel(found.spending))),
    ...(by === 'day' ? [section(`model calls ${lately}, by day`, daysText(byDay(found.spending)))] : []),
    ...(by === 'session' ? [section(`sessions ${lately}`, sessionsText(found.sessions))] : []),
  ].join('\n')
}

function section(title: string, text: string): string {
  return `${title}:${text === '' ? ' none' : `\n${text.trimEnd().replaceAll(/^/gm, '  ')}`}\n`
}

/** A line a run, and under it what takes it further. */
function runsText(runs: readonly ToldRun[], { programName }: CommandContext, ledgerPath: string): string {
  const lines = table(
    runs.map(({ summary: { runId, agent, lastAt }, standing }) => [
      ...[runId, agent, timeText(lastAt), statusText(standing, statusCharactersMax)],
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
function moreText(told: readonly ToldRun[], list: string): string {
  return told.length < listedMax.people ? '' : `… all of them: ${list}\n`
}
