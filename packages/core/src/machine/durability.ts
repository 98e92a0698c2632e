import { eventTraits } from '../vocabulary/events/event-traits.ts'
import type { RuntimeEvent } from '../vocabulary/events/event.ts'
import type { RunState } from './state/state.ts'
import { findCall } from './state/state-views.ts'

/**
 * How durable the append of events has to be that follow a state: a barrier where something follows from one of them that
 * a crash could make untrue. What is appended lazily, a later barrier of the run makes durable, in order.
 */
export function durabilityOf(
  state: RunState | undefined,
  events: readonly RuntimeEvent[],
): 'barrier' | 'lazy' {
  for (const event of events) if (needsBarrier(state, event)) return 'barrier'
  return 'lazy'
}

/** A result that a crash may lose leaves its call in doubt: that is harmless only where the tool may run again. */
function needsBarrier(state: RunState | undefined, event: RuntimeEvent): boolean {
  if (event.type !== 'tool_result') return eventTraits[event.type].durability === 'barrier'
  const call = state && findCall(state, event.toolCallId)
  const isHarmless = call !== undefined && (call.attempts === 0 || call.recovery === 'rerun')
  return !isHarmless
}
