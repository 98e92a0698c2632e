import type { RunId } from '@tallystick/core'
import type { RunRow } from '../../runs/run-row.ts'
import { underParents } from './child-order.ts'
import { oneLine } from '../text/content-text.ts'
import { durationText, shortDurationText } from '../text/duration-text.ts'
import { originText } from '../run/origin-text.ts'
import { statusText, type RunStatusView } from '../../runs/run-status.ts'
import { table } from '../text/table.ts'
import { fitted } from '../../terminal/text-width.ts'
import { timeText } from '../text/time-text.ts'
import { worstText } from './worst-text.ts'

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
