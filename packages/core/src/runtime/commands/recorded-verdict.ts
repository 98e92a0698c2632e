import { usualRefusals } from '../../machine/decide/decide-command.ts'
import { recordsCommand, recordsInput } from '../../machine/decide/recover-command.ts'
import type { Refusal } from '../../machine/state/decision.ts'
import type { Ledger } from '../../ports/ledger.ts'
import type { OutsideCommand } from '../../vocabulary/events/command.ts'
import type { RunId } from '../../vocabulary/values/ids.ts'

/** A command in the inbox of a run, and the run's last event before it was put there. */
export interface LeftCommand {
  readonly command: OutsideCommand
  readonly afterSeq: number
}

/** Returns the refusal of a command that has left the inbox; `undefined` where the run is on record to have obeyed it. */
export async function recordedRefusal(
  ledger: Ledger,
  runId: RunId,
  key: string,
  left: LeftCommand,
): Promise<Refusal | undefined> {
  return (await isRecorded(ledger, runId, key, left)) ? undefined : refusedElsewhere(runId, left.command)
}

async function isRecorded(
  ledger: Ledger,
  runId: RunId,
  key: string,
  { command, afterSeq }: LeftCommand,
): Promise<boolean> {
  for await (const event of ledger.read(runId, { fromSeq: afterSeq + 1 })) {
    // Input that was put twice has its place by the first entry.
    if (event.inboxKey === key || recordsInput(event, command)) return true
    if (event.inboxKey === undefined && recordsCommand(event, command)) return true
  }
  return false
}

function refusedElsewhere(runId: RunId, { type }: OutsideCommand): Refusal {
  const message = `The process that drives run ${runId} has read the command ${type} and did not obey it, for the run stood otherwise by then; show the run to see how.`
  return { code: usualRefusals[type], message }
}
