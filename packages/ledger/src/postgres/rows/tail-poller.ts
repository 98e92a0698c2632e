/** The mark of a tail over all runs: it differs from one poll to the next when events were added. */
export interface TailMark {
  readonly mark: string
  /** Whether events wait for transactions that are under way. */
  readonly isHeldBack: boolean
}

/** How soon it is looked again for events that wait; then twice as late, and so on. */
const soonMs = 25

/**
 * Polls whether a tail can continue: from time to time, and soon while events wait, since Postgres sends no
 * notification when the transactions end that they wait for. Never keeps a process alive.
 */
export class TailPoller {
  readonly #readMark: () => Promise<TailMark>
  readonly #pollIntervalMs: number
  readonly #changed: () => void
  #timer: NodeJS.Timeout | undefined
  #isOn = false
  #isPolling = false
  #isWanted = false
  #soonMs: number = soonMs
  #mark: string | undefined

  /** `changed` is called at the first look and at each that finds another mark; looks that fail are no matter. */
  constructor(readMark: () => Promise<TailMark>, pollIntervalMs: number, changed: () => void) {
    this.#readMark = readMark
    this.#pollIntervalMs = pollIntervalMs
    this.#changed = changed
  }

  begin(): void {
    if (this.#isOn) return
    this.#isOn = true
    this.#mark = undefined
    if (!this.#isPolling) void this.#pollNow()
  }

  stop(): void {
    this.#isOn = false
    clearTimeout(this.#timer)
  }

  /** To be called where a tail ended before committed events. */
  soon(): void {
    if (this.#isPolling) this.#isWanted = true
    else if (this.#isOn) this.#pollIn(this.#soonMs)
  }

  #pollIn(delayMs: number): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => void this.#pollNow(), Math.min(delayMs, this.#pollIntervalMs)).unref()
  }

  async #pollNow(): Promise<void> {
    clearTimeout(this.#timer)
    this.#isPolling = true
    const found = await this.#readMark().catch(() => undefined)
    this.#isPolling = false
    if (!this.#isOn) return
    const isNew = found !== undefined && found.mark !== this.#mark
    const isHeldBack = this.#isWanted || (found?.isHeldBack ?? false)
    this.#isWanted = false
    this.#soonMs = isNew || !isHeldBack ? soonMs : Math.min(2 * this.#soonMs, this.#pollIntervalMs)
    this.#pollIn(isHeldBack ? this.#soonMs : this.#pollIntervalMs)
    if (!isNew) return
    this.#mark = found.mark
    this.#changed()
  }
}
