import type { Cause } from '../../vocabulary/events/cause.ts'
import type { EventOf, RuntimeEvent } from '../../vocabulary/events/event.ts'
import { omitUndefined } from '../../vocabulary/values/omit-undefined.ts'
import type { Reconciliation, Signal } from '../../vocabulary/signals/signal.ts'
import type { RunState } from '../state/state.ts'
import { findCall } from '../state/state-views.ts'

type ToolCause = 'tool_progressed' | 'tool_deferred' | 'tool_ended' | 'call_reconciled'

const toolCauses: ReadonlySet<Cause> = new Set<ToolCause>([
  'tool_progressed',
  'tool_deferred',
  'tool_ended',
  'call_reconciled',
])

/** Whether a report about one tool call decided it. */
export function isToolCause(cause: Cause): cause is ToolCause {
  return toolCauses.has(cause)
}

/** The report about a tool call that decided an event. */
export function recoverToolSignal(
  state: RunState,
  cause: ToolCause,
  event: RuntimeEvent,
): Signal | undefined {
  switch (cause) {
    case 'tool_progressed': {
      if (event.type !== 'tool_progress') return undefined
      const { toolCallId, attempt, data } = event
      return { type: cause, toolCallId, attempt, data }
    }
    case 'tool_deferred': {
      if (event.type !== 'tool_deferred') return undefined
      const { toolCallId, attempt, receipt, deadlineAt, at } = event
      const deadlineMs = deadlineAt === undefined ? undefined : deadlineAt - at
      return { type: cause, toolCallId, attempt, externalId: receipt, ...omitUndefined({ deadlineMs }) }
    }
    case 'tool_ended': {
      if (event.type === 'tool_attempt_failed') {
        const { toolCallId, attempt, outcome, content, durationMs, retryAfterMs, error } = event
        const ended = { type: cause, toolCallId, attempt, outcome, content, durationMs }
        return { ...ended, retryable: true, ...omitUndefined({ retryAfterMs, error }) }
      }
      if (event.type !== 'tool_result') return undefined
      const { toolCallId, outcome, content, durationMs = 0, projected, shown, child, reused, error } = event
      // Only the attempt that is under way counts.
      const attempt = findCall(state, toolCallId)?.attempts ?? 0
      return {
        type: cause,
        toolCallId,
        attempt,
        outcome,
        content,
        durationMs,
        ...omitUndefined({ projected, shown, child, reused, error }),
      }
    }
    case 'call_reconciled': {
      if (event.type !== 'tool_started' && event.type !== 'tool_result') return undefined
      return { type: cause, toolCallId: event.toolCallId, finding: findingOf(event) }
    }
  }
}

function findingOf(event: EventOf<'tool_started'> | EventOf<'tool_result'>): Reconciliation {
  if (event.type === 'tool_started') return { state: 'not_done' }
  const { outcome, content } = event
  return outcome === 'interrupted' ? { state: 'unknown' } : { state: 'done', outcome, content }
}
