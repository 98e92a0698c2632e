/** How a tail over all runs stands: what differs from one look to the next has changed. */
export interface TailStanding {
  readonly mark: string
  /** Whether events wait for transactions that are under way. */
  readonly isHeldBack: boolean
}

/** How soon it is looked again for events that wait; then twice as late, and so on. */
const soonMs = 25

/**
 * Looks whether a tail can go on: now and then, and soon while events wait, since nobody tells when the transactions end
 * that they wait for. Never keeps a process alive.
 */
export class TailLook {
  readonly #look: () => Promise<TailStanding>
  readonly #pollIntervalMs: number
  readonly #changed: () => void
  #timer: NodeJS.Timeout | undefined
  #isOn = false
  #isLooking = false
  #isWanted = false
  #soonMs: number = soonMs
  #mark: string | undefined

  /** `changed` is called at the first look and at each that finds another mark; looks that fail are no matter. */
  constructor(look: () => Promise<TailStanding>, pollIntervalMs: number, changed: () => void) {
    this.#look = look
    this.#pollIntervalMs = pollIntervalMs
    this.#changed = changed
  }

  begin(): void {
    if (this.#isOn) return
    this.#isOn = true
    this.#mark = undefined
    if (!this.#isLooking) void this.#lookNow()
  }

  rest(): void {
    this.#isOn = false
    clearTimeout(this.#timer)
  }

  /** To be called where a tail ended in front of events that stand. */
  soon(): void {
    if (this.#isLooking) this.#isWanted = true
    else if (this.#isOn) this.#lookIn(this.#soonMs)
  }

  #lookIn(delayMs: number): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => void this.#lookNow(), Math.min(delayMs, this.#pollIntervalMs)).unref()
  }

  async #lookNow(): Promise<void> {
    clearTimeout(this.#timer)
    this.#isLooking = true
    const found = await this.#look().catch(() => undefined)
    this.#isLooking = false
    if (!this.#isOn) return
    const isNew = found !== undefined && found.mark !== this.#mark
    const isHeldBack = this.#isWanted || (found?.isHeldBack ?? false)
    this.#isWanted = false
    this.#soonMs = isNew || !isHeldBack ? soonMs : Math.min(2 * this.#soonMs, this.#pollIntervalMs)
    this.#lookIn(isHeldBack ? this.#soonMs : this.#pollIntervalMs)
    if (!isNew) return
    this.#mark = found.mark
    this.#changed()
  }
}
