import { eventTraits } from '../../vocabulary/events/event-traits.ts'
import type { RuntimeEvent } from '../../vocabulary/events/event.ts'

/** Returns how durably events have to be appended: with a barrier where one of them decides something. */
export function durabilityOf(events: readonly RuntimeEvent[]): 'barrier' | 'lazy' {
  return events.some(({ type }) => eventTraits[type].durability === 'barrier') ? 'barrier' : 'lazy'
}
