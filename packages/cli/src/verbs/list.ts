import type { Ledger, RunId } from '@tallystick/core'
import { isRunDriven, omitUndefined } from '@tallystick/core/internal'
import { type Outcome, outcomes } from '@tallystick/core/vocabulary'
import {
  fitsFilter,
  type ListedRun,
  type RunStatus,
  runSummaries,
  type RunSummary,
  runSummary,
  type SummaryFilter,
} from '@tallystick/ledger'
import { type Command, Option } from 'commander'
import { type GivenMoment, moment, momentAt, onLedger, wholeNumber } from '../command/arguments.ts'
import { type CommandContext, commandLine } from '../command/context.ts'
import type { ExitCode } from '../command/exit-code.ts'
import { timeText } from '../command/text.ts'
import { findRun, inputTexts } from '../runs/find-run.ts'
import { type SummarizedLedger, withLedger, withSummaries } from '../runs/open-ledger.ts'
import { isReadable, listStatuses, runRow, UnreadableRuns } from '../runs/run-status.ts'
import type { Done } from '../verbs.ts'
import { type ListedRunRow, nextCommand, RunTable, worstText } from '../view/run-table.ts'

/** What `list` was given. */
export interface ListOptions {
  readonly ledger: string
  /** The runs of this session only, with their child runs. */
  readonly session?: string
  /** Only runs of these statuses. */
  readonly status?: (typeof listStatuses)[number]
  /** The runs in which this agent has, or had, the conversation only. */
  readonly agent?: string
  /** The runs with a call of this tool only, and with a call that ended so. */
  readonly tool?: string
  readonly outcome?: Outcome
  /** The runs with an event since then only. */
  readonly since?: GivenMoment
  /** Only runs that come after this one in the list. */
  readonly before?: string
  /** At most so many; on a terminal a page unless given, elsewhere all. */
  readonly limit?: number
}

/** A page on a terminal. */
const pageRuns = 50

/** So many runs that wait are shown with what continues them. */
const maxNextShown = 3

/** Declares what `list` takes. */
export function declareList(verb: Command, context: CommandContext, done: Done): void {
  onLedger(verb, 'list the runs, the newest first, and under each its child runs')
    .option('--session <id>', 'only runs of this session')
    .addOption(new Option('--status <status>', 'only runs of this status').choices(listStatuses))
    .option('--agent <name>', 'only runs in which this agent is or was active')
    .option('--tool <name>', 'only runs with a call of this tool')
    .addOption(new Option('--outcome <outcome>', 'only runs with a call that ended so').choices(outcomes))
    .option('--since <when>', 'only runs with an event since then: 12h, 3d, 2026-06-30', moment)
    .option('--before <run>', 'only runs that the list shows after this one: the next page')
    .option('--limit <n>', 'at most this many (default: 50 on a terminal, elsewhere all)', wholeNumber)
    .action(async (ledger: string, options: Omit<ListOptions, 'ledger'>) => {
      done(await list(context, { ledger, ...options }))
    })
}

/**
 * `list`: a line a run, the newest first, and under each its child runs. With `--json` a JSON object a line. A
 * run that cannot be read has a line as well, with the status `unreadable`.
 */
export function list(given: CommandContext, options: ListOptions): Promise<ExitCode> {
  const { ledger: ledgerPath } = options
  return withRuns(given, options, async (summarized) => {
    const { context, ledger } = summarized
    const unreadable = new UnreadableRuns(context)
    const output = context.json ? new JsonLines(context) : new Lines(context, ledgerPath)
    const { limit = context.isRead ? pageRuns : Infinity } = options
    let listed = 0
    let last: RunId | undefined
    let isMore = false
    // One more is asked for, to know whether there is one.
    for await (const { run, input } of withInputs(summarized, options, limit + 1)) {
      if ((isMore = listed === limit)) break
      listed++
      last = run.runId
      if (isReadable(run)) await output.add({ ...(await runRow(ledger, run)), input })
      else {
        unreadable.report(run)
        await output.addUnreadable(run)
      }
    }
    await output.end()
    if (listed === 0 && !context.json) context.say(noneText(options))
    if (isMore && last !== undefined && context.isRead) context.say(moreText(context, options, last))
    return unreadable.exitCode
  })
}

