import type { RuntimeEvent } from '@tallystick/core'
import type { Outcome } from '@tallystick/core/vocabulary'

export { playProgram as play, type Played, type Program } from '@tallystick/testkit'
export { randomProgram as program } from '@tallystick/testkit/random'

/** The outcomes in a ledger, by call. */
export function outcomesOf(events: readonly RuntimeEvent[]): Map<string, Outcome> {
  return new Map(
    events.flatMap((event) =>
      event.type === 'tool_result' ? [[event.toolCallId, event.outcome] as const] : [],
    ),
  )
}
