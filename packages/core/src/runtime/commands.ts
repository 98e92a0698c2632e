import { type OutsideCommand, outsideCommand, type OutsideCommandOf } from '../events/commands.ts'
import type { Ledger } from '../ledger/ledger.ts'
import {
  commandEventTypes,
  getCommandRules,
  isSameCommand,
  recordsCommand,
  recordsInput,
} from '../machine/decide.ts'
import { describeFinished, type Refusal } from '../machine/rules.ts'
import { LedgerConflictError } from '../values/errors.ts'
import type { Clock } from '../values/host.ts'
import type { RunId, ToolCallId } from '../values/ids.ts'
import { unseen } from '../values/text.ts'

/** The answer to a command: it was accepted, or refused and why. A refusal is an answer, not an error. */
export type CommandAcknowledgement = { readonly accepted: true } | ({ readonly accepted: false } & Refusal)

/** Work that others wait for, each piece from the moment it is added until it ends, well or not. */
export class PendingWork {
  readonly #pieces = new Set<Promise<unknown>>()

  get isEmpty(): boolean {
    return this.#pieces.size === 0
  }

  add(work: Promise<unknown>): void {
    const done: Promise<unknown> = work.catch(() => {}).finally(() => this.#pieces.delete(done))
    this.#pieces.add(done)
  }

  /** Resolves once nothing is left, what was added in the meantime included. */
  async ended(): Promise<void> {
    while (this.#pieces.size > 0) await Promise.all(this.#pieces)
  }
}

/** A command whose sender waits for the acknowledgement. */
interface SentCommand {
  readonly command: OutsideCommand
  /** The run's last event before the command was put, where another process may decide about it. */
  afterSeq: number | undefined
  /** The command is in the inbox, or was. */
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
  readonly #sent = new Map<string, SentCommand>()
  readonly #deliveries = new PendingWork()

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
    if (this.#sent.has(key)) throw createDuplicateSendError(this.#runId, key)
    const { promise, resolve, reject } = Promise.withResolvers<CommandAcknowledgement>()
    const sent: SentCommand = { command, afterSeq: undefined, isDelivered: false, resolve, reject }
    this.#sent.set(key, sent)
    this.#deliveries.add(
      deliver().then(
        () => void (sent.isDelivered = true),
        (error: unknown) => this.fail(error, key),
      ),
    )
    return await promise
  }

  /** Makes the next command in the inbox be acknowledged by the events that another process records from now on. */
  async leave(key: string): Promise<void> {
    const seq = (await this.#ledger.head(this.#runId))?.seq ?? 0
    const sent = this.#sent.get(key)
    if (sent) sent.afterSeq = seq
  }

  acknowledge(key: string, refusal: Refusal | undefined): void {
    const sent = this.#take(key)
    sent?.resolve(refusal ? this.refused(sent.command, refusal) : { accepted: true })
  }

  /**
   * The acknowledgement of a refused command: to a decision that came too late, with who decided and how. A ledger that fails,
   * or does not answer in a second, changes nothing: the decision is refused either way.
   */
  refused(
    command: OutsideCommand,
    refusal: Refusal,
  ): CommandAcknowledgement | Promise<CommandAcknowledgement> {
    const plain = { accepted: false as const, ...refusal }
    const isDecision = command.type === 'approve' || command.type === 'deny'
    if (!isDecision || !tellsLittle.has(refusal.code)) return plain
    const timeout = Promise.withResolvers<undefined>()
    const stopTimer = this.#clock.schedule(maxLookMs, () => timeout.resolve(undefined))
    const found = findDecider(refusal, command, this.#ledger, this.#runId).catch(() => undefined)
    return Promise.race([found, timeout.promise])
      .finally(stopTimer)
      .then((better) => (better ? { accepted: false, ...better } : plain))
  }

  /** Acknowledges the commands that were left to another process and are not in the inbox any more. */
  async acknowledgeLeft(): Promise<void> {
    const delivered = this.deliveredKeys
    if (delivered.length === 0) return
    const waiting = new Set((await this.#ledger.inbox(this.#runId)).map(({ key }) => key))
    for (const key of delivered) {
      const { command, afterSeq } = this.#sent.get(key) ?? {}
      if (command === undefined || afterSeq === undefined || waiting.has(key)) continue
      const isObeyed = await this.#isRecorded(key, command, afterSeq)
      const message = `The process that drives run ${this.#runId} has read the command ${command.type} and refused it: the run had moved on; show the run to see how.`
      const { usualRefusal: code } = getCommandRules(command.type)
      this.acknowledge(key, isObeyed ? undefined : { code, message })
    }
  }

  /** True while a sender waits for an acknowledgement. */
  get hasPending(): boolean {
    return this.#sent.size > 0
  }

  /** The keys of undecided commands that are in the inbox, or were. */
  get deliveredKeys(): readonly string[] {
    return [...this.#sent].flatMap(([key, { isDelivered }]) => (isDelivered ? [key] : []))
  }

  /** The run is over: whatever was still asked is refused. */
  refuseAll(refusal: Refusal): void {
    for (const key of [...this.#sent.keys()]) this.acknowledge(key, refusal)
  }

  /** Rejects the sender of a command that this process will not decide, or all senders if no key is given. */
  fail(error: unknown, key?: string): void {
    for (const each of key === undefined ? [...this.#sent.keys()] : [key]) this.#take(each)?.reject(error)
  }

  /** Resolves when every command that was sent so far is in the inbox. */
  async allDelivered(): Promise<void> {
    await this.#deliveries.ended()
  }

  #take(key: string): SentCommand | undefined {
    const sent = this.#sent.get(key)
    this.#sent.delete(key)
    return sent
  }

  /** Looks for events that obey a command which was put after `afterSeq`. */
  async #isRecorded(key: string, command: OutsideCommand, afterSeq: number): Promise<boolean> {
    for await (const event of this.#ledger.read(this.#runId, { fromSeq: afterSeq + 1 })) {
      // Input that was put twice has its place by the first entry.
      if (event.inboxKey === key || recordsInput(event, command)) return true
      // Processes of older releases record no key of the inbox.
      if (event.inboxKey === undefined && getCommandRules(command.type).isRecordedBy(event, command))
        return true
    }
    return false
  }
}

/** The refusals that say only in which state the run is, where the call may have had its decision before. */
const tellsLittle: ReadonlySet<Refusal['code']> = new Set([
  'run_finished',
  'unknown_call',
  'not_awaiting_approval',
])

/** How long the sender of a refused decision waits for who decided before, in milliseconds. */
const maxLookMs = 1_000

/** The refusal of a decision on a call that was decided before, with who decided and how, if that is on record. */
async function findDecider(
  refusal: Refusal,
  { toolCallId, attempt = 1 }: OutsideCommandOf<'approve' | 'deny'>,
  ledger: Ledger,
  runId: RunId,
): Promise<Refusal | undefined> {
  const types = ['approval_decided'] as const
  for await (const event of ledger.find({ runId, toolCallId: toolCallId as ToolCallId, types })) {
    if (event.type !== 'approval_decided' || event.attempt !== attempt || event.elsewhere) continue
    const { seq, approved, by } = event
    const short = by.length > maxNameLength ? `${by.slice(0, maxNameLength)}…` : by
    const name = short.replaceAll(unseen, '\ufffd')
    const decided = `Tool call ${toolCallId} was ${approved ? 'approved' : 'denied'} before, by ${name} (event ${seq} of run ${runId}); a call is decided once. Show the run to see what followed.`
    // The message of the machine names the question that is open now.
    const isAsked = refusal.code === 'not_awaiting_approval'
    return { code: 'not_awaiting_approval', message: isAsked ? `${refusal.message} ${decided}` : decided }
  }
  return undefined
}

/** The longest name of a person that a refusal holds, in characters. */
const maxNameLength = 100

/** True for the error of a process that another one has overtaken. */
export function isOvertaken(error: unknown): boolean {
  return error instanceof LedgerConflictError && (error.kind === 'epoch' || error.kind === 'seq')
}

export function createDuplicateSendError(runId: RunId, key: string): LedgerConflictError {
  const message = `Run ${runId} has had a command of the key ${key} before, so this one was not sent. Show the run to see what became of the first; send another command under another key.`
  return new LedgerConflictError('unique', message)
}

/**
 * Returns what became of a command under its key: it `waits` in the inbox of the run, or is on `record`, so it was accepted.
 * `another` command may have had the key. `undefined` if nothing did, or if what did was refused or changed nothing.
 */
export async function findSentBefore(
  ledger: Ledger,
  runId: RunId,
  command: OutsideCommand,
  key: string,
): Promise<'waits' | 'record' | 'another' | undefined> {
  const waiting = (await ledger.inbox(runId)).find((entry) => entry.key === key)?.command
  if (waiting) {
    const isSame = outsideCommand(waiting) === undefined && isSameCommand(command, waiting)
    return isSame ? 'waits' : 'another'
  }
  for await (const event of ledger.find({ runId, types: commandEventTypes })) {
    if (event.inboxKey === key) return recordsCommand(event, command) ? 'record' : 'another'
  }
  return undefined
}

export function refuseAtEnd(runId: RunId): Refusal {
  return { code: 'run_finished', message: describeFinished(`Run ${runId} is finished`) }
}

export function refuseByDrain(runId: RunId): Refusal {
  const message = `The runtime that holds this handle of run ${runId} was drained and drives no run any more. Send the command from another process. A command that is in the inbox already is decided by the next process that drives the run.`
  return { code: 'drained', message }
}

/** The refusal of a command about a call that no run of the family has open. */
export function refuseUnknownCall(runId: RunId): Refusal {
  const message = `Run ${runId} has no open tool call of that id, nor has a child run of it; show the run to see which wait.`
  return { code: 'unknown_call', message }
}

/** A promise that knows whether anybody waits for it: `await`, `then` and `Promise.all` come by here. */
class Answer<T> extends Promise<T> {
  isRead = false

  /** `then` returns an ordinary promise. */
  static override get [Symbol.species](): PromiseConstructor {
    return Promise
  }

  // oxlint-disable-next-line unicorn/no-thenable -- a promise has it; this one notes that it is called
  override then<A = T, B = never>(...handlers: Parameters<Promise<T>['then']>): Promise<A | B> {
    this.isRead = true
    return super.then(...handlers) as Promise<A | B>
  }
}

/**
 * The answer to a caller who may not wait for it, as to a steer whose effect the events show. If it rejects and nobody reads
 * it, the failure is reported: it is neither lost, nor ends the process as an unhandled rejection.
 */
export function createAnswer<T>(asked: Promise<T>, onUnread: (error: unknown) => void): Promise<T> {
  const answer = new Answer<T>((resolve) => resolve(asked))
  // Whoever passes the promise on reads it there, before it can reject.
  void Promise.prototype.then.call(answer, undefined, (error: unknown) => {
    if (!answer.isRead) onUnread(error)
  })
  return answer
}

export function describeUnreadAnswer(verb: string, runId: string): string {
  return `${verb} failed for run ${runId}, and nobody waited for its answer`
}
