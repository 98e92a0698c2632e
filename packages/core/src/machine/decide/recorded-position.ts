import type { RuntimeEvent } from '../../vocabulary/events/event.ts'

/** A place in the events of a run, which are on record from the first on. */
export interface RecordedPosition {
  readonly recorded: readonly RuntimeEvent[]
  /** The index of the first event of a decision. */
  readonly index: number
}
