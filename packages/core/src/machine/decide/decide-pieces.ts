import type { Command } from '../../vocabulary/events/command.ts'
import type { Fact } from '../../vocabulary/events/event.ts'
import type { Signal } from '../../vocabulary/signals/signal.ts'
import type { RunState, StreamingState } from '../state/state.ts'
import { isRecorded } from '../limits/recorded-parts.ts'
import { callIdAt } from './decide-model-signal.ts'

type PieceSignal = Extract<Signal, { readonly type: 'model_text' | 'model_reasoning' | 'model_tool_input' }>
type PieceFact = Extract<
  Fact,
  { readonly type: 'assistant_text_delta' | 'assistant_reasoning_delta' | 'tool_input_delta' }
>

/**
 * The facts that follow from neighbouring pieces of one part of the reply, the first of which is at a place among the
 * messages: one for each, as `decide` gives them one by one. Empty where no such piece is at the place.
 */
export function decidePieces(
  state: RunState,
  messages: readonly (Command | Signal)[],
  place: number,
): readonly PieceFact[] {
  const first = messages[place]
  if (first === undefined || !isPiece(first)) return []
  if (state.phase !== 'streaming' || state.attempt.failed) return []
  if (first.turn !== state.turn || first.attempt !== state.attempt.number) return []
  if (!isRecordedPiece(state, first)) return []
  const factOf = factMaker(state, first)
  const facts: PieceFact[] = []
  for (let next = place; next < messages.length; next++) {
    const piece = messages[next] as Command | Signal
    if (!isPiece(piece) || !isOfSamePart(first, piece)) break
    facts.push(factOf(piece))
  }
  return facts
}

/** What is not recorded, `decide` answers with no fact. */
function isRecordedPiece(state: StreamingState, { type }: PieceSignal): boolean {
  if (type === 'model_text') return true
  return isRecorded(state, type === 'model_reasoning' ? 'reasoning' : 'toolInputDeltas')
}

function isOfSamePart(a: PieceSignal, b: PieceSignal): boolean {
  return a.type === b.type && a.part === b.part && a.turn === b.turn && a.attempt === b.attempt
}

/**
 * Whether a message brings more of a part and nothing else: a text that replaces what came before, or that differs from what
 * the model wrote, is no plain piece.
 */
export function isPiece(message: Command | Signal): message is PieceSignal {
  if (message.type === 'model_tool_input') return message.text !== ''
  const isText = message.type === 'model_text' || message.type === 'model_reasoning'
  return isText && message.text !== '' && !message.replaces && message.written === undefined
}

/** Makes the facts of pieces of one part. */
function factMaker(
  state: StreamingState,
  { type, part, turn, attempt }: PieceSignal,
): (piece: PieceSignal) => PieceFact {
  if (type !== 'model_tool_input') {
    const deltaType = type === 'model_text' ? 'assistant_text_delta' : 'assistant_reasoning_delta'
    return ({ text }) => ({ type: deltaType, turn, attempt, part, text })
  }
  const toolCallId = callIdAt(state, part)
  return (piece) => {
    const { name, text } = piece as PieceSignal & { readonly type: typeof type }
    return { type: 'tool_input_delta', turn, attempt, toolCallId, part, name, text }
  }
}
