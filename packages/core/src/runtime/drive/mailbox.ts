import type { Command } from '../../vocabulary/events/command.ts'
import type { Signal } from '../../vocabulary/signals/signal.ts'
import { Wakeup } from '../reading/wakeup.ts'

/** A message that has arrived; `key` names it in the ledger's inbox, where it came from there. */
export interface Mail {
  readonly message: Command | Signal
  readonly key?: string
}

/**
 * What has arrived for a run and was not looked at yet. Posting never blocks and never runs the code of a tool or adapter; the run's
 * writer takes all of it at once, when it is ready.
 */
export class Mailbox {
  #mail: Mail[] = []
  readonly #wakeup = new Wakeup()
  #listeners: (() => void)[] = []

  post(mail: Mail): void {
    this.#mail.push(mail)
    this.wake()
  }

  /** Wakes the writer, though nothing was posted. */
  wake(): void {
    this.#wakeup.wake()
    for (const notify of this.#listeners.splice(0)) notify()
  }

  /** Puts back what was taken, in front of what has arrived since. */
  putBack(mail: readonly Mail[]): void {
    this.#mail = [...mail, ...this.#mail]
  }

  /** Takes everything that is there. */
  drain(): readonly Mail[] {
    const mail = this.#mail
    this.#mail = []
    return mail
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
    return this.#mail.length === 0
  }
}
