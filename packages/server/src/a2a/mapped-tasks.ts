import type { RuntimeEvent } from '@tallystick/core'
import type { Observable } from 'rxjs'
import { mappedEvents } from '../protocols/mapped-events.ts'
import { requireEvents } from '../protocols/require-events.ts'
import { a2aTable, type A2aUpdate } from './a2a-task.ts'

/** Maps the events of a run, from its first, to an A2A task and its changes. */
export function toA2a(events$: Observable<RuntimeEvent>): Observable<A2aUpdate> {
  requireEvents('toA2a', events$)
  return mappedEvents(events$, () => a2aTable())
}
