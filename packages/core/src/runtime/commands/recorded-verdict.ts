import type { Refusal } from '../../machine/state/decision.ts'
import type { Ledger } from '../../ports/ledger.ts'
import type { OutsideCommand } from '../../vocabulary/events/command.ts'
import type { RuntimeEvent } from '../../vocabulary/events/event.ts'
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
    if (event.inboxKey === key || isSameInput(event, command)) return true
    if (event.inboxKey === undefined && recordsCommand(event, command)) return true
  }
  return false
}

function isSameInput(event: RuntimeEvent, command: OutsideCommand): boolean {
  const isInput = command.type === 'steer' || command.type === 'queue'
  return isInput && event.type === 'input_received' && event.receipt === command.receipt
}

/** The same by what an event says: processes of older releases record no key. */
function recordsCommand(event: RuntimeEvent, command: OutsideCommand): boolean {
  switch (command.type) {
    case 'approve':
    case 'deny':
      return (
        event.type === 'approval_decided' &&
        event.toolCallId === command.toolCallId &&
        event.by === command.by &&
        event.approved === (command.type === 'approve')
      )
    case 'settle':
      return event.type === 'tool_result' && event.toolCallId === command.toolCallId
    case 'steer':
    case 'queue':
      return isSameInput(event, command)
    case 'cancel':
      return event.type === 'cancel_requested'
    case 'raise_limit':
      return event.type === 'limit_raised' && event.limit === command.limit && event.max === command.max
  }
}

const codes: Readonly<Record<OutsideCommand['type'], Refusal['code']>> = {
  approve: 'not_awaiting_approval',
  deny: 'not_awaiting_approval',
  settle: 'not_deferred',
  steer: 'cancelled',
  queue: 'cancelled',
  cancel: 'already_cancelled',
  raise_limit: 'not_raised',
}

function refusedElsewhere(runId: RunId, { type }: OutsideCommand): Refusal {
  const message = `The process that drives run ${runId} has read the command ${type} and did not obey it, for the run stood otherwise by then; show the run to see how.`
  return { code: codes[type], message }
}
