import { Wakeup } from '../reading/wakeup.ts'

/**
 * What has arrived for a run and was not looked at yet. Posting never blocks and never runs the code of a tool or adapter; the run's
 * writer takes all of it at once, when it is ready.
 */
export class Mailbox<Item> {
  #items: Item[] = []
  readonly #wakeup = new Wakeup()
  #listeners: (() => void)[] = []

  post(item: Item): void {
    this.#items.push(item)
    this.wake()
  }

  /** Wakes the writer, though nothing was posted. */
  wake(): void {
    this.#wakeup.wake()
    for (const notify of this.#listeners.splice(0)) notify()
  }

  /** Puts back what was taken, in front of what has arrived since. */
  putBack(items: readonly Item[]): void {
    this.#items = [...items, ...this.#items]
  }

  /** Takes everything that is there. */
  drain(): readonly Item[] {
    const items = this.#items
    this.#items = []
    return items
  }

  /** Resolves when something was posted or the writer was woken since the last time. */
  arrival(): Promise<void> {
    return this.#wakeup.wait()
  }

  /** Resolves when the next thing is posted or the writer is woken, which `arrival` still returns for. */
  next(): Promise<void> {
    return new Promise((resolve) => void this.#listeners.push(resolve))
  }

  get empty(): boolean {
    return this.#items.length === 0
  }
}
