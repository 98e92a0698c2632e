import { type Observable, scan } from 'rxjs'
import type { RuntimeEvent } from '../events/event.ts'
import { findDueAnswerCheck } from '../machine/required-effects.ts'
import type { RunState } from '../machine/state.ts'
import { flattened } from '../values/observables.ts'

/** A change of the shown text while the model writes. */
export interface TextUpdate {
  /** `text` is added to the shown text; `withdrawn` is taken back from its end. */
  readonly type: 'text' | 'withdrawn'
  readonly text: string
  readonly turn: number
  /** The event that caused it. */
  readonly seq: number
}

/** A text that is final, and the event that made it final. */
export interface FinalText {
  readonly text: string
  readonly seq: number
}

/** An event, and the state after it. */
export interface FoldedEvent {
  readonly event: RuntimeEvent
  readonly state: RunState
}

/** The text of a turn's reply that a reader is shown, and how it changed last. */
export interface ShownText {
  readonly text: string
  /** The reply is a message: its shown text is final. */
  readonly isMessage: boolean
  readonly updates: readonly TextUpdate[]
}

/** Before the first reply. */
export const noText: ShownText = { text: '', isMessage: false, updates: [] }

/** The model's text as it is written, and text that is taken back. */
export function textUpdatesOf(folded$: Observable<FoldedEvent>): Observable<TextUpdate> {
  return flattened(folded$.pipe(scan(nextShownText, noText)), ({ updates }) => updates)
}

/** Returns what a reader is shown after an event. */
export function nextShownText(before: ShownText, { event, state }: FoldedEvent): ShownText {
  const { turn, seq } = event
  const change = (type: TextUpdate['type'], text: string): readonly TextUpdate[] =>
    text === '' ? [] : [{ type, text, turn, seq }]
  const show = (text: string, isMessage: boolean): ShownText => {
    const goesOn = text.startsWith(before.text)
    const updates = goesOn
      ? change('text', text.slice(before.text.length))
      : [...change('withdrawn', before.text), ...change('text', text)]
    return { text, isMessage, updates }
  }
  const { type } = event
  if (type === 'assistant_text_delta') {
    // The provider took a part of it back in the end.
    if (event.replaces) return show(streamedText(state), false)
    return { ...before, text: before.text + event.text, updates: change('text', event.text) }
  }
  if (type === 'model_call_started') {
    // The next attempt replaces the text; the next turn adds to it.
    return event.attempt > 1 ? show('', false) : { text: '', isMessage: false, updates: [] }
  }
  if (type === 'output_checked' && event.repair) return show('', true)
  const isChecked = type === 'guardrail_tripped' && event.on === 'output'
  if (type === 'assistant_message_finished' || type === 'output_checked' || isChecked)
    return show(replyText(state), true)
  // A run may end without a message of the attempt that broke off.
  return type === 'run_finished' && !before.isMessage ? show('', false) : { ...before, updates: [] }
}

/** The text that came of the reply under way, part by part. */
function streamedText(state: RunState): string {
  const drafts = state.phase === 'streaming' ? state.attempt.drafts : []
  const texts = drafts.filter(({ kind }) => kind === 'text').toSorted((a, b) => a.part - b.part)
  return texts.map(({ text }) => text).join('')
}

/** The shown text of a reply: that of its message, or what its schema made of it. */
function replyText(state: RunState): string {
  return state.phase === 'collecting' && state.reply.message.parts.length > 0 ? state.lastText : ''
}

interface Read {
  /** The last turn whose reply was read. */
  readonly turn: number
  readonly finalText?: FinalText
}

/** The text of each message once it is final: it is whole, and every check of it has passed. */
export function finalTextsOf(folded$: Observable<FoldedEvent>): Observable<FinalText> {
  return flattened(
    folded$.pipe(scan(({ turn }: Read, folded) => readReply(turn, folded), { turn: 0 })),
    ({ finalText }) => (finalText ? [finalText] : []),
  )
}

function readReply(turn: number, { event, state }: FoldedEvent): Read {
  if (state.phase !== 'collecting' || state.turn === turn) return { turn }
  if (findDueAnswerCheck(state) && !isWithheld(event)) return { turn }
  const text = replyText(state)
  // An answer that the model is to write again is withdrawn.
  const isWithdrawn = event.type === 'output_checked' && event.repair !== undefined
  return { turn: event.turn, ...(text !== '' && !isWithdrawn && { finalText: { text, seq: event.seq } }) }
}

/** True if the run ends with a replacement of its answer: the time was up before a guardrail had checked it. */
function isWithheld(event: RuntimeEvent): boolean {
  return event.type === 'guardrail_tripped' && event.on === 'output' && event.cause === 'controller'
}
