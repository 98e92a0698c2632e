import type { CommandContext } from '../../command/command-context.ts'
import { decideCall } from '../../interactive/decide-call.ts'
import type { ExitCode } from '../../command/exit-code.ts'
import type { Command } from 'commander'
import type { Done } from '../../verbs.ts'
import { onCall } from './on-call.ts'

/** What `deny` was given. */
export interface DenyOptions {
  readonly ledger: string
  readonly run: string
  readonly call: string
  readonly by?: string
  readonly reason: string
}

/** Declares what `deny` takes. */
export function declareDeny(verb: Command, context: CommandContext, done: Done): void {
  onCall(verb)
    .requiredOption('--reason <text>', 'why; the model reads it')
    .action(async (ledger: string, run: string, call: string, options: { by?: string; reason: string }) => {
      done(await deny(context, { ledger, run, call, ...options }))
    })
}

/** `deny`: leaves a denial in the run's inbox, for the process that drives the run. */
export function deny(context: CommandContext, { reason, ...decision }: DenyOptions): Promise<ExitCode> {
  return decideCall(context, {
    ...decision,
    command: (toolCallId, by) => ({ type: 'deny', toolCallId, by, via: 'command', reason }),
  })
}
