import type { RuntimeEvent } from '@tallystick/core'
import type { Removed } from '@tallystick/core/vocabulary'

/** Content that is not there, or not readable, and why. */
export interface MissingContent extends Removed {
  /** How many events it is missing from. */
  readonly events: number
}

/** Counts the events of a run whose content is missing, by why it is. */
export class MissingContents {
  readonly #found = new Map<string, MissingContent>()

  handle({ removed }: RuntimeEvent): void {
    if (removed === undefined) return
    const { kind, at, by, reason } = removed
    const why = JSON.stringify([kind, at, by, reason])
    const events = (this.#found.get(why)?.events ?? 0) + 1
    this.#found.set(why, { ...removed, events })
  }

  get all(): readonly MissingContent[] {
    return [...this.#found.values()]
  }
}
