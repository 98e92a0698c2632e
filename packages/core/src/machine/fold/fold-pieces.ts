import type { RuntimeEvent } from '../../vocabulary/events/event.ts'
import type { RunState, StreamingState } from '../state/state.ts'
import { withMoreOfPart } from './fold-reply-deltas.ts'

/** An event that brings a piece of one part of the reply. */
type PieceEvent = Extract<
  RuntimeEvent,
  { readonly type: 'assistant_text_delta' | 'assistant_reasoning_delta' | 'tool_input_delta' }
>

/** The place after the last of the neighbouring pieces of one part, the first of which is at a place; of another event, the place after it. */
export function endOfPieces(events: readonly RuntimeEvent[], first: number): number {
  let end = first + 1
  while (end < events.length && isNextPiece(events[end - 1] as RuntimeEvent, events[end] as RuntimeEvent))
    end++
  return end
}

/** Whether an event brings the next piece of the part that the one before it was of, and nothing else. */
export function isNextPiece(before: RuntimeEvent, after: RuntimeEvent): boolean {
  if (!isPiece(before) || !isPiece(after) || 'replaces' in after || 'written' in after) return false
  const isSamePart =
    after.type === before.type && after.part === before.part && after.attempt === before.attempt
  return isSamePart && isNext(before, after)
}

function isPiece(event: RuntimeEvent): event is PieceEvent {
  const { type } = event
  return (
    type === 'assistant_text_delta' || type === 'assistant_reasoning_delta' || type === 'tool_input_delta'
  )
}

/** Whether an event follows another one of the same run, turn and writer. Content was removed from neither. */
function isNext(before: PieceEvent, after: PieceEvent): boolean {
  const { runId, seq, turn, epoch, v } = before
  const isOfSame = after.runId === runId && after.turn === turn && after.epoch === epoch && after.v === v
  return isOfSame && after.seq === seq + 1 && !before.removed && !after.removed
}

/** Folds further pieces of a part at once, which gives the same state as `evolve` one by one. */
export function withPieces(state: RunState, pieces: readonly RuntimeEvent[]): RunState {
  const last = pieces.at(-1) as PieceEvent
  const { attempt } = state as StreamingState
  return {
    ...(state as StreamingState),
    seq: last.seq,
    at: last.at,
    attempt: withMoreOfPart(attempt, pieces as readonly PieceEvent[]),
  }
}
