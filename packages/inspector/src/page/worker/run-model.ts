import type { RunState, RuntimeEvent } from '@tallystick/core'
import { computeHistoryDigest, readMessages } from '@tallystick/core/internal'
import { evolve } from '@tallystick/core/machine'
import { MoneyBuilder } from './money.ts'
import { TimelineBuilder } from './timeline.ts'

/** So many events are folded again at most to find a state. */
const eventsPerSnapshot = 128

/** The events of one run, and its state after each of them. */
export class RunModel {
  readonly events: RuntimeEvent[] = []
  /** The states after events 128, 256, 384 … States share what did not change. */
  readonly #snapshots: RunState[] = []
  #last: RunState | undefined
  #found: RunState | undefined
  /** The event by which each message entered the history. */
  readonly #seqOfMessage = new WeakMap<object, number>()
  readonly timeline = new TimelineBuilder()
  readonly money = new MoneyBuilder()

  /** Why the events after the last good one cannot be folded. */
  fault: { readonly seq: number; readonly message: string } | undefined

  get lastSeq(): number {
    return this.events.length
  }

  /** The state after the last event; `undefined` before the first. */
  get state(): RunState | undefined {
    return this.#last
  }

  add(events: readonly RuntimeEvent[]): void {
    for (const event of events) {
      if (event.seq <= this.events.length) continue
      this.events.push(event)
      this.timeline.add(event)
      if (this.fault) continue
      try {
        this.#fold(event)
      } catch (error) {
        this.fault = { seq: event.seq, message: error instanceof Error ? error.message : String(error) }
      }
    }
  }

  #fold(event: RuntimeEvent): void {
    const state = this.#next(this.#last, event)
    // Of a long history, the first look at what comes next would compute the digests of all its messages at once.
    if (state.history !== this.#last?.history) computeHistoryDigest(state.history)
    this.#last = state
    this.money.add(event, state)
    if (event.seq % eventsPerSnapshot === 0) this.#snapshots.push(state)
  }

  /** Folds one event, and notes which messages came with it. */
  #next(before: RunState | undefined, event: RuntimeEvent): RunState {
    const state = evolve(before, event)
    if (state.history === before?.history) return state
    const messages = readMessages(state.history)
    // Most events add to the end of the history; of one that changes it otherwise all messages are looked at.
    const grownFrom =
      before !== undefined && messages.length > before.history.length ? before.history.length : 0
    for (const message of messages.slice(grownFrom)) {
      if (!this.#seqOfMessage.has(message)) this.#seqOfMessage.set(message, event.seq)
    }
    return state
  }

  /** The event by which a message entered the history. */
  findSeq(message: object): number | undefined {
    return this.#seqOfMessage.get(message)
  }

  /** Folds to an event. Events that cannot be folded leave the state before them. */
  stateAt(seq: number): RunState | undefined {
    const last = Math.min(seq, this.fault ? this.fault.seq - 1 : this.lastSeq)
    if (last < 1) return undefined
    if (last === this.#last?.seq) return this.#last
    const snapshot = this.#snapshots[Math.floor(last / eventsPerSnapshot) - 1]
    const found = this.#found !== undefined && this.#found.seq <= last ? this.#found : undefined
    let state = (found?.seq ?? 0) > (snapshot?.seq ?? 0) ? found : snapshot
    for (let next = state?.seq ?? 0; next < last; next++) {
      state = this.#next(state, this.events[next]!)
    }
    this.#found = state
    return state
  }
}
