import type { Ledger, RunId } from '@tallystick/core'
import { isRunDriven, omitUndefined } from '@tallystick/core/internal'
import { type Outcome, outcomes } from '@tallystick/core/vocabulary'
import {
  fitsFilter,
  type ListedRun,
  type RunStatus,
  readRunSummaries,
  readRunSummary,
  type SummaryFilter,
} from '@tallystick/ledger'
import { type Command, Option } from '@commander-js/extra-typings'
import {
  type GivenMoment,
  parseMoment,
  toTime,
  declareLedger,
  parseWholeNumber,
} from '../command/arguments.ts'
import { type CommandContext, formatCommand, printJson } from '../command/context.ts'
import type { ExitCode } from '../command/exit-code.ts'
import { addCondition, type Where, whereHelp } from '../command/where.ts'
import { formatTime } from '../command/text.ts'
import { findRun, readInputTexts } from '../runs/find-run.ts'
import { type SummarizedLedger, UnreadableRuns, withLedger, withSummaries } from '../runs/open-ledger.ts'
import { isReadable, listStatuses, readRow } from '../runs/run-status.ts'
import type { Done } from '../verbs.ts'
import { type ListedRunRow, findNextCommand, RunTable, formatWorst } from '../view/run-table.ts'

interface ListFilter {
  readonly session?: string
  readonly status?: (typeof listStatuses)[number]
  readonly agent?: string
  readonly tool?: string
  readonly outcome?: Outcome
  readonly where?: Where
  readonly since?: GivenMoment
  readonly before?: string
}

/** The size of a page on a terminal. */
const pageRuns = 50

/** At most this many commands that continue runs are shown. */
const maxNextShown = 3

/** Declares `list`. A run that cannot be read has a line as well, with the status `unreadable`. */
export function declareList(verb: Command, context: CommandContext, done: Done): void {
  declareLedger(verb, 'list the runs, the newest first, and under each its child runs')
    .option('--session <id>', 'only runs of this session')
    .addOption(new Option('--status <status>', 'only runs of this status').choices(listStatuses))
    .option('--agent <name>', 'only runs in which this agent is or was active')
    .option('--tool <name>', 'only runs with a call of this tool')
    .addOption(new Option('--outcome <outcome>', 'only runs with a call with this outcome').choices(outcomes))
    .option('--where <condition>', whereHelp, addCondition)
    .option('--since <when>', 'only runs with an event since then: 12h, 3d, 2026-06-30', parseMoment)
    .option('--before <run>', 'only runs that the list shows after this one: the next page')
    .option('--limit <n>', 'at most this many (default: 50 on a terminal, elsewhere all)', parseWholeNumber)
    .action(async (ledgerPath, { limit: given, ...filter }) => {
      const { session, status, agent, tool, outcome, since, where } = filter
      // Filters over all runs need summaries that are kept; other lists read one run after the other.
      const isOfAll =
        session === undefined && (status ?? agent ?? tool ?? outcome ?? since ?? where) !== undefined
      const open = (use: (opened: SummarizedLedger) => Promise<ExitCode>): Promise<ExitCode> =>
        isOfAll
          ? withSummaries(context, ledgerPath, use)
          : withLedger(ledgerPath, 'read', (ledger) => use({ ledger, context, options: {} }))
      done(
        await open(async (summarized) => {
          const { context, ledger } = summarized
          const { programName, say } = context
          const unreadable = new UnreadableRuns(context)
          const limit = given ?? (context.isRead ? pageRuns : Infinity)
          const table = new RunTable(context.print, context.columns)
          const commands = new Set<string>()
          let count = 0
          let last: RunId | undefined
          let isMore = false
          // One more is asked for, to know whether there is one.
          for await (const { run, input } of withInputs(summarized, ledgerPath, filter, limit + 1)) {
            if ((isMore = count === limit)) break
            count++
            last = run.runId
            if (isReadable(run)) {
              const row = { ...(await readRow(ledger, run)), input }
              const next = findNextCommand(row, { programName, ledgerPath })
              if (next !== undefined) commands.add(`  ${next}`)
              await (context.json ? printJson(context, toData(row)) : table.add(row))
            } else {
              const { runId, message: detail } = run
              unreadable.report(run)
              await (context.json
                ? printJson(context, { runId, status: 'unreadable', detail })
                : table.addUnreadable(runId))
            }
          }
          await table.end()
          if (context.isRead && commands.size > 0) {
            const shown = [...commands].slice(0, maxNextShown)
            const more = commands.size > maxNextShown ? ['  …'] : []
            say(['What continues those that wait:', ...shown, ...more].join('\n'))
          }
          if (count === 0 && !context.json) say(formatNone(filter))
          if (isMore && context.isRead) {
            const asked = { session, status, agent, tool, outcome, since: since?.text, limit: given }
            const words = Object.entries({ ...asked, before: last }).flatMap(([name, value]) =>
              value === undefined ? [] : [`--${name}`, `${value}`],
            )
            words.push(...(where?.texts ?? []).flatMap((text) => ['--where', text]))
            const next = formatCommand(programName, 'list', ledgerPath, ...words)
            say(`There are more. The next page: ${next}`)
          }
          return unreadable.exitCode
        }),
      )
    })
}

