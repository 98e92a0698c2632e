import type { JsonObject } from '@tallystick/core/vocabulary'
import type { CommandContext } from '../../command/command-context.ts'
import { decideCall } from '../../interactive/decide-call.ts'
import type { ExitCode } from '../../command/exit-code.ts'
import type { Command } from 'commander'
import type { Done } from '../../verbs.ts'
import { onCall } from './on-call.ts'
import { jsonObject } from '../../command/parse-args.ts'

/** What `approve` was given. */
export interface ApproveOptions {
  readonly ledger: string
  readonly run: string
  readonly call: string
  readonly by?: string
  readonly input?: JsonObject
  readonly reason?: string
}

/** Declares what `approve` takes. */
export function declareApprove(verb: Command, context: CommandContext, done: Done): void {
  onCall(verb)
    .option('--input <json>', 'run the call with this input instead', jsonObject)
    .option('--reason <text>', 'why, for the record')
    .action(
      async (
        ledger: string,
        run: string,
        call: string,
        options: Omit<ApproveOptions, 'ledger' | 'run' | 'call'>,
      ) => {
        done(await approve(context, { ledger, run, call, ...options }))
      },
    )
}

/** `approve`: leaves an approval in the run's inbox, for the process that drives the run. */
export function approve(
  context: CommandContext,
  { input, reason, ...decision }: ApproveOptions,
): Promise<ExitCode> {
  return decideCall(context, {
    ...decision,
    command: (toolCallId, by) => ({
      type: 'approve',
      toolCallId,
      by,
      via: 'command',
      ...(input !== undefined && { input }),
      ...(reason !== undefined && { reason }),
    }),
  })
}
