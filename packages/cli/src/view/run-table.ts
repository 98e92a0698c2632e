import type { RunId } from '@tallystick/core'
import type { ToldRun } from '../told-run.ts'
import { underEmployers } from './child-order.ts'
import { originText } from './origin-text.ts'
import { statusText } from './run-status.ts'
import { table } from './table.ts'
import { timeText } from './time-text.ts'

const statusCharactersMax = 200

/** So many lines are held to find out how wide the columns are. Of more, each part has its own heads. */
const rowsPerPart = 1_000

/** A line of the list. */
interface Row {
  readonly runId: RunId
  readonly employer?: RunId
  readonly cells: readonly string[]
}

/** Prints runs as a table, those that work for another under that one. */
export class RunTable {
  readonly #print: (text: string) => Promise<void>
  #rows: Row[] = []

  constructor(print: (text: string) => Promise<void>) {
    this.#print = print
  }

  add(run: ToldRun): Promise<void> {
    return this.#hold(rowOf(run))
  }

  addUnreadable(runId: RunId): Promise<void> {
    return this.#hold({ runId, cells: ['?', '', '?', '?', '?', '?', 'unreadable'] })
  }

  async end(): Promise<void> {
    if (this.#rows.length > 0) await this.#print(tableOf(this.#rows))
    this.#rows = []
  }

  async #hold(row: Row): Promise<void> {
    this.#rows.push(row)
    if (this.#rows.length === rowsPerPart) await this.end()
  }
}

function rowOf({ summary, standing }: ToldRun): Row {
  const { runId, parent, agents, turns, toolCalls, children, usage, startedAt } = summary
  const tokens = (usage.inputTokens ?? 0) + (usage.outputTokens ?? 0)
  const used = [turns + children.turns, toolCalls + children.toolCalls, tokens].map(String)
  const status = statusText(standing, statusCharactersMax)
  return {
    runId,
    ...(parent?.relation === 'child' && { employer: parent.runId }),
    cells: [agents.join(' → '), originText(summary), ...used, timeText(startedAt), status],
  }
}

/** Where no run is a part of anything, there is no column that says of what. */
function tableOf(rows: readonly Row[]): string {
  const heads = ['AGENT', 'PART OF', 'TURNS', 'CALLS', 'TOKENS', 'STARTED', 'STATUS']
  const isPart = rows.some(({ cells: [, origin] }) => origin !== '')
  const shown = (cells: readonly string[]): readonly string[] => (isPart ? cells : cells.toSpliced(1, 1))
  const lines = underEmployers(rows).map(([{ runId, cells }, depth]) => [
    `${depth === 0 ? '' : `${'  '.repeat(depth - 1)}└ `}${runId}`,
    ...shown(cells),
  ])
  return table([['RUN', ...shown(heads)], ...lines])
}
