import type { CommandContext } from '../command-context.ts'
import { countEvents } from '../count-events.ts'
import type { ExitCode } from '../exit-code.ts'
import { isOpenSomewhere, withLedger } from '../open-ledger.ts'
import { readEachRun } from '../read-each-run.ts'
import { StatsOfRuns, type AgentSpending, type NotedRun, type Stats } from '../stats-of-runs.ts'
import { withProgress } from '../view/progress.ts'
import { counted } from '../view/run-ending.ts'
import { runStatuses, statusText } from '../view/run-status.ts'
import { table } from '../view/table.ts'

/** What `stats` was given. */
export interface StatsOptions {
  readonly ledger: string
  /** How many days back ends and costs are counted. Default 7. */
  readonly days?: number
}

const dayMs = 24 * 60 * 60 * 1000
const daysDefault = 7
const statusCharactersMax = 200

/** `stats`: which runs wait and for what, which ended badly and why, and what the last days cost by agent and model. */
export function stats(
  context: CommandContext,
  { ledger: ledgerPath, days = daysDefault }: StatsOptions,
): Promise<ExitCode> {
  const since = context.now() - days * dayMs
  const gathered = new StatsOfRuns(since, isOpenSomewhere(ledgerPath))
  return withLedger(ledgerPath, 'read', async (ledger) => {
    const exitCode = await withProgress(
      context,
      () => countEvents(ledger),
      (progress) =>
        readEachRun(progress.context, ledger, {
          read: async (runId) => progress.add(await gathered.read(ledger, runId)),
          unreadable: async () => gathered.unreadable(),
        }),
    )
    const found = gathered.stats
    await context.print(
      context.json ? `${JSON.stringify(dataOf(found, { days, since }))}\n` : textOf(found, days),
    )
    return exitCode
  })
}

function dataOf(
  { runs, suspended, unfinished, failed, spending }: Stats,
  { days, since }: { readonly days: number; readonly since: number },
): object {
  const [waiting, open, ended] = [suspended, unfinished, failed].map((noted) =>
    noted.map(({ at, ...run }) => ({ ...run, at: timeText(at) })),
  )
  return { days, since: timeText(since), runs, suspended: waiting, unfinished: open, failed: ended, spending }
}

function textOf({ runs, suspended, unfinished, failed, spending }: Stats, days: number): string {
  const counts = runStatuses.filter((status) => runs[status] > 0).map((status) => `${runs[status]} ${status}`)
  const lately = `in the last ${counted(days, 'day')}`
  return [
    `runs: ${counts.join(', ') || 'none'}\n`,
    section('suspended', runsText(suspended)),
    section('in flight or interrupted', runsText(unfinished)),
    section(`ended badly ${lately}`, runsText(failed)),
    section(`model calls ${lately}`, spendingText(spending)),
  ].join('\n')
}

function section(title: string, text: string): string {
  return `${title}:${text === '' ? ' none' : `\n${text.trimEnd().replaceAll(/^/gm, '  ')}`}\n`
}

function runsText(runs: readonly NotedRun[]): string {
  return table(
    runs.map(({ runId, agent, at, ...standing }) => [
      runId,
      agent,
      timeText(at),
      statusText(standing, statusCharactersMax),
    ]),
  )
}

function spendingText(spending: readonly AgentSpending[]): string {
  if (spending.length === 0) return ''
  const heads = ['AGENT', 'MODEL', 'CALLS', 'TOKENS IN', 'TOKENS OUT', 'COST']
  const rows = spending.map(({ agent, model, calls, usage, ...cost }) => [
    ...[agent, `${model.provider} ${model.modelId}`, `${calls}`],
    ...[`${usage.inputTokens ?? 0}`, `${usage.outputTokens ?? 0}`, costText(cost)],
  ])
  const sum = spending.reduce(
    (total, { calls, usage, costUsd, unpriced }) => ({
      calls: total.calls + calls,
      input: total.input + (usage.inputTokens ?? 0),
      output: total.output + (usage.outputTokens ?? 0),
      unpriced: total.unpriced + unpriced,
      ...((total.costUsd ?? costUsd) !== undefined && { costUsd: (total.costUsd ?? 0) + (costUsd ?? 0) }),
    }),
    { calls: 0, input: 0, output: 0, unpriced: 0 } as Sum,
  )
  return table([heads, ...rows, ['all', '', `${sum.calls}`, `${sum.input}`, `${sum.output}`, costText(sum)]])
}

interface Sum {
  readonly calls: number
  readonly input: number
  readonly output: number
  readonly unpriced: number
  readonly costUsd?: number
}

/** A cost is that of the calls with a price; how many had none is said. */
function costText({ costUsd, unpriced }: Pick<AgentSpending, 'costUsd' | 'unpriced'>): string {
  const without = unpriced === 0 ? '' : `${counted(unpriced, 'call')} without a price`
  if (costUsd === undefined) return without
  return `$${costUsd.toFixed(4)}${without === '' ? '' : ` and ${without}`}`
}

function timeText(at: number): string {
  return new Date(at).toISOString()
}
