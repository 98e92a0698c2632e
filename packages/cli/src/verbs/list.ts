import type { RunState } from '@tallystick/core'
import { foldTo } from '@tallystick/ledger'
import type { CommandContext } from '../command-context.ts'
import type { ExitCode } from '../exit-code.ts'
import { withLedger } from '../open-ledger.ts'
import { readEachRun } from '../read-each-run.ts'
import { runStatus, statusText } from '../view/run-status.ts'
import { table } from '../view/table.ts'

const heads = ['RUN', 'AGENT', 'TURNS', 'CALLS', 'TOKENS', 'STARTED', 'STATUS']

/**
 * `list`: a line a run, the newest first. With `--json` a JSON object a line. A run that cannot be read has a line as
 * well, with the status `unreadable`.
 */
export function list(context: CommandContext, ledgerPath: string): Promise<ExitCode> {
  const { json, print, say } = context
  return withLedger(ledgerPath, 'read', async (ledger) => {
    const rows: string[][] = []
    const exitCode = await readEachRun(context, ledger, {
      async read(runId) {
        const state = await foldTo(ledger, runId)
        if (json) await print(`${JSON.stringify(dataOf(state))}\n`)
        else rows.push(rowOf(state))
      },
      async unreadable(runId, { message: detail }) {
        if (json) await print(`${JSON.stringify({ runId, status: 'unreadable', detail })}\n`)
        else rows.push([runId, '?', '?', '?', '?', '?', 'unreadable'])
      },
    })
    if (rows.length > 0) await print(table([heads, ...rows]))
    else if (!json) say('This ledger holds no runs.')
    return exitCode
  })
}

function dataOf(state: RunState): object {
  const { runId, agent, seq, totals } = state
  const { turns, toolCalls, usage } = totals
  return { runId, agent, ...runStatus(state), turns, toolCalls, usage, startedAt: startOf(state), seq }
}

function rowOf(state: RunState): string[] {
  const { turns, toolCalls, usage } = state.totals
  const tokens = (usage.inputTokens ?? 0) + (usage.outputTokens ?? 0)
  const status = statusText(runStatus(state))
  return [state.runId, state.agent, `${turns}`, `${toolCalls}`, `${tokens}`, startOf(state), status]
}

function startOf({ startedAt }: RunState): string {
  return new Date(startedAt).toISOString()
}
