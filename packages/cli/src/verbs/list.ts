import { foldTo } from '@tallystick/ledger'
import type { CommandContext } from '../command-context.ts'
import type { ExitCode } from '../exit-code.ts'
import { exitCodes } from '../exit-code.ts'
import { withLedger } from '../open-ledger.ts'
import { runStatus, statusText } from '../view/run-status.ts'
import { table } from '../view/table.ts'

const heads = ['RUN', 'AGENT', 'TURNS', 'CALLS', 'TOKENS', 'STARTED', 'STATUS']

/** `list`: a line a run, the newest first. With `--json` a JSON object a line. */
export function list(context: CommandContext, ledgerPath: string): Promise<ExitCode> {
  return withLedger(ledgerPath, 'read', async (ledger) => {
    const rows: string[][] = []
    for await (const { runId } of ledger.runs()) {
      const state = await foldTo(ledger, runId)
      const { turns, toolCalls, usage } = state.totals
      const status = runStatus(state)
      const startedAt = new Date(state.startedAt).toISOString()
      if (context.json) {
        const { agent, seq } = state
        await context.print(
          `${JSON.stringify({ runId, agent, ...status, turns, toolCalls, usage, startedAt, seq })}\n`,
        )
        continue
      }
      const tokens = (usage.inputTokens ?? 0) + (usage.outputTokens ?? 0)
      rows.push([runId, state.agent, `${turns}`, `${toolCalls}`, `${tokens}`, startedAt, statusText(status)])
    }
    if (rows.length > 0) await context.print(table([heads, ...rows]))
    else if (!context.json) context.say('This ledger holds no runs.')
    return exitCodes.ok
  })
}
