import type { OutsideCommand } from '../../vocabulary/events/command.ts'
import type { RunId } from '../../vocabulary/values/ids.ts'
import type { HubOptions } from './coordinator-options.ts'
import type { CommandReceipt } from '../commands/command-acknowledgement.ts'

/** A command about a call of another run: what became of it, and when what followed from it has come up to this run. */
export interface ForwardedCommand {
  readonly receipt: Promise<CommandReceipt>
  readonly followed: Promise<void>
}

/** Who sends it on. */
interface Sender extends HubOptions {
  /** Resolves when the run of the sender is there. */
  readonly existing: Promise<unknown>
  /** What the application gave that run. */
  readonly context: unknown
}

/** Sends a command about a call of a child run to that run, once the run of these options is there. */
export function forwardedCommand(
  command: OutsideCommand,
  owner: RunId,
  { runId, hubOf, worksFor, existing, context }: Sender,
): ForwardedCommand {
  const child = hubOf(owner)
  const send = async (): Promise<CommandReceipt> => {
    await existing
    if (await worksFor(owner, runId)) {
      child.give(context)
      return await child.send(command)
    }
    const message = `Run ${runId} has no open tool call of that id, nor has a run that works for it; show the run to see which wait.`
    return { accepted: false, code: 'unknown_call', message }
  }
  const receipt = send()
  const follow = async (): Promise<void> => {
    if (!(await receipt).accepted) return
    await child.result
    await child.reported
  }
  return { receipt, followed: follow() }
}
