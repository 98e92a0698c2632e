import type { Subject } from 'rxjs'
import { recordsInput, rulesOfCommand } from '../../machine/decide/outside-commands.ts'
import { audit } from '../../machine/laws/invariants.ts'
import { isSuspended } from '../../machine/next/next-action.ts'
import type { Refusal } from '../../machine/state/decision.ts'
import type { RunState } from '../../machine/state/state.ts'
import type { Clock } from '../../ports/clock.ts'
import type { Ledger } from '../../ports/ledger.ts'
import type { OutsideCommand } from '../../vocabulary/events/command.ts'
import type { RuntimeEvent } from '../../vocabulary/events/event.ts'
import type { RunId } from '../../vocabulary/values/ids.ts'
import { caughtUp, changesOf } from '../../ports/changes-of.ts'
import { stateOf } from '../reading/load-state.ts'
import type { CommandAcknowledgements } from './command-acknowledgement.ts'

/** How often the ledger is asked whether a process drives the run. */
const pollIntervalMs = 1_000

/** How long the writer of a run may leave a command in its inbox, where the ledger knows of it, and where it cannot. */
const patienceMs = { known: 30_000, unknown: 5_000 } as const

/** What waiting for the writer of another process needs. */
interface LeavingRun {
  readonly runId: RunId
  readonly ledger: Ledger
  readonly clock: Clock
  readonly acknowledgements: CommandAcknowledgements
  /** Gets every event that the other process records. */
  readonly live: Subject<RuntimeEvent>
}

/** A command in the inbox of a run, and the run's last event before it was put there. */
interface LeftCommand {
  readonly command: OutsideCommand
  readonly afterSeq: number
}

/** Commands that this process has put into the inbox of a run, and that another process may decide. */
export class LeftCommands {
  readonly #run: LeavingRun
  readonly #left = new Map<string, LeftCommand>()

  constructor(run: LeavingRun) {
    this.#run = run
  }

  /** Adds a command that is put into the inbox next. */
  async add(key: string, command: OutsideCommand): Promise<void> {
    const { ledger, runId } = this.#run
    this.#left.set(key, { command, afterSeq: (await ledger.head(runId))?.seq ?? 0 })
  }

  delete(key: string): void {
    this.#left.delete(key)
  }

  /**
   * Leaves the commands to the process that drives their run, for taking the run over would interrupt what that process
   * has under way. Acknowledges each command by what is on record when it has left the inbox, and returns the state in
   * which the run stopped; `undefined` where no process seems to drive the run, so that this one has to. Ends early
   * where the waiter is drained.
   */
  async decidedElsewhere(waiter: { readonly isDrained: boolean }): Promise<RunState | undefined> {
    const { runId, ledger, clock, acknowledgements, live } = this.#run
    let state = await stateOf(ledger, runId)
    if (state === undefined || !(await isDrivenElsewhere(state, ledger))) return undefined
    const begunAt = clock.now()
    const poll = { clock, delayMs: () => pollIntervalMs }
    const changes = changesOf(ledger, runId, { after: state.seq, poll })
    for await (const event of changes) {
      if (event !== caughtUp) {
        state = audit(state, event)
        live.next(event)
        continue
      }
      // After the events: the command that ended the run is acknowledged, too.
      await this.acknowledgeTaken()
      const stops = state.phase === 'done' || (!acknowledgements.hasPending && isSuspended(state))
      if (stops || waiter.isDrained) return state
      const isLeft = await isLeftAlone(state, ledger, acknowledgements.hasPending ? clock.now() - begunAt : 0)
      if (isLeft && !changes.isWoken) return undefined
    }
    return state
  }

  /** Acknowledges the commands that have left the inbox. */
  async acknowledgeTaken(): Promise<void> {
    const { runId, ledger, acknowledgements } = this.#run
    const delivered = acknowledgements.deliveredKeys
    if (delivered.length === 0) return
    const waiting = new Set((await ledger.inbox(runId)).map(({ key }) => key))
    for (const key of delivered) {
      const left = this.#left.get(key)
      if (left === undefined || waiting.has(key)) continue
      acknowledgements.acknowledge(key, await recordedRefusal(ledger, runId, key, left))
    }
  }
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

/** Returns the refusal of a command that has left the inbox; `undefined` where the run is on record to have obeyed it. */
async function recordedRefusal(
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
    // Processes of older releases record no key of the inbox.
    if (event.inboxKey === undefined && rulesOfCommand(command.type).isRecordedBy(event, command)) return true
  }
  return false
}

function refusedElsewhere(runId: RunId, { type }: OutsideCommand): Refusal {
  const message = `The process that drives run ${runId} has read the command ${type} and did not obey it, for the run stood otherwise by then; show the run to see how.`
  return { code: rulesOfCommand(type).usualRefusal, message }
}
