import type { Refusal } from '../../machine/state/decision.ts'

/** What became of a command. A refusal is an answer, not an error. */
export type CommandReceipt = { readonly accepted: true } | ({ readonly accepted: false } & Refusal)

/** Someone who waits to hear what became of a command. */
interface Waiting {
  /** Whether the command is in the inbox. */
  delivered: boolean
  resolve(receipt: CommandReceipt): void
  reject(error: unknown): void
}

/** Commands that this process has sent and that are not decided yet, by their key in the inbox. */
export class Receipts {
  readonly #waiting = new Map<string, Waiting>()
  readonly #deliveries = new Set<Promise<void>>()

  /** Delivers a command into the inbox, and answers when the run's writer has decided about it. */
  async send(key: string, deliver: () => Promise<void>): Promise<CommandReceipt> {
    const receipt = new Promise<CommandReceipt>((resolve, reject) =>
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
    return await receipt
  }

  settle(key: string, refusal: Refusal | undefined): void {
    this.#take(key)?.resolve(refusal ? { accepted: false, ...refusal } : { accepted: true })
  }

  /** Whether someone still waits to hear what became of a command. */
  get open(): boolean {
    return this.#waiting.size > 0
  }

  /** The keys of undecided commands that are in the inbox, or were. */
  get delivered(): readonly string[] {
    return [...this.#waiting].flatMap(([key, { delivered }]) => (delivered ? [key] : []))
  }

  /** The run is over: whatever was still asked is refused. */
  settleAll(refusal: Refusal): void {
    for (const key of [...this.#waiting.keys()]) this.settle(key, refusal)
  }

  /** Nobody here will decide about this command any more; or, where none is named, about any. */
  fail(error: unknown, key?: string): void {
    for (const each of key === undefined ? [...this.#waiting.keys()] : [key]) this.#take(each)?.reject(error)
  }

  /** Resolves when every command that was sent so far is in the inbox. */
  async delivery(): Promise<void> {
    while (this.#deliveries.size > 0) await Promise.all(this.#deliveries)
  }

  #take(key: string): Waiting | undefined {
    const waiting = this.#waiting.get(key)
    this.#waiting.delete(key)
    return waiting
  }
}
