import type { RunId } from '@tallystick/core'
import { payloadOf } from './change-listener.ts'

/** Notifications that Postgres would send one by one make commits wait for each other, so there is one for many. */
const gapMs = 25

/** Tells other processes which runs have changed: at once after a pause, and then no more often than every 25 ms. */
export class ChangeNotifier {
  readonly #from: string
  readonly #send: (payload: string) => Promise<unknown>
  readonly #changed = new Set<RunId>()
  #isSending = false

  /** `from` is what it signs with. */
  constructor(from: string, send: (payload: string) => Promise<unknown>) {
    this.#from = from
    this.#send = send
  }

  notify(runId: RunId): void {
    this.#changed.add(runId)
    if (!this.#isSending) void this.#sendAll()
  }

  /** Sends the hints that are left. */
  async flush(): Promise<void> {
    await this.#sendChanged()
  }

  async #sendAll(): Promise<void> {
    this.#isSending = true
    while (this.#changed.size > 0) {
      await this.#sendChanged()
      await new Promise<void>((resolve) => void setTimeout(resolve, gapMs).unref())
    }
    this.#isSending = false
  }

  async #sendChanged(): Promise<void> {
    if (this.#changed.size === 0) return
    const payload = payloadOf({ from: this.#from, runIds: [...this.#changed] })
    this.#changed.clear()
    // Polling makes up for a lost hint.
    await this.#send(payload).catch(() => undefined)
  }
}
