import type { EventOf, EventType, RuntimeEvent } from '@tallystick/core/vocabulary'
import { genAi, own } from '../conventions/names.ts'
import type { MaybeAttributes } from '../span/open-span.ts'
import { nameText } from '../span/span-text.ts'

/** What is noted of events that have no span of their own. None of it is content. */
const marks: { readonly [T in EventType]?: (event: EventOf<T>) => MaybeAttributes } = {
  run_resumed: ({ why, epoch }) => ({ [own.reason]: why, [own.value]: epoch }),
  input_received: ({ delivery }) => ({ [own.action]: delivery }),
  tool_deferred: ({ attempt }) => ({ [own.attempt]: attempt }),
  tool_attempt_failed: ({ attempt, outcome }) => ({ [own.attempt]: attempt, [genAi.errorType]: outcome }),
  context_compacted: ({ replacedMessages }) => ({ [own.value]: replacedMessages }),
  guardrail_tripped: ({ guardrail, on, action }) => ({
    [own.name]: nameText(guardrail),
    [own.reason]: on,
    [own.action]: action,
  }),
  output_checked: ({ valid }) => ({ [own.value]: valid }),
  limit_reached: ({ limit, max, policy }) => ({
    [own.name]: limit,
    [own.value]: max,
    [own.action]: policy,
  }),
  limit_raised: ({ limit, max }) => ({ [own.name]: limit, [own.value]: max }),
  cancel_requested: () => ({}),
}

/** Returns what is noted of an event; `undefined` where it says nothing to a trace. */
export function marksOf(event: RuntimeEvent): MaybeAttributes | undefined {
  const mark = marks[event.type] as ((event: RuntimeEvent) => MaybeAttributes) | undefined
  return mark?.(event)
}
