import { isDeepStrictEqual } from 'node:util'
import { type Ledger, type PendingApproval, type RunId } from '@tallystick/core'
import { inputFaultOf } from '@tallystick/core/kit'
import { type JsonObject, type OutsideCommand, type ToolCallId } from '@tallystick/core/vocabulary'
import { foldTo } from '@tallystick/ledger'
import type { CommandContext } from '../command/command-context.ts'
import { commandLine } from '../command/command-context.ts'
import type { ExitCode } from '../command/exit-code.ts'
import { CommandError, exitCodes } from '../command/exit-code.ts'
import { findCall } from '../lookup/find-call.ts'
import { findRun } from '../lookup/find-run.ts'
import { accountName, acknowledge, putCommand } from './inbox.ts'
import { withLedger } from '../ledger/open-ledger.ts'
import { parentsOf } from '../lookup/parent-of.ts'
import { waitsOf } from '../runs/waits.ts'

/** A decision about one call, as the command line gives it. */
export interface DecideCallOptions {
  readonly ledger: string
  /** The run that asks, or a parent of it. */
  readonly run: string
  /** A call's id, or an unambiguous end of it. */
  readonly call: string
  readonly by?: string
  readonly command: (toolCallId: ToolCallId, by: string) => OutsideCommand
}

/** Puts a decision about a call that waits for one into the inbox of the run that asks. */
export function decideCall(context: CommandContext, options: DecideCallOptions): Promise<ExitCode> {
  const { ledger: ledgerPath, run, by = accountName() } = options
  const { programName } = context
  return withLedger(ledgerPath, 'write', async (ledger) => {
    const named = await findRun(ledger, run, { programName, ledgerPath })
    const { approvals } = await waitsOf(ledger, await foldTo(ledger, named))
    const show = commandLine(programName, 'show', ledgerPath, named)
    const call = await findCall(options.call, {
      ledger,
      named,
      waiting: approvals,
      awaited: 'an approval',
      show,
    })
    const { toolCallId, runId } = call
    const { attempt, inputDigest } = call
    const command = { ...options.command(toolCallId, by), attempt, inputDigest }
    await assertFirst(ledger, runId, command)
    if (command.type === 'approve' && command.input) await assertFits(ledger, call, command.input)
    const added = await putCommand(ledger, runId, command)
    await acknowledge(context, { ledger, ledgerPath, runId, command, added, call })
    return exitCodes.ok
  })
}

/**
 * A call is decided once: what comes second would be refused by the run's writer, so it is refused here, in words. The
 * first may lie with the run that asks, or with a parent of it.
 */
async function assertFirst(ledger: Ledger, owner: RunId, command: OutsideCommand): Promise<void> {
  const inboxes: OutsideCommand[] = []
  for (const runId of [owner, ...(await parentsOf(ledger, owner))]) {
    inboxes.push(...(await ledger.inbox(runId)).map((entry) => entry.command))
  }
  for (const earlier of inboxes) {
    if (!('toolCallId' in earlier && 'toolCallId' in command)) continue
    if (earlier.toolCallId !== command.toolCallId || isDeepStrictEqual(earlier, command)) continue
    throw new CommandError(
      'refused',
      `Call ${earlier.toolCallId} is decided already: ${earlier.type}${'by' in earlier ? ` by ${earlier.by}` : ''} waits for the run's writer. A call is decided once: resume the run, or wait until its writer has read that.`,
    )
  }
}

/** What another input may be, the schema on record says; the tool's own code is where the run is driven. */
async function assertFits(
  ledger: Ledger,
  { runId, name, toolCallId }: PendingApproval,
  input: JsonObject,
): Promise<void> {
  const { definition } = await foldTo(ledger, runId)
  const tool = definition.tools.find((each) => each.name === name)
  const fault = tool && inputFaultOf(tool.inputSchema, input)
  if (fault === undefined) return
  throw new CommandError(
    'usage',
    `The input does not fit the schema of ${name}, so nothing was recorded: ${fault}. Correct --input; call ${toolCallId} still waits.`,
  )
}
