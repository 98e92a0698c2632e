import {
  findCall,
  present,
  type Call,
  type Command,
  type EventOf,
  type Reconciliation,
  type RunState,
  type Signal,
} from '@tallystick/core'

type Message = Command | Signal

/** What the outside world said about a call in doubt, or how a call ended: by its tool, or by whoever settled it. */
export function toolCause(
  state: RunState,
  event: EventOf<'tool_started'> | EventOf<'tool_result'>,
): Message | undefined {
  const call = findCall(state, event.toolCallId)
  const asked = call?.status === 'in_doubt' && call.recovery === 'reconcile' && state.cancel === undefined
  if (asked) return { type: 'call_reconciled', toolCallId: event.toolCallId, finding: findingOf(event) }
  return event.type === 'tool_result' && call ? endingOf(call, event) : undefined
}

function findingOf(event: EventOf<'tool_started'> | EventOf<'tool_result'>): Reconciliation {
  if (event.type === 'tool_started') return { state: 'not_done' }
  const { outcome, content } = event
  return outcome === 'interrupted' ? { state: 'unknown' } : { state: 'done', outcome, content }
}

function endingOf(call: Call, event: EventOf<'tool_result'>): Message | undefined {
  const { toolCallId, outcome, content, durationMs, child, reused } = event
  const own = present({ child, reused })
  const settled = call.status === 'deferred' && durationMs === undefined
  if (settled && (outcome === 'success' || outcome === 'failed')) {
    return { type: 'settle', toolCallId, outcome, content, ...own }
  }
  // Only a tool's own ending says how long it took; what the machine settled took no time.
  if (durationMs === undefined || (call.status !== 'started' && call.child === undefined)) return undefined
  return { type: 'tool_ended', toolCallId, attempt: call.attempts, outcome, content, durationMs, ...own }
}