/** So many runs are looked up at once. */
const runsPerPart = 64

/** The first runs that are asked for, up to `limit` of them, each with what it was begun with. */
async function* withInputs(
  summarized: SummarizedLedger,
  options: ListOptions,
  limit: number,
): AsyncGenerator<{ readonly run: ListedRun; readonly input: string }> {
  let part: ListedRun[] = []
  let left = limit
  for await (const run of runsFor(summarized, options)) {
    part.push(run)
    if (--left <= 0) break
    if (part.length < runsPerPart) continue
    yield* partWithInputs(summarized, part)
    part = []
  }
  yield* partWithInputs(summarized, part)
}

async function* partWithInputs(
  { ledger }: SummarizedLedger,
  runs: readonly ListedRun[],
): AsyncGenerator<{ readonly run: ListedRun; readonly input: string }> {
  const runIds = runs.filter(isReadable).map(({ runId }) => runId)
  const inputs = await inputTexts(ledger, runIds)
  for (const run of runs) yield { run, input: inputs.get(run.runId) ?? '' }
}

/** What is asked of one run after the other needs nothing that is kept beside them. */
function withRuns(
  context: CommandContext,
  { ledger: ledgerPath, session, status, agent, tool, outcome, since }: ListOptions,
  use: (row: SummarizedLedger) => Promise<ExitCode>,
): Promise<ExitCode> {
  const isOfAll = session === undefined && (status ?? agent ?? tool ?? outcome ?? since) !== undefined
  if (isOfAll) return withSummaries(context, ledgerPath, use)
  return withLedger(ledgerPath, 'read', (ledger) => use({ ledger, context, options: {} }))
}

/** Where runs are listed. */
interface Output {
  add(run: ListedRunRow): Promise<void>
  addUnreadable(run: Exclude<ListedRun, RunSummary>): Promise<void>
  end(): Promise<void>
}

class JsonLines implements Output {
  readonly #print: CommandContext['print']

  constructor({ print }: CommandContext) {
    this.#print = print
  }

  add(run: ListedRunRow): Promise<void> {
    return this.#print(`${JSON.stringify(dataOf(run))}\n`)
  }

  addUnreadable({ runId, message: detail }: Exclude<ListedRun, RunSummary>): Promise<void> {
    return this.#print(`${JSON.stringify({ runId, status: 'unreadable', detail })}\n`)
  }

  async end(): Promise<void> {
    // Each line is complete.
  }
}

class Lines implements Output {
  readonly #context: CommandContext
  readonly #ledgerPath: string
  readonly #table: RunTable
  readonly #next: string[] = []

  constructor(context: CommandContext, ledgerPath: string) {
    this.#context = context
    this.#ledgerPath = ledgerPath
    this.#table = new RunTable(context.print, context.columns)
  }

