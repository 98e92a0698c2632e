import type { EventQuery } from '../ports/ledger.ts'
import type { EventEnvelope, EventType } from '../vocabulary/events/event.ts'

/** Whether an event is what a query asks for, as far as its envelope tells: all but the session. */
export function answers(event: EventEnvelope & { readonly type: EventType }, query: EventQuery): boolean {
  const { runId, turn, toolCallId, types, fromAt = -Infinity, toAt = Infinity } = query
  return (
    (runId === undefined || event.runId === runId) &&
    (turn === undefined || event.turn === turn) &&
    (toolCallId === undefined || event.toolCallId === toolCallId) &&
    (types === undefined || types.includes(event.type)) &&
    event.at >= fromAt &&
    event.at <= toAt
  )
}
