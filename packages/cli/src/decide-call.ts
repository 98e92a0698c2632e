import { isDeepStrictEqual } from 'node:util'
import type { Ledger, OutsideCommand, PendingApproval, RunId, ToolCallId } from '@tallystick/core'
import { foldTo } from '@tallystick/ledger'
import type { CommandContext } from './command-context.ts'
import { commandLine } from './command-context.ts'
import type { ExitCode } from './exit-code.ts'
import { CommandError, exitCodes } from './exit-code.ts'
import { findRun } from './find-run.ts'
import { accountName, acknowledge, putCommand } from './inbox.ts'
import { withLedger } from './open-ledger.ts'
import { employersOf } from './parent-of.ts'
import { waitsOf } from './waits.ts'

/** A decision about one call, as the command line gives it. */
export interface DecideCallOptions {
  readonly ledger: string
  /** The run that asks, or one that it works for. */
  readonly run: string
  /** A call's id, or an unambiguous end of it. */
  readonly call: string
  readonly by?: string
  readonly command: (toolCallId: ToolCallId, by: string) => OutsideCommand
}

/** Puts a decision about a call that waits for one into the inbox of the run that asks. */
export function decideCall(context: CommandContext, options: DecideCallOptions): Promise<ExitCode> {
  const { ledger: ledgerPath, run, call, by = accountName() } = options
  const { programName } = context
  return withLedger(ledgerPath, 'write', async (ledger) => {
    const named = await findRun(ledger, run, { programName, ledgerPath })
    const { approvals } = await waitsOf(ledger, await foldTo(ledger, named))
    const show = commandLine(programName, 'show', ledgerPath, named)
    const { toolCallId, runId } = pendingCall(approvals, call, { named, show })
    const command = options.command(toolCallId, by)
    await assertFirst(ledger, runId, command)
    const added = await putCommand(ledger, runId, command)
    await acknowledge(context, { ledger, ledgerPath, runId, command, added })
    return exitCodes.ok
  })
}

/**
 * A call is decided once: what comes second would be refused by the run's writer, so it is refused here, in words. The
 * first may lie with the run that asks, or with one that it works for.
 */
async function assertFirst(ledger: Ledger, owner: RunId, command: OutsideCommand): Promise<void> {
  const inboxes: OutsideCommand[] = []
  for (const runId of [owner, ...(await employersOf(ledger, owner))]) {
    inboxes.push(...(await ledger.inbox(runId)).map((entry) => entry.command))
  }
  for (const earlier of inboxes) {
    if (!('toolCallId' in earlier && 'toolCallId' in command)) continue
    if (earlier.toolCallId !== command.toolCallId || isDeepStrictEqual(earlier, command)) continue
    throw new CommandError(
      'refused',
      `Call ${earlier.toolCallId} is decided already: ${earlier.type}${'by' in earlier ? ` by ${earlier.by}` : ''} waits for the run's writer. A call is decided once.`,
    )
  }
}

/** The run that was named, and the command that shows it. */
interface Asked {
  readonly named: RunId
  readonly show: string
}

function pendingCall(
  pending: readonly PendingApproval[],
  given: string,
  { named, show }: Asked,
): PendingApproval {
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
    `No call ${given} of run ${named}, or of a run that works for it, waits for an approval. Waiting: ${waiting}. See the run: ${show}`,
  )
}