  async add(run: ListedRunRow): Promise<void> {
    const { programName } = this.#context
    const next = nextCommand(run, { programName, ledgerPath: this.#ledgerPath })
    if (next !== undefined && !this.#next.includes(next)) this.#next.push(next)
    await this.#table.add(run)
  }

  addUnreadable({ runId }: Exclude<ListedRun, RunSummary>): Promise<void> {
    return this.#table.addUnreadable(runId)
  }

  async end(): Promise<void> {
    await this.#table.end()
    const { isRead, say } = this.#context
    if (!isRead || this.#next.length === 0) return
    const shown = this.#next.slice(0, maxNextShown).map((next) => `  ${next}`)
    say(
      [
        'What continues those that wait:',
        ...shown,
        ...(this.#next.length > maxNextShown ? ['  …'] : []),
      ].join('\n'),
    )
  }
}

/** The runs that are asked for, in the order of the list. */
async function* runsFor(summarized: SummarizedLedger, given: ListOptions): AsyncGenerator<ListedRun> {
  for await (const run of summariesFor(summarized, given)) {
    if (await fitsDriver(summarized, given.status, run)) yield run
  }
}

/** Who drives a run is no part of its summary. */
async function fitsDriver(
  { ledger }: SummarizedLedger,
  status: ListOptions['status'],
  { runId }: ListedRun,
): Promise<boolean> {
  if (status !== 'under_way' && status !== 'interrupted') return true
  return (await isRunDriven(ledger, runId)) === (status === 'under_way')
}

async function* summariesFor(
  { ledger, options, context }: SummarizedLedger,
  given: ListOptions,
): AsyncGenerator<ListedRun> {
  const { session, agent, tool, outcome, since, before, ledger: ledgerPath } = given
  const statuses = statusesOf(given.status)
  const { programName } = context
  const filter: SummaryFilter = {
    ...(statuses && { statuses }),
    ...omitUndefined({ agent, tool, outcome }),
    ...(since && { since: momentAt(since, context.now()) }),
    ...(before !== undefined && { before: await findRun(ledger, before, { programName, ledgerPath }) }),
  }
  if (session === undefined) return yield* runSummaries(ledger, filter, options)
  const { before: from } = filter
  const ofSession = { sessionId: session, ...(from !== undefined && { before: from }) }
  for await (const run of runSummaries(ledger, ofSession, options)) {
    for await (const each of withChildren(ledger, run)) if (fitsFilter(each, filter)) yield each
  }
}

/** The statuses in summaries, which do not say whether a process drives a run. */
function statusesOf(status: ListOptions['status']): readonly RunStatus[] | undefined {
  switch (status) {
    case undefined:
      return undefined
    case 'done':
      return ['done', 'failed']
    case 'under_way':
    case 'interrupted':
      return ['unfinished']
    case 'failed':
    case 'suspended':
    case 'unreadable':
      return [status]
  }
}

/** A run of a session, and after it its child runs. A call can have been started without its child run. */
async function* withChildren(ledger: Ledger, run: ListedRun): AsyncGenerator<ListedRun> {
  yield run
  if (!isReadable(run)) return
  for (const child of run.childRunIds) {
    if ((await ledger.head(child)) !== undefined) yield* withChildren(ledger, await runSummary(ledger, child))
  }
}

function noneText({ session, status, agent, tool, outcome, since, before }: ListOptions): string {
  const which = [
    ...(session === undefined ? [] : [`of session ${session}`]),
    ...(agent === undefined ? [] : [`of agent ${agent}`]),
    ...(status === undefined ? [] : [`that are ${status}`]),
    ...((tool ?? outcome) === undefined
      ? []
      : [
          `with a call${tool === undefined ? '' : ` of ${tool}`}${outcome === undefined ? '' : ` that ended as ${outcome}`}`,
        ]),
    ...(since === undefined ? [] : [`with an event since ${since.text}`]),
    ...(before === undefined ? [] : [`after ${before}`]),
  ]
  return ['This ledger holds no runs', ...which].join(' ') + '.'
}

/** How the next page is asked for. */
function moreText({ programName }: CommandContext, options: ListOptions, last: RunId): string {
  const { ledger, session, status, agent, tool, outcome, since, limit } = options
  const words = [
    ...(session === undefined ? [] : ['--session', session]),
    ...(status === undefined ? [] : ['--status', status]),
    ...(agent === undefined ? [] : ['--agent', agent]),
    ...(tool === undefined ? [] : ['--tool', tool]),
    ...(outcome === undefined ? [] : ['--outcome', outcome]),
    ...(since === undefined ? [] : ['--since', since.text]),
    ...(limit === undefined ? [] : ['--limit', `${limit}`]),
  ]
  return `There are more. The next page: ${commandLine(programName, 'list', ledger, ...words, '--before', last)}`
}

function dataOf({ summary, statusView, waits, input }: ListedRunRow): object {
  const { runId, agent, agents, sessionId, sessionPlace, parent, seq, startedAt, lastAt } = summary
  const { turns, toolCalls, children, usage, costUsd, calls, failedAttempts } = summary
  return {
    runId,
    agent,
    agents,
    sessionId,
    sessionPlace,
    parent,
    ...statusView,
    ...(statusView.status === 'suspended' && { waits: { ...waits, limit: summary.waits.limit } }),
    input,
    turns,
    toolCalls,
    children,
    usage,
    costUsd,
    calls,
    failedAttempts,
    durationMs: lastAt - startedAt,
    worst: worstText(summary) || undefined,
    startedAt: timeText(startedAt),
    lastEventAt: timeText(lastAt),
    seq,
  }
}
