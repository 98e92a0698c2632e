import type { RuntimeEvent } from '@tallystick/core'
import type { Outcome } from '@tallystick/core/vocabulary'

export { playProgram as play, type Played, type Program } from '@tallystick/core/testing'
export { randomProgram as program } from '@tallystick/core/testing/random'

/** The outcomes in a ledger, by call. */
export function outcomesOf(events: readonly RuntimeEvent[]): Map<string, Outcome> {
  return new Map(
    events.flatMap((event) =>
      event.type === 'tool_result' ? [[event.toolCallId, event.outcome] as const] : [],
    ),
  )
}
