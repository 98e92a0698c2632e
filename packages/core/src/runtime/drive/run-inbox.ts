import type { Observer, Unsubscribable } from 'rxjs'
import { LedgerConflictError } from '../../values/errors.ts'
import type { Refusal } from '../../machine/rules.ts'
import type { RunState } from '../../machine/state.ts'
import type { Clock } from '../../values/host.ts'
import type { InboxEntry } from '../../ledger/ledger.ts'
import { outsideCommand, type OutsideCommand } from '../../events/commands.ts'
import { runIdOfCall, type RunId, type ToolCallId } from '../../values/ids.ts'
import { faultOf } from '../../values/schema.ts'
import { settleCommandOf } from '../children/child-ending.ts'
import { changedInputFault } from './changed-input-check.ts'
import type { Drive } from './drive.ts'
import type { Mail, Mailbox } from './mailbox.ts'

/** The writer for which the inbox is read. */
interface Writer {
  readonly epoch: number
  /** The state in which the commands find the run. */
  readonly state: RunState
}

/**
 * The inbox of a run as its writer reads it. Each entry is read once: it is posted into the mailbox, sent on to a child
 * run, or refused. It leaves the ledger with the append that takes its key.
 */
export class RunInbox implements Pick<Observer<void>, 'next' | 'error'> {
  readonly #drive: Drive
  readonly #clock: Clock
  readonly #mailbox: Mailbox
  /** The keys of entries that were read. */
  #seen: Set<string> | undefined
  /** Keys of entries that are dealt with, and that the next append takes out. */
  #spent: readonly string[] = []
  #isUnread = true
  #hints: Unsubscribable | undefined

  constructor(drive: Drive, clock: Clock, mailbox: Mailbox) {
    this.#drive = drive
    this.#clock = clock
    this.#mailbox = mailbox
  }

  /** Whether it may hold entries that were not read. */
  get isUnread(): boolean {
    return this.#isUnread
  }

  markUnread(): void {
    this.#isUnread = true
  }

  /** To be called where the run begins here: nothing was put into its inbox before its first event. */
  startsEmpty(): void {
    this.#isUnread = false
  }

  /** Has the writer read it at each hint of the ledger. */
  watch(): void {
    this.#hints = this.#drive.parts.ledger.changes(this.#drive.runId, 'inbox').subscribe(this)
  }

  unwatch(): void {
    this.#hints?.unsubscribe()
  }

  /** A hint of the ledger. */
  next(): void {
    this.markUnread()
    this.#mailbox.wake()
  }

  /** The hints of the ledger have failed. */
  error(error: unknown): void {
    const { runId, parts } = this.#drive
    parts.host.report(error, `The ledger stopped telling what comes into the inbox of run ${runId}`)
  }

  /** The keys that an append takes out when it records what followed from this mail. */
  keysWith(mail: readonly Mail[]): readonly string[] {
    const keys = [...this.#spent]
    for (const { key } of mail) if (key !== undefined) keys.push(key)
    return keys
  }

  /** Has the next append take these keys out. */
  spend(keys: readonly string[]): void {
    this.#spent = keys
  }

  /** An append has taken its keys out. */
  taken(): void {
    this.#spent = []
  }

  async read(writer: Writer): Promise<void> {
    this.#isUnread = false
    const { runId, parts, sent } = this.#drive
    const delivered = sent.deliveredKeys
    const entries = await parts.ledger.inbox(runId)
    if (delivered.length === 0 && entries.length === 0) return
    const seen = (this.#seen ??= new Set())
    const there = new Set(entries.map(({ key }) => key))
    const lost = delivered.filter((key) => !there.has(key) && !seen.has(key))
    if (lost.length > 0) await this.#rejectLost(lost, writer)
    for (const { key, command, at } of entries) {
      if (seen.has(key)) continue
      seen.add(key)
      const fault = faultOf(outsideCommand, command)
      if (fault) this.#refuseMalformed(key, fault)
      else await this.#accept({ key, command, at }, writer)
    }
  }

  /** A command about a call of a child run is for the child run to decide. */
  async #accept(entry: InboxEntry, { state }: Writer): Promise<void> {
    const { key, command } = entry
    const targetRunId = 'toolCallId' in command ? runIdOfCall(command.toolCallId) : undefined
    if (targetRunId !== undefined && targetRunId !== this.#drive.runId)
      return await this.#forward(entry, targetRunId)
    // Only what has to be asked about waits its turn: a cancel stops the run at once.
    if (command.type === 'approve' && command.input) {
      const fault = await this.#inputFault(command, state)
      if (fault) return this.#refuse(key, fault)
    }
    const message =
      command.type === 'settle' && command.child ? await this.#settlementOf(state, command) : command
    if (message) return this.#mailbox.post({ message, key })
    const what = 'the child run has not ended; its own ledger says what it used'
    this.#refuseMalformed(key, { path: 'child', what })
  }

  /** Input that an approver gives in the place of the model's is tried by the tool: the sender may not have had it. */
  #inputFault(command: OutsideCommand, state: RunState): Promise<Refusal | undefined> {
    const { parts, context } = this.#drive
    return changedInputFault(command, state, {
      agent: parts.agents.find(state.agent),
      clock: this.#clock,
      context,
    })
  }

  /** What a child run used is read from its own events, whatever a command says of it. */
  async #settlementOf(
    state: RunState,
    { toolCallId }: { readonly toolCallId: string },
  ): Promise<OutsideCommand | undefined> {
    const ending = await this.#drive.children.recordedEnding(state, toolCallId as ToolCallId)
    return ending && settleCommandOf(toolCallId, ending)
  }

  /** Its sender is in another process: one of this process sends it to the child run itself. */
  async #forward(entry: InboxEntry, targetRunId: RunId): Promise<void> {
    const { runId, children } = this.#drive
    this.spend([...this.#spent, entry.key])
    await children.forward(entry, targetRunId, runId)
  }

  /** Only the run's writer takes commands out of its inbox: those that are gone, another one has decided about. */
  async #rejectLost(keys: readonly string[], { epoch }: Writer): Promise<void> {
    const { parts, runId, sent } = this.#drive
    const taken = takenElsewhere(runId, keys)
    for (const key of keys) sent.fail(taken, key)
    if ((await parts.ledger.head(runId))?.epoch !== epoch) throw taken
  }

  /** Any process can put anything into an inbox: what is no command is taken out, and stops no run. */
  #refuseMalformed(key: string, { path, what }: { readonly path: string; readonly what: string }): void {
    const message = `The command ${key} for run ${this.#drive.runId} is wrong at ${path}: ${what}. No process can carry it out; send it again with the run's handle.`
    this.#refuse(key, { code: 'malformed', message })
  }

  #refuse(key: string, refusal: Refusal): void {
    this.spend([...this.#spent, key])
    this.#drive.sent.acknowledge(key, refusal)
  }
}

/** Another process took commands out of the inbox of a run, which it drove in between. */
function takenElsewhere(runId: RunId, keys: readonly string[]): LedgerConflictError {
  return new LedgerConflictError(
    'epoch',
    `Command ${keys.join(', ')} for run ${runId} was taken out of its inbox by another process, which drove the run ` +
      `in between. What became of it is on record: load the run with resume() and look before you ask again.`,
  )
}
