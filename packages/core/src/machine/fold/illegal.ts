import { IllegalTransitionError } from '../../vocabulary/errors.ts'
import type { EventType } from '../../vocabulary/events/event.ts'
import type { RunState } from '../state/state.ts'
import { legalEvents } from './transition-table.ts'

/** Refuses an event, saying why. */
export function illegal(
  state: RunState,
  event: { readonly type: EventType },
  detail?: string,
): IllegalTransitionError {
  return new IllegalTransitionError(state.phase, event.type, legalEvents(state.phase), detail)
}
