import { createHash } from 'node:crypto'
import { userInfo } from 'node:os'
import { isDeepStrictEqual } from 'node:util'
import type { Ledger, PendingApproval, RunId } from '@tallystick/core'
import { inputFaultOf } from '@tallystick/core/internal'
import {
  canonicalJson,
  type JsonObject,
  type OutsideCommand,
  type ToolCallId,
} from '@tallystick/core/vocabulary'
import { foldTo } from '@tallystick/ledger'
import { type CommandContext, commandLine } from '../command/context.ts'
import { CommandError, type ExitCode, exitCodes } from '../command/exit-code.ts'
import { prettyJson } from '../command/text.ts'
import { findCall, findRun, parentsOf } from '../runs/find-run.ts'
import { withLedger } from '../runs/open-ledger.ts'
import { waitsOf } from '../runs/run-status.ts'

/** The name of the account that this process runs under, for the record of who decided. */
export function accountName(): string {
  return userInfo().username
}

/** Puts a command into a run's inbox. The same command put twice is one entry; answers whether it is new. */
export function putCommand(ledger: Ledger, runId: RunId, command: OutsideCommand): Promise<boolean> {
  const digest = createHash('sha256').update(canonicalJson(command)).digest('hex')
  return ledger.put(runId, { key: `${command.type}:${digest}`, command, at: Date.now() })
}

/** What was put into which inbox. */
export interface Acknowledgement {
  readonly ledger: Ledger
  readonly ledgerPath: string
  readonly runId: RunId
  readonly command: OutsideCommand
  /** Whether the command was put now, not before. */
  readonly added: boolean
  /** The call that it decides about. */
  readonly call?: PendingApproval
}

/** Prints which command was put, and which run takes it: the run at the top, where this one is a child run. */
export async function acknowledge(context: CommandContext, put: Acknowledgement): Promise<void> {
  const { ledger, ledgerPath, runId, command, added, call } = put
  const top = (await parentsOf(ledger, runId)).at(-1)
  const next = commandLine(context.programName, 'resume', ledgerPath, top ?? runId)
  const whose = `run ${runId}${top === undefined ? '' : `, a child run of ${top}`}`
  if (context.json)
    return context.print(`${JSON.stringify({ runId, command, added, ...(call && { call }), next })}\n`)
  context.say(
    added
      ? `Recorded: ${command.type} for ${whose}.`
      : `This was asked for before: ${command.type} for ${whose}.`,
  )
  if (call) context.say(decisionText(call, command))
  context.say(
    'A process that drives the run takes the command up. Without such a process, this continues the run:',
  )
  await context.print(`${next}\n`)
}

/** What was decided about, whole, as it will run. */
function decisionText({ name, toolCallId, input }: PendingApproval, command: OutsideCommand): string {
  const head = `${name} ${toolCallId}`
  if (command.type === 'deny')
    return `${head} will not run: ${command.reason}\nAsked for: ${prettyJson(input)}`
  const changed = command.type === 'approve' ? command.input : undefined
  if (changed === undefined) return `${head} will run with: ${prettyJson(input)}`
  return `${head} will run with: ${prettyJson(changed)}\nin the place of: ${prettyJson(input)}`
}

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