/** The inputs of this many runs are looked up at once. */
const runsPerPart = 64

/** Reads up to `limit` of the runs that are asked for, each with its first input. */
async function* withInputs(
  summarized: SummarizedLedger,
  ledgerPath: string,
  filter: ListFilter,
  limit: number,
): AsyncGenerator<{ readonly run: ListedRun; readonly input: string }> {
  const { ledger } = summarized
  let part: ListedRun[] = []
  const lookUp = async function* () {
    const inputs = await readInputTexts(ledger, part.filter(isReadable))
    for (const run of part) yield { run, input: inputs.get(run.runId) ?? '' }
    part = []
  }
  let left = limit
  for await (const run of readRuns(summarized, ledgerPath, filter)) {
    part.push(run)
    if (--left <= 0) break
    if (part.length === runsPerPart) yield* lookUp()
  }
  yield* lookUp()
}

/** Reads the runs that are asked for, in the order of the list. */
async function* readRuns(
  { ledger, options, context: { programName, now } }: SummarizedLedger,
  ledgerPath: string,
  { session, status, agent, tool, outcome, since, where, before: named }: ListFilter,
): AsyncGenerator<ListedRun> {
  const before = named === undefined ? undefined : await findRun(ledger, named, { programName, ledgerPath })
  const { sessionId: whereSession, ...conditions } = where?.filter ?? {}
  const sessionId = session ?? whereSession
  const filter: SummaryFilter = {
    ...conditions,
    ...omitUndefined({
      ...{ agent, tool, outcome, before, statuses: toStatuses(status) },
      since: since && toTime(since, now()),
    }),
  }
  // No summary says who drives a run.
  const fitsDriver = async ({ runId }: ListedRun): Promise<boolean> =>
    (status !== 'under_way' && status !== 'interrupted') ||
    (await isRunDriven(ledger, runId)) === (status === 'under_way')
  // Who gave feedback, and tags, are asked of the ledger.
  const { tag, feedback } = filter
  const asked = sessionId === undefined ? filter : { sessionId, ...omitUndefined({ before, tag, feedback }) }
  for await (const run of readRunSummaries(ledger, asked, options)) {
    // The runs of a session come with their child runs.
    const family = sessionId === undefined ? [run] : withChildren(ledger, run)
    for await (const each of family) {
      if ((sessionId === undefined || fitsFilter(each, filter)) && (await fitsDriver(each))) yield each
    }
  }
}

/** The statuses in summaries, which do not say whether a process drives a run. */
function toStatuses(status: ListFilter['status']): readonly RunStatus[] | undefined {
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

/** Reads a run and its child runs. A call may have started before its child run was on record. */
async function* withChildren(ledger: Ledger, run: ListedRun): AsyncGenerator<ListedRun> {
  yield run
  if (!isReadable(run)) return
  for (const child of run.childRunIds) {
    if ((await ledger.head(child)) !== undefined)
      yield* withChildren(ledger, await readRunSummary(ledger, child))
  }
}

function formatNone({ session, status, agent, tool, outcome, since, where, before }: ListFilter): string {
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
    ...(where === undefined ? [] : [`that fit ${where.texts.join(', ')}`]),
    ...(before === undefined ? [] : [`after ${before}`]),
  ]
  return ['This ledger holds no runs', ...which].join(' ') + '.'
}

function toData({ summary, statusView, waits, input }: ListedRunRow): object {
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
    worst: formatWorst(summary) || undefined,
    startedAt: formatTime(startedAt),
    lastEventAt: formatTime(lastAt),
    seq,
  }
}
