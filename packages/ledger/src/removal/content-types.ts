import { eventTraits, eventTypes, type EventType } from '@tallystick/core/vocabulary'

/** Types that say nothing but facts: numbers, names, reasons of the runtime's own. */
const factual: ReadonlySet<EventType> = new Set([
  'usage_updated',
  'tool_deferred',
  'tool_results_injected',
  'guardrails_checked',
  'limit_reached',
  'limit_raised',
])

/** Types that only show progress: a later event holds their content again. */
export const deltaTypes: readonly EventType[] = eventTypes.filter(
  (type) => eventTraits[type].retention === 'deltas',
)

/** Types that hold what people or models said, asked or answered. */
export const contentTypes: readonly EventType[] = eventTypes.filter(
  (type) => !factual.has(type) && !deltaTypes.includes(type),
)
