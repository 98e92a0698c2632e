import { createHash } from 'node:crypto'
import { userInfo } from 'node:os'
import type { Ledger, PendingApproval, RunId } from '@tallystick/core'
import type { OutsideCommand } from '@tallystick/core/vocabulary'
import { canonicalJson } from '@tallystick/core/vocabulary'
import type { CommandContext } from '../command/command-context.ts'
import { commandLine } from '../command/command-context.ts'
import { prettyJson } from '../view/text/pretty-json.ts'
import { parentsOf } from '../lookup/parent-of.ts'

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
