import { isDeepStrictEqual } from 'node:util'
import type { Ledger, OutsideCommand, PendingApproval, RunId, RunState, ToolCallId } from '@tallystick/core'
import { pendingApprovals } from '@tallystick/core'
import { foldTo } from '@tallystick/ledger'
import type { CommandContext } from './command-context.ts'
import { commandLine } from './command-context.ts'
import type { ExitCode } from './exit-code.ts'
import type { Place } from './view/next-commands.ts'
import { CommandError, exitCodes } from './exit-code.ts'
import { findRun } from './find-run.ts'
import { accountName, acknowledge, putCommand } from './inbox.ts'
import { withLedger } from './open-ledger.ts'

/** A decision about one call, as the command line gives it. */
export interface DecideCallOptions {
  readonly ledger: string
  readonly run: string
  /** A call's id, or an unambiguous end of it. */
  readonly call: string
  readonly by?: string
  readonly command: (toolCallId: ToolCallId, by: string) => OutsideCommand
}

/** Puts a decision about a call that waits for one into the run's inbox. */
export function decideCall(context: CommandContext, options: DecideCallOptions): Promise<ExitCode> {
  const { ledger: ledgerPath, run, call, by = accountName() } = options
  const place = { programName: context.programName, ledgerPath }
  return withLedger(ledgerPath, 'write', async (ledger) => {
    const runId = await findRun(ledger, run, place)
    const state = await foldTo(ledger, runId)
    const { toolCallId } = findPendingCall(state, call, place)
    const command = options.command(toolCallId, by)
    await assertFirst(ledger, runId, command)
    const added = await putCommand(ledger, runId, command)
    await acknowledge(context, { ledgerPath, runId, command, added })
    return exitCodes.ok
  })
}

/** A call is decided once: what comes second would be refused by the run's writer, so it is refused here, in words. */
async function assertFirst(ledger: Ledger, runId: RunId, command: OutsideCommand): Promise<void> {
  for (const { command: earlier } of await ledger.inbox(runId)) {
    if (!('toolCallId' in earlier && 'toolCallId' in command)) continue
    if (earlier.toolCallId !== command.toolCallId || isDeepStrictEqual(earlier, command)) continue
    throw new CommandError(
      'refused',
      `Call ${earlier.toolCallId} is decided already: ${earlier.type}${'by' in earlier ? ` by ${earlier.by}` : ''} waits for the run's writer. A call is decided once.`,
    )
  }
}

function findPendingCall(
  state: RunState,
  given: string,
  { programName, ledgerPath }: Place,
): PendingApproval {
  const pending = pendingApprovals(state)
  const [call, ...others] = pending.filter(({ toolCallId }) => toolCallId.endsWith(given))
  if (call !== undefined && others.length === 0) return call
  const waiting = pending.map(({ toolCallId }) => toolCallId).join(', ') || 'none'
  if (call !== undefined)
    throw new CommandError(
      'usage',
      `${given} fits several calls that wait (${waiting}). Give more of the id.`,
    )
  throw new CommandError(
    'not_found',
    `No call ${given} of run ${state.runId} waits for an approval. Waiting: ${waiting}. ` +
      `See the run: ${commandLine(programName, 'show', ledgerPath, state.runId)}`,
  )
}
