import {
  textOf,
  type AssistantMessage,
  type Message,
  type ToolResult,
} from '../../vocabulary/model/content.ts'
import type { EventOf } from '../../vocabulary/events/event.ts'
import { canonicalJson, type Json } from '../../vocabulary/values/json.ts'
import type { CollectingState, RunState } from '../state/state.ts'
import { findCall } from '../state/state-views.ts'
import { historyOf, messageAt, messagesOf } from '../messages/history.ts'
import { illegal } from './illegal.ts'
import { textContent } from '../messages/outcome-text.ts'
import { withMessage } from '../state/run-base.ts'

/** What a guardrail found changes what the model is shown, or ends the run. */
export function applyGuardrailTripped(state: RunState, event: EventOf<'guardrail_tripped'>): RunState {
  const { guardrail, on, action, detail } = event
  const blocked = { guardrail, on, ...(detail !== undefined && { detail }) }
  switch (on) {
    case 'input':
      if (action === 'record') return state
      return { ...replaceInput(state, event), ...(action === 'block' && { blocked }) }
    case 'output': {
      if (action === 'record') return state
      const { output: _read, ...next } = replaceAnswer(state, event)
      return action === 'block' ? { ...next, blocked } : next
    }
    case 'tool_input':
      // `tool_requests_collected` records what happens to the call.
      return state
    case 'tool_output':
      return action === 'record' ? state : replaceResult(state, event)
  }
}

function replaceInput(state: RunState, event: EventOf<'guardrail_tripped'>): RunState {
  const { index = -1, replacement = withheldText(event) } = event
  if (messageAt(state.history, index)?.role !== 'user') {
    throw illegal(state, event, `the history holds no input at ${index} that it could replace`)
  }
  return withMessageAt(state, index, { role: 'user', parts: replacement })
}

/** A blocked answer stays in the ledger; the history gets its replacement. */
function replaceAnswer(state: RunState, event: EventOf<'guardrail_tripped'>): CollectingState {
  if (state.phase !== 'collecting' || state.calls.length > 0) {
    throw illegal(state, event, 'there is no answer that it could replace')
  }
  const parts = (event.replacement ?? withheldText(event)).flatMap((part) =>
    part.type === 'text' && part.text !== '' ? [part] : [],
  )
  const message: AssistantMessage = { ...state.reply.message, parts }
  // The history holds no empty message: neither an empty answer nor an empty replacement.
  const isInHistory = state.reply.message.parts.length > 0 && !state.reply.leftOut
  const before = messagesOf(state.history).slice(0, isInHistory ? -1 : undefined)
  const history = historyOf(parts.length > 0 ? [...before, message] : before)
  // The new text has not been checked against the schema yet.
  const { fit: _unknown, leftOut: _before, ...reply } = state.reply
  return { ...state, history, lastText: textOf(parts), reply: { ...reply, message } }
}

function replaceResult(state: RunState, event: EventOf<'guardrail_tripped'>): RunState {
  const call = findCall(state, event.toolCallId ?? '')
  if (state.phase !== 'executing' || call?.result === undefined) {
    throw illegal(state, event, 'there is no result that it could replace')
  }
  const content = event.replacement ?? withheldText(event)
  const result: ToolResult = { ...call.result, content }
  const calls = state.calls.map((each) => (each === call ? { ...call, result } : each))
  return { ...state, calls }
}

function withheldText({ guardrail }: EventOf<'guardrail_tripped'>): ReturnType<typeof textContent> {
  return textContent('denied', `The guardrail ${guardrail} withheld this.`)
}

function withMessageAt<State extends RunState>(state: State, index: number, message: Message): State {
  return { ...state, history: historyOf(messagesOf(state.history).with(index, message)) }
}

/** The state in which those guardrails that `remains` names still have to look at the input. */
export function withInputCheck(state: RunState, remains: (name: string) => boolean): RunState {
  const { inputCheck, ...rest } = state
  const guardrails = inputCheck?.guardrails.filter(remains) ?? []
  if (inputCheck === undefined || guardrails.length === 0) return rest
  return { ...state, inputCheck: { ...inputCheck, guardrails } }
}

/** Guardrails have checked: what waited for them may continue. */
export function applyGuardrailsChecked(state: RunState, event: EventOf<'guardrails_checked'>): RunState {
  switch (event.on) {
    case 'input':
      return withInputCheck(state, (name) => !event.guardrails.includes(name))
    case 'output':
      if (state.phase !== 'collecting') throw illegal(state, event, 'there is no answer')
      return { ...state, reply: { ...state.reply, guarded: true } }
    case 'tool_output':
      if (state.phase !== 'executing') throw illegal(state, event, 'there are no results')
      return { ...state, resultsChecked: true }
    case 'tool_input':
      return state
  }
}

/** The answer as JSON; where it was wrapped, its text is what was wrapped. */
function withOutput(state: CollectingState, output: Json): CollectingState {
  const lastText = state.definition.output?.wrapped ? canonicalJson(output) : state.lastText
  return { ...state, output: { value: output }, lastText }
}

/** The answer fits its schema, or the model repairs it, or the repairs are used up. */
export function applyOutputChecked(state: RunState, event: EventOf<'output_checked'>): RunState {
  if (state.phase !== 'collecting' || state.calls.length > 0)
    throw illegal(state, event, 'there is no answer')
  const { valid, output, error, repair } = event
  const fit = { valid, ...(error !== undefined && { error }) }
  const next = { ...state, reply: { ...state.reply, fit } }
  if (valid) return output === undefined ? next : withOutput(next, output)
  if (repair === undefined) return next
  return { ...withMessage(next, repair), inputSinceReply: true, repairs: state.repairs + 1 }
}
