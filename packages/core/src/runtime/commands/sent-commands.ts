import { recordsInput, rulesOfCommand } from '../../machine/decide.ts'
import type { Refusal } from '../../machine/rules.ts'
import { LedgerConflictError } from '../../values/errors.ts'
import type { Clock } from '../../values/host.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import type { OutsideCommand } from '../../events/commands.ts'
import type { RunId } from '../../values/ids.ts'
import { mayBeDecidedBefore, namingDecider } from './decided-before.ts'

/** The answer to a command: it was accepted, or refused and why. A refusal is an answer, not an error. */
export type CommandAcknowledgement = { readonly accepted: true } | ({ readonly accepted: false } & Refusal)

/** A command whose sender waits for the acknowledgement. */
interface SentCommand {
  readonly command: OutsideCommand
  /** The run's last event before the command was put, where another process may decide about it. */
  afterSeq: number | undefined
  /** Whether the command is in the inbox, or was. */
  isDelivered: boolean
  resolve(acknowledgement: CommandAcknowledgement | Promise<CommandAcknowledgement>): void
  reject(error: unknown): void
}

/**
 * The commands that this process has sent to a run and that are not acknowledged yet, by their key in the inbox. The
 * run's writer acknowledges them; where it is another process, the events that it has recorded do.
 */
export class SentCommands {
  readonly #runId: RunId
  readonly #ledger: Ledger
  readonly #clock: Clock
  // Most runs are sent none.
  #sent: Map<string, SentCommand> | undefined
  #deliveries: Set<Promise<void>> | undefined

  constructor(runId: RunId, ledger: Ledger, clock: Clock) {
    this.#runId = runId
    this.#ledger = ledger
    this.#clock = clock
  }

  /** Delivers a command into the inbox, and answers when a process has decided about it. Rejects for a key that waits already. */
  async send(
    command: OutsideCommand,
    key: string,
    deliver: () => Promise<void>,
  ): Promise<CommandAcknowledgement> {
    if (this.#sent?.has(key)) throw sentBefore(this.#runId, key)
    const { promise, resolve, reject } = Promise.withResolvers<CommandAcknowledgement>()
    const sent: SentCommand = { command, afterSeq: undefined, isDelivered: false, resolve, reject }
    this.#sent = (this.#sent ?? new Map()).set(key, sent)
    const delivery = deliver().then(
      () => void (sent.isDelivered = true),
      (error: unknown) => this.fail(error, key),
    )
    const deliveries = (this.#deliveries ??= new Set())
    const settled = delivery.finally(() => deliveries.delete(settled))
    deliveries.add(settled)
    return await promise
  }

  /** Has a command that is put into the inbox next acknowledged by what another process records after this moment. */
  async leave(key: string): Promise<void> {
    const seq = (await this.#ledger.head(this.#runId))?.seq ?? 0
    const sent = this.#sent?.get(key)
    if (sent) sent.afterSeq = seq
  }

  acknowledge(key: string, refusal: Refusal | undefined): void {
    const sent = this.#take(key)
    sent?.resolve(refusal ? this.refused(sent.command, refusal) : { accepted: true })
  }

  /** The acknowledgement of a refused command: to a decision that came too late, with who decided and how. */
  refused(
    command: OutsideCommand,
    refusal: Refusal,
  ): CommandAcknowledgement | Promise<CommandAcknowledgement> {
    if (!mayBeDecidedBefore(command, refusal)) return { accepted: false, ...refusal }
    const record = { ledger: this.#ledger, clock: this.#clock, runId: this.#runId }
    const named = namingDecider(refusal, command, record)
    return named.then((better) => ({ accepted: false, ...better }))
  }

  /** Acknowledges the commands that were left to another process and are not in the inbox any more. */
  async acknowledgeLeft(): Promise<void> {
    const delivered = this.deliveredKeys
    if (delivered.length === 0) return
    const waiting = new Set((await this.#ledger.inbox(this.#runId)).map(({ key }) => key))
    for (const key of delivered) {
      const { command, afterSeq } = this.#sent?.get(key) ?? {}
      if (command === undefined || afterSeq === undefined || waiting.has(key)) continue
      const isObeyed = await this.#isRecorded(key, command, afterSeq)
      this.acknowledge(key, isObeyed ? undefined : refusedElsewhere(this.#runId, command))
    }
  }

  /** Whether a sender still waits for an acknowledgement. */
  get hasPending(): boolean {
    return this.#sent !== undefined && this.#sent.size > 0
  }

  /** The keys of undecided commands that are in the inbox, or were. */
  get deliveredKeys(): readonly string[] {
    return [...(this.#sent ?? [])].flatMap(([key, { isDelivered }]) => (isDelivered ? [key] : []))
  }

  /** The run is over: whatever was still asked is refused. */
  refuseAll(refusal: Refusal): void {
    for (const key of this.#keys) this.acknowledge(key, refusal)
  }

  /** Rejects the sender of a command that this process will not decide, or all senders where no key is given. */
  fail(error: unknown, key?: string): void {
    for (const each of key === undefined ? this.#keys : [key]) this.#take(each)?.reject(error)
  }

  /** Resolves when every command that was sent so far is in the inbox. */
  async allDelivered(): Promise<void> {
    while (this.#deliveries && this.#deliveries.size > 0) await Promise.all(this.#deliveries)
  }

  get #keys(): readonly string[] {
    return [...(this.#sent?.keys() ?? [])]
  }

  #take(key: string): SentCommand | undefined {
    const sent = this.#sent?.get(key)
    this.#sent?.delete(key)
    return sent
  }

  /** Whether the run is on record to have obeyed a command that was put after an event. */
  async #isRecorded(key: string, command: OutsideCommand, afterSeq: number): Promise<boolean> {
    for await (const event of this.#ledger.read(this.#runId, { fromSeq: afterSeq + 1 })) {
      // Input that was put twice has its place by the first entry.
      if (event.inboxKey === key || recordsInput(event, command)) return true
      // Processes of older releases record no key of the inbox.
      if (event.inboxKey === undefined && rulesOfCommand(command.type).isRecordedBy(event, command))
        return true
    }
    return false
  }
}

/** Whether another process took the run over in the moment in which this one did. */
export function isOvertaken(error: unknown): boolean {
  return error instanceof LedgerConflictError && (error.kind === 'epoch' || error.kind === 'seq')
}

/** A command under a key that another command has had. */
export function sentBefore(runId: RunId, key: string): LedgerConflictError {
  const message = `Run ${runId} has had a command of the key ${key} before, so this one was not sent. Show the run to see what became of the first; send another command under another key.`
  return new LedgerConflictError('unique', message)
}

function refusedElsewhere(runId: RunId, { type }: OutsideCommand): Refusal {
  const message = `The process that drives run ${runId} has read the command ${type} and did not obey it, for the run stood otherwise by then; show the run to see how.`
  return { code: rulesOfCommand(type).usualRefusal, message }
}
