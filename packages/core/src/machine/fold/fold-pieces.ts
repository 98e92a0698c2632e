import type { RuntimeEvent } from '../../vocabulary/events/event.ts'
import type { RunState, StreamingState } from '../state/state.ts'
import { withMoreOfPart, type PieceEvent } from './fold-reply-deltas.ts'

/** The place after the last of the neighbouring pieces of one part, the first of which is at a place; of another event, the place after it. */
export function endOfPieces(events: readonly RuntimeEvent[], first: number): number {
  let end = first + 1
  let before = events[first]
  if (before === undefined || !isPiece(before)) return end
  for (; end < events.length; end++) {
    const after = events[end] as RuntimeEvent
    if (!isOfSamePart(before, after)) break
    before = after
  }
  return end
}

/** Whether an event brings the next piece of the part that the one before it was of, and nothing else. */
export function isNextPiece(before: RuntimeEvent, after: RuntimeEvent): boolean {
  return isPiece(before) && isOfSamePart(before, after)
}

function isPiece(event: RuntimeEvent): event is PieceEvent {
  const { type } = event
  return (
    type === 'assistant_text_delta' || type === 'assistant_reasoning_delta' || type === 'tool_input_delta'
  )
}

/** Whether an event follows a piece, as one more of its part, run, turn and writer. Content was removed from neither. */
function isOfSamePart(before: PieceEvent, after: RuntimeEvent): after is PieceEvent {
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

/** Folds further pieces of a part at once, which gives the same state as `evolve` one by one. */
export function withPieces(state: RunState, pieces: readonly RuntimeEvent[]): RunState {
  const last = pieces.at(-1) as PieceEvent
  return withTexts(
    state,
    last,
    pieces.map((piece) => (piece as PieceEvent).text),
  )
}

/** The same where only the last of the pieces is given, and the texts of all. */
export function withTexts(state: RunState, last: RuntimeEvent, texts: readonly string[]): RunState {
  const { attempt } = state as StreamingState
  return {
    ...(state as StreamingState),
    seq: last.seq,
    at: last.at,
    attempt: withMoreOfPart(attempt, last as PieceEvent, texts),
  }
}
