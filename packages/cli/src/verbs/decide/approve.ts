import type { JsonObject } from '@tallystick/core'
import type { CommandContext } from '../../command/command-context.ts'
import { decideCall } from '../../attend/decide-call.ts'
import type { ExitCode } from '../../command/exit-code.ts'

/** What `approve` was given. */
export interface ApproveOptions {
  readonly ledger: string
  readonly run: string
  readonly call: string
  readonly by?: string
  readonly input?: JsonObject
}

/** `approve`: leaves an approval in the run's inbox, for whoever drives the run. */
export function approve(context: CommandContext, { input, ...decision }: ApproveOptions): Promise<ExitCode> {
  return decideCall(context, {
    ...decision,
    command: (toolCallId, by) => ({
      type: 'approve',
      toolCallId,
      by,
      via: 'command',
      ...(input !== undefined && { input }),
    }),
  })
}
