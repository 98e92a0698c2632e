import { eventTraits } from '../vocabulary/events/event-traits.ts'
import type { EventOf, RuntimeEvent } from '../vocabulary/events/event.ts'
import type { RunState } from './state/state.ts'
import { findCall } from './state/state-views.ts'

/** The states before the events of an append and after them, as far as there are any. */
export interface AroundAppend {
  readonly before?: RunState | undefined
  readonly after?: RunState | undefined
}

/**
 * How durable the append of events has to be: a barrier where something follows from one of them that a crash could make
 * untrue. What is appended lazily, a later barrier of the run makes durable, in order.
 */
export function durabilityOf(events: readonly RuntimeEvent[], around: AroundAppend): 'barrier' | 'lazy' {
  for (const event of events) if (needsBarrier(event, around)) return 'barrier'
  return 'lazy'
}

function needsBarrier(event: RuntimeEvent, { before, after }: AroundAppend): boolean {
  if (event.type === 'tool_result') return !isHarmlessResult(event, before)
  if (event.type === 'tool_started') return !isHarmlessStart(event, after)
  return eventTraits[event.type].durability === 'barrier'
}

/** A result that a crash may lose leaves its call in doubt: that is harmless only where the tool may run again. */
function isHarmlessResult({ toolCallId }: EventOf<'tool_result'>, before: RunState | undefined): boolean {
  const call = before && findCall(before, toolCallId)
  return call !== undefined && (call.attempts === 0 || call.recovery === 'rerun')
}

/**
 * Law 8: a start that a crash may lose lets its call be started again, or the model be asked again. That is harmless where
 * the recorded tool has no side effect and may run again, and where the start says nothing that is counted or was decided:
 * it is no further attempt, grants nothing to a child run, hands nothing over, and no person has approved it.
 */
function isHarmlessStart(
  { toolCallId, attempt }: EventOf<'tool_started'>,
  after: RunState | undefined,
): boolean {
  const call = after && findCall(after, toolCallId)
  if (call?.effect !== 'read' || call.recovery !== 'rerun' || attempt > 1) return false
  return call.child === undefined && call.handoff === undefined && call.approvedSeq === undefined
}
