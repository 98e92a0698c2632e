import type { RunId } from '@tallystick/core'
import type { Outcome } from '@tallystick/core/vocabulary'
import type { RunSummary } from '@tallystick/ledger'
import { commandLine } from '../command/context.ts'
import type { Place } from '../command/next-commands.ts'
import { durationText, oneLine, shortDurationText, table, timeText } from '../command/text.ts'
import { type RunRow, type RunStatusView, statusText } from '../runs/run-status.ts'
import { fitted } from '../terminal/text-width.ts'
import { originText } from './events.ts'

/** An entry of a list, at its own place or under its parent run. */
export interface Placed {
  readonly runId: RunId
  /** Its parent run. */
  readonly parent?: RunId
}

/**
 * The same entries with each child run under its parent, the first that was begun first, and its depth
 * there. One whose parent is not in the list stays where it is, and so do runs that are parents of one another in a
 * circle, which only a forged ledger holds: none is left out.
 */
export function underParents<Entry extends Placed>(
  newestFirst: readonly Entry[],
): readonly (readonly [entry: Entry, depth: number])[] {
  const parents = new Map(newestFirst.map(({ runId, parent }) => [runId, parent]))
  const isBelow = ({ runId, parent }: Entry): boolean =>
    parent !== undefined && parents.has(parent) && !isInCircle(runId, parents)
  const children = Map.groupBy(newestFirst.filter(isBelow).toReversed(), ({ parent }) => parent)
  const place = (entry: Entry, depth: number): readonly (readonly [Entry, number])[] => [
    [entry, depth],
    ...(children.get(entry.runId) ?? []).flatMap((child) => place(child, depth + 1)),
  ]
  return newestFirst.filter((entry) => !isBelow(entry)).flatMap((entry) => place(entry, 0))
}

/** Whether a run is its own ancestor. */
function isInCircle(runId: RunId, parents: ReadonlyMap<RunId, RunId | undefined>): boolean {
  const seen = new Set<RunId>()
  for (let at = parents.get(runId); at !== undefined && !seen.has(at); at = parents.get(at)) {
    if (at === runId) return true
    seen.add(at)
  }
  return false
}

/** Endings of a call other than success, the worst first. */
const byWeight: readonly Outcome[] = [
  ...(['interrupted', 'timed_out', 'failed', 'unknown_tool', 'invalid_input', 'denied'] as const),
  ...(['limit_reached', 'cancelled', 'skipped', 'repeated'] as const),
]

/** The worst thing that happened in a run, such as `pay failed ×2`; empty where everything went well. */
export function worstText({ calls, failedAttempts }: Pick<RunSummary, 'calls' | 'failedAttempts'>): string {
  for (const outcome of byWeight) {
    const [worst] = calls.filter((call) => call.outcome === outcome).toSorted((a, b) => b.count - a.count)
    if (worst) return `${worst.name} ${outcome}${timesText(worst.count)}`
  }
  return failedAttempts === 0 ? '' : `model call failed${timesText(failedAttempts)}`
}

function timesText(count: number): string {
  return count === 1 ? '' : ` ×${count}`
}

const maxStatusColumns = 200
const maxInputColumns = 60

/** So many lines are held to find out how wide the columns are. Of more, each part has its own heads. */
const rowsPerPart = 1_000

/** A run as a list shows it: with what it was begun with. */
export interface ListedRunRow extends RunRow {
  readonly input: string
}

/** A line of the list. */
interface Row {
  readonly runId: RunId
  readonly parent?: RunId
  /** Absent where the run cannot be read. */
  readonly row?: ListedRunRow
}

/**
 * Prints runs as a table, child runs under their parents. On a terminal each run takes one row of it, with
 * the end of its id, which every verb takes.
 */
export class RunTable {
  readonly #print: (text: string) => Promise<void>
  readonly #columns: number | undefined
  #rows: Row[] = []

  constructor(print: (text: string) => Promise<void>, columns: number | undefined) {
    this.#print = print
    this.#columns = columns
  }

  add(row: ListedRunRow): Promise<void> {
    const { runId, parent } = row.summary
    return this.#hold({ runId, row, ...(parent?.relation === 'child' && { parent: parent.runId }) })
  }

  addUnreadable(runId: RunId): Promise<void> {
    return this.#hold({ runId })
  }

