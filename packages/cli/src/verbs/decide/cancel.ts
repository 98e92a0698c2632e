import { foldTo } from '@tallystick/ledger'
import type { CommandContext } from '../../command/command-context.ts'
import { commandLine } from '../../command/command-context.ts'
import type { ExitCode } from '../../command/exit-code.ts'
import { CommandError, exitCodes } from '../../command/exit-code.ts'
import { findRun } from '../../lookup/find-run.ts'
import { accountName, acknowledge, putCommand } from '../../interactive/inbox.ts'
import { withLedger } from '../../ledger/open-ledger.ts'
import type { Command } from 'commander'
import { onLedger } from '../../command/declare-verb.ts'
import type { Done } from '../../verbs.ts'
import { filledText } from '../../command/parse-args.ts'

/** What `cancel` was given. */
export interface CancelOptions {
  readonly ledger: string
  readonly run: string
  readonly by?: string
  readonly reason?: string
}

/** Declares what `cancel` takes. */
export function declareCancel(verb: Command, context: CommandContext, done: Done): void {
  onLedger(verb)
    .argument('<run>', 'id of the run')
    .option('--by <name>', 'who asks (default: the name of your account)', filledText)
    .option('--reason <text>', 'why')
    .action(async (ledger: string, run: string, options: { by?: string; reason?: string }) => {
      done(await cancel(context, { ledger, run, ...options }))
    })
}

/** `cancel`: leaves a request to stop in the run's inbox. What was finished is kept; every open call gets a result. */
export function cancel(context: CommandContext, options: CancelOptions): Promise<ExitCode> {
  const { ledger: ledgerPath, run, by = accountName(), reason } = options
  const { programName } = context
  return withLedger(ledgerPath, 'write', async (ledger) => {
    const runId = await findRun(ledger, run, { programName, ledgerPath })
    const state = await foldTo(ledger, runId)
    if (state.phase === 'done') {
      const show = commandLine(programName, 'show', ledgerPath, runId)
      throw new CommandError(
        'refused',
        `Run ${runId} is done (${state.reason}), so nothing is left to stop. See it: ${show}`,
      )
    }
    const command = { type: 'cancel' as const, by, ...(reason !== undefined && { reason }) }
    const added = await putCommand(ledger, runId, command)
    await acknowledge(context, { ledger, ledgerPath, runId, command, added })
    return exitCodes.ok
  })
}
