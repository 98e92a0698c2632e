import type { RuntimeEvent } from '../../events/event.ts'

/**
 * Returns an event as subscribers see it: without what the model wrote where `outputStream` showed another text. The ledger
 * holds both.
 */
export function shownEvent(event: RuntimeEvent): RuntimeEvent {
  if (!('written' in event)) return event
  const { written: _hidden, ...shown } = event
  return Object.freeze(shown)
}
