import type { Command } from '../../vocabulary/events/command.ts'
import type { Fact } from '../../vocabulary/events/event.ts'
import type { Signal } from '../../vocabulary/signals/signal.ts'
import type { RunState, StreamingState } from '../state/state.ts'
import { isRecorded } from '../limits/recorded-parts.ts'
import { callIdAt } from './decide-model-signal.ts'

type DeltaSignal = Extract<Signal, { readonly type: 'model_text' | 'model_reasoning' | 'model_tool_input' }>
type DeltaFact = Extract<
  Fact,
  { readonly type: 'assistant_text_delta' | 'assistant_reasoning_delta' | 'tool_input_delta' }
>

type WithoutText<Each> = Each extends unknown ? Omit<Each, 'text'> : never

/** The facts of neighbouring deltas of one part of the reply: they differ in their text alone. */
export interface DeltaFacts {
  readonly fact: WithoutText<DeltaFact>
  readonly texts: readonly string[]
}

/** Neighbouring deltas of one part of the reply, as they arrived: what they have in common, and their texts. No text is empty. */
export interface ArrivedDeltas {
  readonly type: 'deltas'
  readonly of: WithoutText<DeltaSignal>
  readonly texts: readonly string[]
}

/** A message from which events may follow. */
export type Incoming = Command | Signal | ArrivedDeltas

/**
 * Returns the facts that follow from the delta at a place among the messages and from the deltas of the same part that follow it:
 * the same as `decide` returns for each. `undefined` if the message at the place is no delta, or is not recorded.
 */
export function decideDeltas(
  state: RunState,
  messages: readonly Incoming[],
  place: number,
): DeltaFacts | undefined {
  const first = messages[place]
  if (first === undefined || !isDeltaSignal(first)) return undefined
  if (!isDue(state, first)) return undefined
  const texts = [first.text]
  for (let next = place + 1; next < messages.length; next++) {
    const message = messages[next] as Incoming
    if (!isOfSamePart(first, message)) break
    texts.push(message.text)
  }
  return { fact: factOf(state, first), texts }
}

/** Returns the same for deltas that arrived together; `undefined` if they are not recorded. */
export function decideArrived(
  state: RunState | undefined,
  { of, texts }: ArrivedDeltas,
): DeltaFacts | undefined {
  return state && isDue(state, of) ? { fact: factOf(state, of), texts } : undefined
}

/** Whether a delta is of the attempt that is under way, and recorded. */
function isDue(state: RunState, delta: WithoutText<DeltaSignal>): state is StreamingState {
  if (state.phase !== 'streaming' || state.attempt.failed) return false
  if (delta.turn !== state.turn || delta.attempt !== state.attempt.number) return false
  return isRecordedDelta(state, delta)
}

function isRecordedDelta(state: StreamingState, { type }: WithoutText<DeltaSignal>): boolean {
  if (type === 'model_text') return true
  return isRecorded(state, type === 'model_reasoning' ? 'reasoning' : 'toolInputDeltas')
}

/** Whether a message is one more delta of the part of another. */
function isOfSamePart(first: DeltaSignal, message: Incoming): message is DeltaSignal {
  if (message.type !== first.type || !isDeltaSignal(message)) return false
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
 * Whether a message adds text to a part, and does nothing else. One that replaces what came before, or whose text differs from what
 * the model wrote, is no plain delta.
 */
export function isDeltaSignal(message: Incoming): message is DeltaSignal {
  if (message.type === 'model_tool_input') return message.text !== ''
  const isText = message.type === 'model_text' || message.type === 'model_reasoning'
  return isText && message.text !== '' && !message.replaces && message.written === undefined
}

/** What the facts of deltas of one part have in common. */
function factOf(state: StreamingState, delta: WithoutText<DeltaSignal>): DeltaFacts['fact'] {
  const { part, turn, attempt } = delta
  if (delta.type === 'model_text') return { type: 'assistant_text_delta', turn, attempt, part }
  if (delta.type === 'model_reasoning') return { type: 'assistant_reasoning_delta', turn, attempt, part }
  const toolCallId = callIdAt(state, part)
  return { type: 'tool_input_delta', turn, attempt, toolCallId, part, name: delta.name }
}
