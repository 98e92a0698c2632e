import type { OutsideCommand } from '../../events/commands.ts'
import { runIdOfCall, type RunId } from '../../values/ids.ts'
import { deepFreeze } from '../../values/json.ts'
import { unlessEnded } from '../../ledger/append-rules.ts'
import type { RelatedRun } from '../children/related-runs.ts'
import { refusedAtEnd, refusedByDrain, unknownCall } from '../commands/closed-refusals.ts'
import { sentBefore, type CommandAcknowledgement } from '../commands/sent-commands.ts'
import { changedInputRefusal } from '../drive/changed-input-check.ts'
import type { DriveSession } from './drive-session.ts'
import type { HeldRun } from './held-run.ts'

/** The run that commands are sent to, as its coordinator has it. */
export interface Recipient {
  /** Resolves when the run is there. */
  readonly created: Promise<unknown>
  readonly isDone: boolean
  /** The failure after which this process drives the run no more. */
  readonly failure: { readonly error: unknown } | undefined
  /** The drive session under way. */
  readonly session: DriveSession | undefined
  /** Begins a drive session in which the commands that were sent are decided, here or elsewhere. */
  awaitDecisions(): void
}

/** Sends commands to a run by way of the inbox in the ledger, and to its child runs, and gets their acknowledgements. */
export class CommandDelivery {
  readonly #run: HeldRun
  readonly #recipient: Recipient
  /** Commands on their way: about calls of child runs, until what became of them has come up, or being checked. */
  readonly onTheirWay: PendingWork = new PendingWork()

  constructor(run: HeldRun, recipient: Recipient) {
    this.#run = run
    this.#recipient = recipient
  }

  /** Sends a command under a key that is unique for ever, and sees to it that a process decides it. */
  send(given: OutsideCommand, key: string): Promise<CommandAcknowledgement> {
    const command = deepFreeze(given)
    const { runId, runs, sent } = this.#run
    if (this.#recipient.isDone) return Promise.resolve(sent.refused(command, refusedAtEnd(runId)))
    if (runs.isDrained) return Promise.resolve({ accepted: false, ...refusedByDrain(runId) })
    const targetRunId = 'toolCallId' in command ? runIdOfCall(command.toolCallId) : undefined
    if (targetRunId !== undefined && targetRunId !== runId) return this.#forward(command, targetRunId)
    return command.type === 'approve' && command.input
      ? this.#sendChecked(command, key)
      : this.#deliver(command, key)
  }

  /** Approves a call with another input, once that is known to run: else its sender is refused with the reason, and the model reads nothing of it. */
  #sendChecked(command: OutsideCommand, key: string): Promise<CommandAcknowledgement> {
    const acknowledgement = this.#recipient.created
      .then(() => changedInputRefusal(command, this.#run))
      .then((fault) => (fault ? { accepted: false as const, ...fault } : this.#deliver(command, key)))
    this.onTheirWay.add(acknowledgement)
    return acknowledgement
  }

  #deliver(command: OutsideCommand, key: string): Promise<CommandAcknowledgement> {
    const { failure, session } = this.#recipient
    // A coordinator whose writer failed takes no run over again: resume makes a new handle for that.
    if (failure) return Promise.reject(failure.error)
    const acknowledgement = this.#run.sent.send(command, key, () => this.#put(command, key))
    if (session === undefined) this.#recipient.awaitDecisions()
    return acknowledgement
  }

  async #put(command: OutsideCommand, key: string): Promise<void> {
    const { runId, parts, sent } = this.#run
    const { ledger, host } = parts
    await this.#recipient.created
    if (!this.#recipient.session?.isWriter) await sent.leave(key)
    const isFresh = await unlessEnded(ledger.put(runId, { key, command, at: host.clock.now() }))
    if (isFresh === undefined) return sent.acknowledge(key, refusedAtEnd(runId))
    if (!isFresh) throw sentBefore(runId, key)
    this.#recipient.session?.wake()
  }

  /** A command about a call of a child run goes to that run; what becomes of it comes up to this one. */
  #forward(command: OutsideCommand, childId: RunId): Promise<CommandAcknowledgement> {
    const child = this.#run.runs.coordinatorOf(childId)
    const acknowledgement = this.#sendDown(command, childId, child)
    this.onTheirWay.add(followed(acknowledgement, child))
    return acknowledgement
  }

  async #sendDown(
    command: OutsideCommand,
    childId: RunId,
    child: RelatedRun,
  ): Promise<CommandAcknowledgement> {
    const { runId, runs, context } = this.#run
    await this.#recipient.created
    if (!(await runs.children.isDescendantOf(childId, runId))) {
      return { accepted: false, ...unknownCall(runId) }
    }
    child.inheritContext(context)
    return await child.send(command)
  }
}

/** Resolves when what followed from a command to a child run has come up to its parent. */
async function followed(acknowledgement: Promise<CommandAcknowledgement>, child: RelatedRun): Promise<void> {
  if (!(await acknowledgement).accepted) return
  await child.result
  await child.reported
}

/** Work that a result waits for, each piece from the moment it is added until it ends, well or not. */
class PendingWork {
  #pieces: Set<Promise<unknown>> | undefined

  get isEmpty(): boolean {
    return this.#pieces === undefined || this.#pieces.size === 0
  }

  add(work: Promise<unknown>): void {
    const pieces = (this.#pieces ??= new Set())
    const done: Promise<unknown> = work.catch(() => {}).finally(() => pieces.delete(done))
    pieces.add(done)
  }

  /** Resolves once nothing is left, what was added in the meantime included. */
  async ended(): Promise<void> {
    while (this.#pieces && this.#pieces.size > 0) await Promise.all(this.#pieces)
  }
}
