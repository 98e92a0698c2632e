import type { RuntimeEvent } from '../../vocabulary/events/event.ts'
import type { RunState } from '../state/state.ts'
import { evolve } from './evolve.ts'
import { isNextPiece, withPieces } from './fold-pieces.ts'

/** So many pieces wait for others at most. */
const maxPieces = 4096

/**
 * The fold of a run of which only some states are needed: neighbouring pieces of one part of a reply are folded at
 * once. Gives the states that `evolve` gives one by one.
 */
export class RunFold {
  #state: RunState | undefined
  #last: RuntimeEvent | undefined
  /** Legal events after the state, not folded yet. */
  #pieces: RuntimeEvent[] = []

  /** Begins after a state; without one, before the first event. */
  constructor(state?: RunState) {
    this.#state = state
  }

  /** Throws what `evolve` throws. */
  add(event: RuntimeEvent): void {
    const isPiece = this.#last !== undefined && isNextPiece(this.#last, event)
    if (isPiece && this.#pieces.length < maxPieces) this.#pieces.push(event)
    else this.#state = evolve(this.state, event)
    this.#last = event
  }

  /** The state after the last event; `undefined` before the first one. */
  get state(): RunState | undefined {
    if (this.#state !== undefined && this.#pieces.length > 0) {
      this.#state = withPieces(this.#state, this.#pieces)
      this.#pieces = []
    }
    return this.#state
  }
}
