import { foldTo } from '@tallystick/ledger'
import type { CommandContext } from '../../command/command-context.ts'
import { commandLine } from '../../command/command-context.ts'
import type { ExitCode } from '../../command/exit-code.ts'
import { CommandError, exitCodes } from '../../command/exit-code.ts'
import { findCall } from '../../lookup/find-call.ts'
import { findRun } from '../../lookup/find-run.ts'
import { accountName, acknowledge, putCommand } from '../../interactive/inbox.ts'
import { withLedger } from '../../ledger/open-ledger.ts'
import { waitsOf } from '../../runs/waits.ts'
import type { Command } from 'commander'
import { onLedger } from '../../command/declare-verb.ts'
import type { Done } from '../../verbs.ts'
import { filledText } from '../../command/parse-args.ts'

/** What `settle` was given: exactly one of `result` and `failed`. `call` may be an end of the id, or the id outside. */
export interface SettleOptions {
  readonly ledger: string
  readonly run: string
  readonly call: string
  readonly result?: string
  readonly failed?: string
  readonly by?: string
  readonly reason?: string
}

/** Declares what `settle` takes. */
export function declareSettle(verb: Command, context: CommandContext, done: Done): void {
  onLedger(verb)
    .argument('<run>', 'id of the run')
    .argument('<call>', 'id of the tool call, an unambiguous end of it, or its external id')
    .option('--result <text>', 'the result, if the call succeeded')
    .option('--failed <text>', 'the error, if the call failed')
    .option('--by <name>', 'who settles it (default: the name of your account)', filledText)
    .option('--reason <text>', 'why, for the record')
    .action(
      async (
        ledger: string,
        run: string,
        call: string,
        options: Omit<SettleOptions, 'ledger' | 'run' | 'call'>,
      ) => {
        done(await settle(context, { ledger, run, call, ...options }))
      },
    )
}

/**
 * `settle`: leaves the result of a call that an outside system carries out in the inbox of the run that waits for it.
 */
export function settle(context: CommandContext, options: SettleOptions): Promise<ExitCode> {
  const { ledger: ledgerPath, run, call: given, result, failed, by = accountName(), reason } = options
  const { programName } = context
  const text = result ?? failed
  if (text === undefined || (result !== undefined && failed !== undefined)) {
    throw new CommandError('usage', 'Say how the call ended: --result TEXT, or --failed TEXT.')
  }
  return withLedger(ledgerPath, 'write', async (ledger) => {
    const named = await findRun(ledger, run, { programName, ledgerPath })
    const { deferred: waiting } = await waitsOf(ledger, await foldTo(ledger, named))
    const show = commandLine(programName, 'show', ledgerPath, named)
    const [byExternalId, ...others] = waiting.filter(({ externalId }) => externalId === given)
    const call =
      byExternalId && others.length === 0
        ? byExternalId
        : await findCall(given, { ledger, named, waiting, awaited: 'its result', show })
    const { runId } = call
    const command = {
      type: 'settle' as const,
      toolCallId: call.toolCallId,
      outcome: failed === undefined ? ('success' as const) : ('failed' as const),
      content: [{ type: 'text' as const, text }],
      by,
      ...(reason !== undefined && { reason }),
    }
    const added = await putCommand(ledger, runId, command)
    await acknowledge(context, { ledger, ledgerPath, runId, command, added })
    return exitCodes.ok
  })
}
