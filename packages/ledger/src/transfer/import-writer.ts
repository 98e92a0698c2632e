import type { Ledger, RunId, RuntimeEvent } from '@tallystick/core'
import type { Head } from '@tallystick/core/vocabulary'

/** A group holds at most this many events, and ends with the first that takes its lines over this many characters. */
const maxGroupEvents = 256
const maxGroupCharacters = 1024 * 1024
/** At most this much is lazy before a barrier makes it durable. */
const maxLazyEvents = 4096
const maxLazyCharacters = 16 * 1024 * 1024

/** Appends imported events in groups, several of them to a barrier. */
export class ImportWriter {
  readonly #ledger: Ledger
  #group: RuntimeEvent[] = []
  #groupCharacters = 0
  #lazyEvents = 0
  #lazyCharacters = 0
  /** Where the run that was written last ends. */
  #written: { readonly runId: RunId; readonly head: Head } | undefined

  constructor(ledger: Ledger) {
    this.#ledger = ledger
  }

  /** Adds the next event of its run. `length` is that of its line. */
  async add(event: RuntimeEvent, length: number): Promise<void> {
    const [first] = this.#group
    if (first && (first.runId !== event.runId || first.epoch !== event.epoch)) await this.flush()
    this.#group.push(event)
    this.#groupCharacters += length
    if (this.#group.length >= maxGroupEvents || this.#groupCharacters >= maxGroupCharacters)
      await this.flush()
  }

  /** Appends what was added. */
  async flush(): Promise<void> {
    const lazyEvents = this.#lazyEvents + this.#group.length
    const lazyCharacters = this.#lazyCharacters + this.#groupCharacters
    const isLazy = lazyEvents < maxLazyEvents && lazyCharacters < maxLazyCharacters
    await this.#append(isLazy ? 'lazy' : 'barrier')
    this.#lazyEvents = isLazy ? lazyEvents : 0
    this.#lazyCharacters = isLazy ? lazyCharacters : 0
  }

  /** Appends what was added, and makes all of it durable. */
  async finish(): Promise<void> {
    if (this.#group.length > 0) await this.#append('barrier')
    else if (this.#lazyEvents > 0 && this.#written) {
      const { runId, head } = this.#written
      await this.#ledger.append(runId, { expectedSeq: head.seq, epoch: head.epoch }, [], {
        durability: 'barrier',
      })
    }
  }

  async #append(durability: 'lazy' | 'barrier'): Promise<void> {
    const events = this.#group
    const [first] = events
    if (first === undefined) return
    // Taken out first: what a ledger refuses is not offered twice.
    this.#group = []
    this.#groupCharacters = 0
    const { runId, seq, epoch } = first
    const head = await this.#ledger.append(runId, { expectedSeq: seq - 1, epoch }, events, { durability })
    this.#written = { runId, head }
  }
}
