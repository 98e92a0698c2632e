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

type WithoutText<Each> = Each extends unknown ? Omit<Each, 'text'> : never

/** The facts of neighbouring pieces of one part of the reply: they differ in their text alone. */
export interface PieceFacts {
  readonly fact: WithoutText<PieceFact>
  readonly texts: readonly string[]
}

/** Neighbouring pieces of one part of the reply, as they arrived: what each reports, but for its text, and the texts. None is empty. */
export interface ArrivedPieces {
  readonly type: 'pieces'
  readonly of: WithoutText<PieceSignal>
  readonly texts: readonly string[]
}

/** What a batch of events follows from. */
export type Incoming = Command | Signal | ArrivedPieces

/**
 * The facts that follow from neighbouring pieces of one part of the reply, the first of which is at a place among the
 * messages: one for each, as `decide` gives them one by one. `undefined` where no such piece is at the place.
 */
export function decidePieces(
  state: RunState,
  messages: readonly Incoming[],
  place: number,
): PieceFacts | undefined {
  const first = messages[place]
  if (first === undefined || !isPiece(first)) return undefined
  if (!isDue(state, first)) return undefined
  const texts = [first.text]
  for (let next = place + 1; next < messages.length; next++) {
    const message = messages[next] as Incoming
    if (!isOfSamePart(first, message)) break
    texts.push(message.text)
  }
  return { fact: factOf(state, first), texts }
}

/** The facts that follow from pieces that arrived together; `undefined` where none does. */
export function decideArrived(
  state: RunState | undefined,
  { of, texts }: ArrivedPieces,
): PieceFacts | undefined {
  return state && isDue(state, of) ? { fact: factOf(state, of), texts } : undefined
}

/** Whether a piece is of the attempt that is under way, and recorded. */
function isDue(state: RunState, piece: WithoutText<PieceSignal>): state is StreamingState {
  if (state.phase !== 'streaming' || state.attempt.failed) return false
  if (piece.turn !== state.turn || piece.attempt !== state.attempt.number) return false
  return isRecordedPiece(state, piece)
}

/** What is not recorded, `decide` answers with no fact. */
function isRecordedPiece(state: StreamingState, { type }: WithoutText<PieceSignal>): boolean {
  if (type === 'model_text') return true
  return isRecorded(state, type === 'model_reasoning' ? 'reasoning' : 'toolInputDeltas')
}

/** Whether a message is one more piece of the part of another. */
function isOfSamePart(first: PieceSignal, message: Incoming): message is PieceSignal {
  if (message.type !== first.type || !isPiece(message)) return false
  const isNamedSame =
    message.type !== 'model_tool_input' || (first as { readonly name?: string }).name === message.name
  return (
    isNamedSame &&
    message.part === first.part &&
    message.turn === first.turn &&
    message.attempt === first.attempt
  )
}

/**
 * Whether a message brings more of a part and nothing else: a text that replaces what came before, or that differs from what
 * the model wrote, is no plain piece.
 */
export function isPiece(message: Incoming): message is PieceSignal {
  if (message.type === 'model_tool_input') return message.text !== ''
  const isText = message.type === 'model_text' || message.type === 'model_reasoning'
  return isText && message.text !== '' && !message.replaces && message.written === undefined
}

/** What the facts of pieces of one part have in common. */
function factOf(state: StreamingState, piece: WithoutText<PieceSignal>): PieceFacts['fact'] {
  const { part, turn, attempt } = piece
  if (piece.type === 'model_text') return { type: 'assistant_text_delta', turn, attempt, part }
  if (piece.type === 'model_reasoning') return { type: 'assistant_reasoning_delta', turn, attempt, part }
  const toolCallId = callIdAt(state, part)
  return { type: 'tool_input_delta', turn, attempt, toolCallId, part, name: piece.name }
}
