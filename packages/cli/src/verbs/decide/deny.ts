import type { CommandContext } from '../../command/command-context.ts'
import { decideCall } from '../../attend/decide-call.ts'
import type { ExitCode } from '../../command/exit-code.ts'

/** What `deny` was given. */
export interface DenyOptions {
  readonly ledger: string
  readonly run: string
  readonly call: string
  readonly by?: string
  readonly reason: string
}

/** `deny`: leaves a denial in the run's inbox, for whoever drives the run. */
export function deny(context: CommandContext, { reason, ...decision }: DenyOptions): Promise<ExitCode> {
  return decideCall(context, {
    ...decision,
    command: (toolCallId, by) => ({ type: 'deny', toolCallId, by, via: 'command', reason }),
  })
}
