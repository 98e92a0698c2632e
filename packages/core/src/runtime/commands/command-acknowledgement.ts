import type { Refusal } from '../../machine/state/decision.ts'

/** The answer to a command: it was accepted, or refused and why. A refusal is an answer, not an error. */
export type CommandAcknowledgement = { readonly accepted: true } | ({ readonly accepted: false } & Refusal)

/** A sender that waits for the acknowledgement of a command. */
interface Waiting {
  /** Whether the command is in the inbox. */
  delivered: boolean
  resolve(acknowledgement: CommandAcknowledgement): void
  reject(error: unknown): void
}

/** Commands that this process has sent and that are not decided yet, by their key in the inbox. */
export class CommandAcknowledgements {
  readonly #waiting = new Map<string, Waiting>()
  readonly #deliveries = new Set<Promise<void>>()

  /** Delivers a command into the inbox, and answers when the run's writer has decided about it. */
  async send(key: string, deliver: () => Promise<void>): Promise<CommandAcknowledgement> {
    const acknowledgement = new Promise<CommandAcknowledgement>((resolve, reject) =>
      this.#waiting.set(key, { delivered: false, resolve, reject }),
    )
    const delivery = deliver().then(
      () => {
        const waiting = this.#waiting.get(key)
        if (waiting) waiting.delivered = true
      },
      (error: unknown) => this.fail(error, key),
    )
    const settled = delivery.finally(() => this.#deliveries.delete(settled))
    this.#deliveries.add(settled)
    return await acknowledgement
  }

  acknowledge(key: string, refusal: Refusal | undefined): void {
    this.#take(key)?.resolve(refusal ? { accepted: false, ...refusal } : { accepted: true })
  }

  /** Whether a sender still waits for an acknowledgement. */
  get hasPending(): boolean {
    return this.#waiting.size > 0
  }

  /** The keys of undecided commands that are in the inbox, or were. */
  get deliveredKeys(): readonly string[] {
    return [...this.#waiting].flatMap(([key, { delivered }]) => (delivered ? [key] : []))
  }

  /** The run is over: whatever was still asked is refused. */
  refuseAll(refusal: Refusal): void {
    for (const key of [...this.#waiting.keys()]) this.acknowledge(key, refusal)
  }

  /** Rejects the sender of a command that this process will not decide, or all senders where no key is given. */
  fail(error: unknown, key?: string): void {
    for (const each of key === undefined ? [...this.#waiting.keys()] : [key]) this.#take(each)?.reject(error)
  }

  /** Resolves when every command that was sent so far is in the inbox. */
  async allDelivered(): Promise<void> {
    while (this.#deliveries.size > 0) await Promise.all(this.#deliveries)
  }

  #take(key: string): Waiting | undefined {
    const waiting = this.#waiting.get(key)
    this.#waiting.delete(key)
    return waiting
  }
}
