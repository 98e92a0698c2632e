import type { RuntimeEvent } from '../../vocabulary/events/event.ts'
import type { RunState, StreamingState } from '../state/state.ts'
import { withMoreOfPart, type DeltaEvent } from './fold-reply-deltas.ts'

/** The place after the last of the neighbouring deltas of one part, the first of which is at a place; of another event, the place after it. */
export function endOfDeltas(events: readonly RuntimeEvent[], first: number): number {
  let end = first + 1
  let before = events[first]
  if (before === undefined || !isDelta(before)) return end
  for (; end < events.length; end++) {
    const after = events[end] as RuntimeEvent
    if (!isOfSamePart(before, after)) break
    before = after
  }
  return end
}

/** Whether an event brings the next delta of the part that the one before it was of, and nothing else. */
export function isNextDelta(before: RuntimeEvent, after: RuntimeEvent): boolean {
  return isDelta(before) && isOfSamePart(before, after)
}

function isDelta(event: RuntimeEvent): event is DeltaEvent {
  const { type } = event
  return (
    type === 'assistant_text_delta' || type === 'assistant_reasoning_delta' || type === 'tool_input_delta'
  )
}

/** Whether an event follows a delta, as one more of its part, run, turn and writer. Content was removed from neither. */
function isOfSamePart(before: DeltaEvent, after: RuntimeEvent): after is DeltaEvent {
  if (after.type !== before.type || after.seq !== before.seq + 1) return false
  const { part, attempt, runId, turn, epoch, v } = after
  return (
    part === before.part &&
    attempt === before.attempt &&
    runId === before.runId &&
    turn === before.turn &&
    epoch === before.epoch &&
    v === before.v &&
    !before.removed &&
    !after.removed &&
    !('replaces' in after || 'written' in after)
  )
}

/** Folds further deltas of a part at once, which gives the same state as `evolve` one by one. */
export function withDeltas(state: RunState, deltas: readonly RuntimeEvent[]): RunState {
  const last = deltas.at(-1) as DeltaEvent
  return withTexts(
    state,
    last,
    deltas.map((delta) => (delta as DeltaEvent).text),
  )
}

/** The same where only the last of the deltas is given, and the texts of all. */
export function withTexts(state: RunState, last: RuntimeEvent, texts: readonly string[]): RunState {
  const { attempt } = state as StreamingState
  return {
    ...(state as StreamingState),
    seq: last.seq,
    at: last.at,
    attempt: withMoreOfPart(attempt, last as DeltaEvent, texts),
  }
}
