import type { RunId } from '@tallystick/core'
import { findWorst, type RunSummary } from '@tallystick/ledger'
import { formatCommand } from '../command/context.ts'
import type { Place } from '../command/next-commands.ts'
import { formatDuration, toOneLine, formatShortDuration, formatTable, formatTime } from '../command/text.ts'
import { type RunRow, type RunStatusView, formatStatus } from '../runs/run-status.ts'
import { fitText } from '../terminal/text-width.ts'
import { formatOrigin } from './events.ts'

export interface Placed {
  readonly runId: RunId
  readonly parent?: RunId
}

/**
 * Puts each child run under its parent, oldest first, with its depth. A run whose parent is not in the list keeps its
 * place, and so do runs that are each other's parents in a circle, which only a forged ledger holds.
 */
export function sortByParent<Entry extends Placed>(
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

function isInCircle(runId: RunId, parents: ReadonlyMap<RunId, RunId | undefined>): boolean {
  const seen = new Set<RunId>()
  for (let at = parents.get(runId); at !== undefined && !seen.has(at); at = parents.get(at)) {
    if (at === runId) return true
    seen.add(at)
  }
  return false
}

/** The worst that happened in a run, such as `pay failed ×2`; empty if all went well. */
export function formatWorst(run: Pick<RunSummary, 'calls' | 'failedAttempts'>): string {
  const worst = findWorst(run)
  if (worst === undefined) return ''
  const { name = 'model call', outcome, count } = worst
  return `${name} ${outcome === 'model_attempt_failed' ? 'failed' : outcome}${formatTimes(count)}`
}

function formatTimes(count: number): string {
  return count === 1 ? '' : ` ×${count}`
}

const maxStatusColumns = 200
const maxInputColumns = 60

/** This many rows are held to find the widths of the columns. More rows are printed in parts with their own heads. */
const rowsPerPart = 1_000

export interface ListedRunRow extends RunRow {
  readonly input: string
}

interface Row {
  readonly runId: RunId
  readonly parent?: RunId
  /** Absent if the run cannot be read. */
  readonly row?: ListedRunRow
}

/**
 * Prints runs as a table, child runs under their parents. On a terminal each run takes one row, with the end of its id,
 * which every verb takes.
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
    const rows = sortByParent(this.#rows)
    const columns = this.#columns
    if (rows.length > 0)
      await this.#print(columns === undefined ? formatWideTable(rows) : formatNarrowTable(rows, columns))
    this.#rows = []
  }

  async #hold(row: Row): Promise<void> {
    this.#rows.push(row)
    if (this.#rows.length === rowsPerPart) await this.end()
  }
}

type PlacedRows = readonly (readonly [row: Row, depth: number])[]

function formatInTree(text: string, depth: number): string {
  return `${depth === 0 ? '' : `${'  '.repeat(depth - 1)}└ `}${text}`
}

/** All columns, except PART OF if there is no child run. */
function formatWideTable(rows: PlacedRows): string {
  const heads = 'RUN,AGENT,PART OF,TURNS,CALLS,TOKENS,COST,TOOK,STARTED,INPUT,WORST,STATUS'.split(',')
  const lines = rows.map(([{ runId, row }, depth]) => [formatInTree(runId, depth), ...toWideCells(row)])
  const isPart = lines.some(([, , origin]) => origin !== '')
  return formatTable([heads, ...lines].map((cells) => (isPart ? cells : cells.toSpliced(2, 1))))
}

function toWideCells(row: ListedRunRow | undefined): readonly string[] {
  if (row === undefined) return ['?', '', ...Array.from({ length: 6 }, () => '?'), '', '', 'unreadable']
  const { summary, statusView, input } = row
  const { agents, turns, toolCalls, children, usage, startedAt, lastAt } = summary
  const tokens = (usage.inputTokens ?? 0) + (usage.outputTokens ?? 0)
  const used = [turns + children.turns, toolCalls + children.toolCalls, tokens].map(String)
  return [
    agents.join(' → '),
    formatOrigin(summary),
    ...used,
    formatCost(summary.costUsd),
    formatDuration(lastAt - startedAt),
    formatTime(startedAt),
    toOneLine(input, maxInputColumns),
    formatWorst(summary),
    formatStatus(statusView, maxStatusColumns),
  ]
}

/** At least this many columns are left for the input. */
const inputColumnsMin = 8
const shortStatusColumns = 24
/** From this width on there is room for the agent. */
const roomyColumns = 110
const agentColumns = 18

/** Each row fits the columns of the terminal. */
function formatNarrowTable(rows: PlacedRows, columns: number): string {
  const isRoomy = columns >= roomyColumns
  const status = isRoomy ? 2 * shortStatusColumns : shortStatusColumns
  const lines = rows.map(([{ runId, row }, depth]) => {
    const id = formatInTree(runId.slice(-8), depth)
    if (row === undefined) return [id, '?', '?', '?', ...(isRoomy ? ['?'] : []), 'unreadable', '']
    const { startedAt, lastAt, agents, costUsd } = row.summary
    const worst = formatWorst(row.summary)
    return [
      id,
      formatTime(startedAt).slice(5, 16).replace('T', ' '),
      formatShortDuration(lastAt - startedAt),
      formatCost(costUsd),
      ...(isRoomy ? [fitText(agents.join(' → '), agentColumns)] : []),
      toOneLine([formatShortStatus(row.statusView), worst].filter(Boolean).join('; '), status),
      toOneLine(row.input, Math.max(inputColumnsMin, columns)),
    ]
  })
  const heads = ['RUN', 'STARTED', 'TOOK', 'COST', ...(isRoomy ? ['AGENT'] : []), 'STATUS', 'INPUT']
  const text = formatTable([heads, ...lines])
  return text
    .trimEnd()
    .split('\n')
    .map((line) => `${fitText(line.trimEnd(), columns)}\n`)
    .join('')
}

function formatShortStatus({ status, reason, detail = '' }: RunStatusView): string {
  if (status === 'done') return reason ?? 'done'
  // The id of the call would take all the room.
  const on = detail.replaceAll(/ call_[0-9a-f_]+/g, '')
  return status === 'suspended' && on !== '' ? `waits: ${on}` : status.replace('_', ' ')
}

function formatCost(costUsd: number | undefined): string {
  if (costUsd === undefined) return '-'
  return costUsd >= 100 ? `$${costUsd.toFixed(0)}` : `$${costUsd.toFixed(costUsd >= 1 ? 2 : 4)}`
}

/** The first command that continues a run, to paste into a shell; `undefined` if none is needed. */
export function findNextCommand(
  { summary, statusView, waits }: RunRow,
  { programName, ledgerPath }: Place,
): string | undefined {
  const { runId } = summary
  const command = (verb: string, ...words: readonly string[]): string =>
    formatCommand(programName, verb, ledgerPath, ...words)
  if (statusView.status === 'interrupted') return command('resume', runId)
  if (statusView.status !== 'suspended') return undefined
  const [[approval], [deferred]] = [waits.approvals, waits.deferred]
  if (approval) return command('approve', approval.runId, approval.toolCallId, '--by', 'you')
  if (deferred) return command('settle', deferred.runId, deferred.toolCallId, '--result', 'what it came to')
  const { limit } = summary.waits
  if (waits.children.length > 0 || limit?.max === undefined) return command('resume', runId)
  return command('raise', runId, limit.limit, `${limit.max * 2 || 1}`, '--by', 'you')
}
