import type { Ledger, RunId } from '@tallystick/core'
import type { CommandContext } from '../command-context.ts'
import type { ExitCode } from '../exit-code.ts'
import { isOpenSomewhere, withLedger } from '../open-ledger.ts'
import { readEachRun } from '../read-each-run.ts'
import { readRun, type RunReading } from '../read-run.ts'
import { ownWaits, waitsOf } from '../waits.ts'
import { underEmployers } from '../view/child-order.ts'
import { originText } from '../view/origin-text.ts'
import { runStatus, statusText, type runStatuses, type RunStatus } from '../view/run-status.ts'
import { table } from '../view/table.ts'

/** What `list` was given. */
export interface ListOptions {
  readonly ledger: string
  /** The runs of this session only, with those that work for them. */
  readonly session?: string
  /** The runs that stand so only. */
  readonly status?: (typeof runStatuses)[number]
}

const statusCharactersMax = 200

/** A run that was read, and where it stands. */
interface Listed extends RunReading {
  readonly standing: RunStatus
}

/** A line of the list. */
interface Row {
  readonly runId: RunId
  readonly employer?: RunId
  readonly cells: readonly string[]
}

/**
 * `list`: a line a run, the newest first, and under each those that work for it. With `--json` a JSON object a line. A
 * run that cannot be read has a line as well, with the status `unreadable`.
 */
export function list(context: CommandContext, options: ListOptions): Promise<ExitCode> {
  const { json, print, say } = context
  const { ledger: ledgerPath, session, status } = options
  const isOpen = isOpenSomewhere(ledgerPath)
  const isWanted = (found: (typeof runStatuses)[number]): boolean => status === undefined || status === found
  return withLedger(ledgerPath, 'read', async (ledger) => {
    const rows: Row[] = []
    const workers = new Map<RunId, readonly RunId[]>()
    const exitCode = await readEachRun(context, ledger, {
      ...(session !== undefined && { runs: runsOfSession(ledger, session, workers) }),
      async read(runId) {
        const reading = await readRun(ledger, runId)
        workers.set(runId, reading.children)
        const { state } = reading
        const waits = state.phase === 'done' ? ownWaits(state) : await waitsOf(ledger, state)
        const listed = { ...reading, standing: runStatus(state, { waits, isOpen }) }
        if (!isWanted(listed.standing.status)) return
        if (json) await print(`${JSON.stringify(dataOf(listed))}\n`)
        else rows.push(rowOf(listed))
      },
      async unreadable(runId, { message: detail }) {
        if (!isWanted('unreadable')) return
        if (json) await print(`${JSON.stringify({ runId, status: 'unreadable', detail })}\n`)
        else rows.push({ runId, cells: ['?', '', '?', '?', '?', '?', 'unreadable'] })
      },
    })
    if (rows.length > 0) await print(tableOf(rows))
    else if (!json) say(noneText(options))
    return exitCode
  })
}

/** The runs of a session, the last first, each with those that work for it behind it, once it was read. A call may have been started without that its run was. */
async function* runsOfSession(
  ledger: Ledger,
  sessionId: string,
  workers: ReadonlyMap<RunId, readonly RunId[]>,
): AsyncGenerator<RunId> {
  const withWorkers = async function* (runId: RunId): AsyncGenerator<RunId> {
    yield runId
    for (const worker of workers.get(runId) ?? []) if (await ledger.head(worker)) yield* withWorkers(worker)
  }
  for await (const { runId } of ledger.runs({ sessionId })) yield* withWorkers(runId)
}

function noneText({ session, status }: ListOptions): string {
  const which = [
    ...(session === undefined ? [] : [`of session ${session}`]),
    ...(status === undefined ? [] : [`that are ${status}`]),
  ]
  return ['This ledger holds no runs', ...which].join(' ') + '.'
}

function dataOf({ state, agents, standing }: Listed): object {
  const { runId, agent, sessionId, sessionPlace, parent, seq, totals, startedAt, at } = state
  const { turns, toolCalls, children, usage, costUsd } = totals
  return {
    ...{ runId, agent, agents, sessionId, sessionPlace, parent, ...standing },
    ...{ turns, toolCalls, children, usage, costUsd },
    ...{ startedAt: timeText(startedAt), lastEventAt: timeText(at), seq },
  }
}

function rowOf({ state, agents, standing }: Listed): Row {
  const { runId, parent, totals, startedAt } = state
  const { turns, toolCalls, children, usage } = totals
  const tokens = (usage.inputTokens ?? 0) + (usage.outputTokens ?? 0)
  const used = [turns + children.turns, toolCalls + children.toolCalls, tokens].map(String)
  const status = statusText(standing, statusCharactersMax)
  return {
    runId,
    ...(parent?.relation === 'child' && { employer: parent.runId }),
    cells: [agents.join(' → '), originText(state), ...used, timeText(startedAt), status],
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

function timeText(at: number): string {
  return new Date(at).toISOString()
}