  async end(): Promise<void> {
    const rows = underParents(this.#rows)
    const columns = this.#columns
    if (rows.length > 0)
      await this.#print(columns === undefined ? wideTable(rows) : narrowTable(rows, columns))
    this.#rows = []
  }

  async #hold(row: Row): Promise<void> {
    this.#rows.push(row)
    if (this.#rows.length === rowsPerPart) await this.end()
  }
}

type PlacedRows = readonly (readonly [row: Row, depth: number])[]

function inTree(text: string, depth: number): string {
  return `${depth === 0 ? '' : `${'  '.repeat(depth - 1)}└ `}${text}`
}

/** Everything. Where no run is a part of anything, there is no column that says of what. */
function wideTable(rows: PlacedRows): string {
  const heads = [
    'AGENT',
    'PART OF',
    'TURNS',
    'CALLS',
    'TOKENS',
    'COST',
    'TOOK',
    'STARTED',
    'INPUT',
    'WORST',
    'STATUS',
  ]
  const lines = rows.map(([{ runId, row }, depth]) => [inTree(runId, depth), ...wideCells(row)])
  const isPart = lines.some(([, , origin]) => origin !== '')
  return table([['RUN', ...heads], ...lines].map((cells) => (isPart ? cells : cells.toSpliced(2, 1))))
}

function wideCells(row: ListedRunRow | undefined): readonly string[] {
  if (row === undefined) return ['?', '', ...Array.from({ length: 6 }, () => '?'), '', '', 'unreadable']
  const { summary, statusView, input } = row
  const { agents, turns, toolCalls, children, usage, startedAt, lastAt } = summary
  const tokens = (usage.inputTokens ?? 0) + (usage.outputTokens ?? 0)
  const used = [turns + children.turns, toolCalls + children.toolCalls, tokens].map(String)
  return [
    agents.join(' → '),
    originText(summary),
    ...used,
    costText(summary.costUsd),
    durationText(lastAt - startedAt),
    timeText(startedAt),
    oneLine(input, maxInputColumns),
    worstText(summary),
    statusText(statusView, maxStatusColumns),
  ]
}

/** What leaves room for the words of the user, and at least so many columns for them. */
const inputColumnsMin = 8
const shortStatusColumns = 24
/** From here on there is room for the agent. */
const roomyColumns = 110
const agentColumns = 18

/** One row a run, each within the columns of the terminal. */
function narrowTable(rows: PlacedRows, columns: number): string {
  const isRoomy = columns >= roomyColumns
  const status = isRoomy ? 2 * shortStatusColumns : shortStatusColumns
  const lines = rows.map(([{ runId, row }, depth]) => {
    const id = inTree(runId.slice(-8), depth)
    if (row === undefined) return [id, '?', '?', '?', ...(isRoomy ? ['?'] : []), 'unreadable', '']
    const { startedAt, lastAt, agents, costUsd } = row.summary
    return [
      id,
      timeText(startedAt).slice(5, 16).replace('T', ' '),
      shortDurationText(lastAt - startedAt),
      costText(costUsd),
      ...(isRoomy ? [fitted(agents.join(' → '), agentColumns)] : []),
      oneLine(shortStatus(row), status),
      oneLine(row.input, Math.max(inputColumnsMin, columns)),
    ]
  })
  const heads = ['RUN', 'STARTED', 'TOOK', 'COST', ...(isRoomy ? ['AGENT'] : []), 'STATUS', 'INPUT']
  const text = table([heads, ...lines])
  return text
    .trimEnd()
    .split('\n')
    .map((line) => `${fitted(line.trimEnd(), columns)}\n`)
    .join('')
}

/** The status of a run, and what went wrong in it. */
function shortStatus({ summary, statusView }: ListedRunRow): string {
  const worst = worstText(summary)
  return worst === '' ? shortStatusText(statusView) : `${shortStatusText(statusView)}; ${worst}`
}

function shortStatusText({ status, reason, detail = '' }: RunStatusView): string {
  if (status === 'done') return reason ?? 'done'
  // The id of the call would take all of the room.
  const on = detail.replaceAll(/ call_[0-9a-f_]+/g, '')
  return status === 'suspended' && on !== '' ? `waits: ${on}` : status.replace('_', ' ')
}

function costText(costUsd: number | undefined): string {
  if (costUsd === undefined) return '-'
  return costUsd >= 100 ? `$${costUsd.toFixed(0)}` : `$${costUsd.toFixed(costUsd >= 1 ? 2 : 4)}`
}

/** Returns the first command that continues a run, to paste into a shell; `undefined` if none is needed. */
export function nextCommand(run: RunRow, { programName, ledgerPath }: Place): string | undefined {
  const args = nextArguments(run)
  if (args === undefined) return undefined
  const [verb, ...rest] = args
  return commandLine(programName, verb, ledgerPath, ...rest)
}

type CommandArguments = readonly [verb: string, ...args: string[]]

function nextArguments({ summary, statusView, waits }: RunRow): CommandArguments | undefined {
  const { runId } = summary
  if (statusView.status === 'interrupted') return ['resume', runId]
  if (statusView.status !== 'suspended') return undefined
  const [[approval], [deferred]] = [waits.approvals, waits.deferred]
  if (approval) return ['approve', approval.runId, approval.toolCallId, '--by', 'you']
  if (deferred) return ['settle', deferred.runId, deferred.toolCallId, '--result', 'what it came to']
  const { limit } = summary.waits
  if (waits.children.length > 0 || limit?.max === undefined) return ['resume', runId]
  return ['raise', runId, limit.limit, `${limit.max * 2 || 1}`, '--by', 'you']
}
