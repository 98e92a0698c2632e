import type { RuntimeEvent } from '@tallystick/core'
import { option, requireOptions } from '@tallystick/core/kit'
import type { Observable } from 'rxjs'

const eventStream = option.valueThat(
  'an Observable of the events of a run, such as run.events$ or watch(ledger, runId)',
  (value) => typeof (Object(value) as Partial<Observable<RuntimeEvent>>).subscribe === 'function',
)

/** Refuses what is no stream of events where one is mapped, such as a list of them. Throws a `ConfigurationError`. */
export function requireEvents(subject: string, events$: Observable<RuntimeEvent>): void {
  requireOptions(subject, eventStream, events$, 'the stream of events')
}
