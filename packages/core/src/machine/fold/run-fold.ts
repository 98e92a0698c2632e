import type { RuntimeEvent } from '../../vocabulary/events/event.ts'
import type { RunState } from '../state/state.ts'
import { evolve } from './evolve.ts'
import { isNextDelta, withDeltas } from './fold-deltas.ts'

/** The most deltas that wait to be folded at once. */
const maxDeltas = 4096

/**
 * The fold of a run of which only some states are needed: neighbouring deltas of one part of a reply are folded at
 * once. Gives the states that `evolve` gives one by one.
 */
export class RunFold {
  #state: RunState | undefined
  #last: RuntimeEvent | undefined
  /** Legal events after the state, not folded yet. */
  #deltas: RuntimeEvent[] = []

  /** Begins after a state; without one, before the first event. */
  constructor(state?: RunState) {
    this.#state = state
  }

  /** Throws what `evolve` throws. */
  add(event: RuntimeEvent): void {
    const isNext = this.#last !== undefined && isNextDelta(this.#last, event)
    if (isNext && this.#deltas.length < maxDeltas) this.#deltas.push(event)
    else this.#state = evolve(this.state, event)
    this.#last = event
  }

  /** The state after the last event; `undefined` before the first one. */
  get state(): RunState | undefined {
    if (this.#state !== undefined && this.#deltas.length > 0) {
      this.#state = withDeltas(this.#state, this.#deltas)
      this.#deltas = []
    }
    return this.#state
  }
}
