import { audit } from '../../machine/laws/invariants.ts'
import { isSuspended } from '../../machine/next/next-action.ts'
import type { Refusal } from '../../machine/state/decision.ts'
import type { RunState } from '../../machine/state/state.ts'
import type { Clock } from '../../ports/clock.ts'
import type { Ledger } from '../../ports/ledger.ts'
import type { OutsideCommand } from '../../vocabulary/events/command.ts'
import type { RuntimeEvent } from '../../vocabulary/events/event.ts'
import type { RunId } from '../../vocabulary/values/ids.ts'
import { caughtUp, changesOf } from '../reading/changes-of.ts'
import { stateOf } from '../reading/load-state.ts'
import type { CommandAcknowledgements } from './command-acknowledgement.ts'

/** How often the ledger is asked whether a process drives the run. */
const pollIntervalMs = 1_000

/** How long the writer of a run may leave a command in its inbox, where the ledger knows of it, and where it cannot. */
const patienceMs = { known: 30_000, unknown: 5_000 } as const

/** A command in the inbox of a run, and the run's last event before it was put there. */
export interface LeftCommand {
  readonly command: OutsideCommand
  readonly afterSeq: number
}

/** What waiting for the writer of another process needs. */
export interface LeftCommands {
  readonly runId: RunId
  readonly ledger: Ledger
  readonly clock: Clock
  readonly acknowledgements: CommandAcknowledgements
  /** The commands that this process has sent, by their keys. */
  readonly sent: ReadonlyMap<string, LeftCommand>
  /** Gets every event that the other process records. */
  readonly onEvent: (event: RuntimeEvent) => void
  readonly isDrained: () => boolean
}

/**
 * Leaves commands to the process that drives their run, for taking the run over would interrupt what that process has
 * under way. Acknowledges each command by what is on record when it has left the inbox, and returns the state in
 * which the run stopped; `undefined` where no process seems to drive the run, so that this one has to.
 */
export async function awaitDecisionElsewhere(commands: LeftCommands): Promise<RunState | undefined> {
  const { runId, ledger } = commands
  const state = await stateOf(ledger, runId)
  if (state === undefined || !(await isDrivenElsewhere(state, ledger))) return undefined
  return await followUntilDecided(state, commands)
}

async function followUntilDecided(from: RunState, commands: LeftCommands): Promise<RunState | undefined> {
  const { runId, ledger, clock, acknowledgements, onEvent, isDrained } = commands
  const begunAt = clock.now()
  const poll = { clock, delayMs: () => pollIntervalMs }
  const changes = changesOf(ledger, runId, { after: from.seq, poll })
  let state = from
  for await (const event of changes) {
    if (event !== caughtUp) {
      state = audit(state, event)
      onEvent(event)
      continue
    }
    // After the events: the command that ended the run is acknowledged, too.
    await acknowledgeTaken(commands)
    const stops = state.phase === 'done' || (!acknowledgements.hasPending && isSuspended(state))
    if (stops || isDrained()) return state
    const isLeft = await isLeftAlone(state, ledger, acknowledgements.hasPending ? clock.now() - begunAt : 0)
    if (isLeft && !changes.isWoken) return undefined
  }
  return state
}

/** Whether no process reads the commands in the inbox. */
async function isLeftAlone(state: RunState, ledger: Ledger, waitedMs: number): Promise<boolean> {
  const driven = await isDrivenElsewhere(state, ledger)
  return driven === false || waitedMs >= (driven === 'unknown' ? patienceMs.unknown : patienceMs.known)
}

/** A run that waits has nothing under way that a take-over could interrupt. */
async function isDrivenElsewhere(state: RunState, ledger: Ledger): Promise<boolean | 'unknown'> {
  if (state.phase === 'done') return false
  const driven = await ledger.isDriven?.(state.runId)
  return driven ?? (isSuspended(state) ? false : 'unknown')
}

/** Acknowledges the commands that have left the inbox. */
export async function acknowledgeTaken({
  runId,
  ledger,
  acknowledgements,
  sent,
}: LeftCommands): Promise<void> {
  const delivered = acknowledgements.deliveredKeys
  if (delivered.length === 0) return
  const waiting = new Set((await ledger.inbox(runId)).map(({ key }) => key))
  for (const key of delivered) {
    const left = sent.get(key)
    if (left === undefined || waiting.has(key)) continue
    const obeyed = await isRecorded(ledger, runId, key, left)
    acknowledgements.acknowledge(key, obeyed ? undefined : refusedElsewhere(runId, left.command))
  }
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
