import type { OutsideCommand } from '../../vocabulary/events/command.ts'
import type { RunId } from '../../vocabulary/values/ids.ts'
import type { CoordinatorOptions } from './coordinator-options.ts'
import type { CommandAcknowledgement } from '../commands/command-acknowledgement.ts'

/** A command about a call of another run: what became of it, and when what followed from it has come up to this run. */
export interface ForwardedCommand {
  readonly acknowledgement: Promise<CommandAcknowledgement>
  readonly followed: Promise<void>
}

/** Who sends it on. */
interface Sender extends CoordinatorOptions {
  /** Resolves when the run of the sender is there. */
  readonly created: Promise<unknown>
  /** What the application gave that run. */
  readonly context: unknown
}

/** Sends a command about a call of a child run to that run, once the run of these options is there. */
export function forwardedCommand(
  command: OutsideCommand,
  childId: RunId,
  { runId, coordinatorOf, isDescendantOf, created, context }: Sender,
): ForwardedCommand {
  const child = coordinatorOf(childId)
  const send = async (): Promise<CommandAcknowledgement> => {
    await created
    if (await isDescendantOf(childId, runId)) {
      child.setContext(context)
      return await child.send(command)
    }
    const message = `Run ${runId} has no open tool call of that id, nor has a child run of it; show the run to see which wait.`
    return { accepted: false, code: 'unknown_call', message }
  }
  const acknowledgement = send()
  const follow = async (): Promise<void> => {
    if (!(await acknowledgement).accepted) return
    await child.result
    await child.reported
  }
  return { acknowledgement, followed: follow() }
}
