import { type AssistantMessage, type Message, textOf, type ToolResult } from '../events/content.ts'
import { type EventOf, type HistoryEdit, removedText, type RuntimeEvent } from '../events/event.ts'
import { canonicalJson, type Json, omitUndefined } from '../values/json.ts'
import { listGuardrails } from './required-effects.ts'
import { requireClosed } from './fold-tool-calls.ts'
import { withSummary } from './compaction.ts'
import { type History, historyFault, historyOf, messageAt, messagesOf, pairingFault } from './history.ts'
import { illegalTransition } from './transition-table.ts'
import { type CollectingState, type RunState, withHistory, withMessage, withSpent } from './state.ts'
import { estimateDefinitionTokens } from './tokens.ts'
import { findCall, textContent } from './calls.ts'

/** No run has more messages than this; the number may come from a file of unknown origin. */
const maxMissing = 1_000_000

/** The history of an earlier run, before anything is said in this one. */
export function applyHistoryCarried(state: RunState, event: EventOf<'history_carried'>): RunState {
  if (state.history.length > 0) throw illegalTransition(state, event, 'something was said already')
  const { uncheckedFrom } = event
  const { missing = 0 } = event
  if (missing > maxMissing)
    throw illegalTransition(state, event, `${missing} messages are more than a run can carry`)
  const history = historyOf(missing === 0 ? event.messages : [...removedMessages(missing), ...event.messages])
  requirePaired(state, event, history)
  const next = withHistory(state, history)
  const guardrails = listGuardrails(state, 'input')
  if (uncheckedFrom === undefined || guardrails.length === 0) return next
  return { ...next, inputCheck: { seq: event.seq, from: uncheckedFrom, guardrails } }
}

/** The history with some of its messages changed or gone. */
export function applyHistoryEdited(state: RunState, event: EventOf<'history_edited'>): RunState {
  const messages = withEdits(messagesOf(state.history), event.edits)
  if (messages === undefined) {
    throw illegalTransition(state, event, 'its places are not in ascending order, or not in the history')
  }
  const paired = historyOf(state.removedFrom === undefined ? messages : withoutUnpaired(messages))
  requirePaired(state, event, paired)
  requireClosed(state, event)
  const exchangeFrom = state.exchangeFrom - countRemovedBefore(event.edits, state.exchangeFrom)
  const next = withHistory({ ...state, exchangeFrom }, paired)
  const { inputCheck } = state
  if (inputCheck === undefined) return next
  return {
    ...next,
    inputCheck: { ...inputCheck, from: inputCheck.from - countRemovedBefore(event.edits, inputCheck.from) },
  }
}

function countRemovedBefore(edits: readonly HistoryEdit[], place: number): number {
  return edits.filter(({ index, message }) => !message && index < place).length
}

/** The messages after some edits; `undefined` where the edits name places that are not there, or not in order. */
export function withEdits(
  messages: readonly Message[],
  edits: readonly HistoryEdit[],
): readonly Message[] | undefined {
  let last = -1
  const changed: (Message | undefined)[] = [...messages]
  for (const { index, message } of edits) {
    if (index <= last || index >= messages.length) return undefined
    last = index
    changed[index] = message
  }
  return changed.flatMap((message) => (message ? [message] : []))
}

/** A model begins to sum up the oldest messages. */
export function applyCompactionStarted(state: RunState, event: EventOf<'compaction_started'>): RunState {
  requireCut(state, event)
  const { compacting: before } = state
  if (before && !before.interrupted)
    throw illegalTransition(state, event, 'a summary is being written already')
  const { model, replacedMessages, grant, maxOutputTokens, interrupted } = event
  if (before && before.replacedMessages !== replacedMessages) {
    throw illegalTransition(state, event, 'the summary that was interrupted replaces other messages')
  }
  const compacting = { model, replacedMessages, grant, ...omitUndefined({ maxOutputTokens }) }
  const totals = interrupted ? withSpent(state.totals, interrupted.usage, interrupted.costUsd) : state.totals
  return { ...state, totals, compacting }
}

/** The history with its older messages replaced: cut where no call is parted from its result (law 3). */
export function applyContextCompacted(state: RunState, event: EventOf<'context_compacted'>): RunState {
  requireCut(state, event)
  const { replacedMessages, taskAt, usage = {}, costUsd } = event
  if (state.compacting && state.compacting.replacedMessages !== replacedMessages) {
    throw illegalTransition(state, event, 'it replaces other messages than are being summed up')
  }
  const { compacting: _ended, ...rest } = state
  if (
    taskAt !== undefined &&
    (taskAt >= replacedMessages || messageAt(state.history, taskAt)?.role !== 'user')
  ) {
    throw illegalTransition(state, event, `the message ${taskAt} is not one of the user's that it replaces`)
  }
  const kept = withSummary(state, event)
  const totals = withSpent(state.totals, usage, costUsd)
  // The summary comes first, then the task.
  const exchangeFrom = 1 + Math.max(0, state.exchangeFrom - replacedMessages)
  // Where unchecked input was summed up, guardrails check the summary.
  const moved = kept.length - state.history.length
  const from =
    state.inputCheck && state.inputCheck.from >= replacedMessages ? state.inputCheck.from + moved : 0
  const shorter = withHistory<RunState>(
    withChecksRestarted({ ...rest, totals, exchangeFrom, compactedTurn: state.turn }, event, from),
    historyOf(kept),
  )
  if (shorter.phase !== 'streaming' || !shorter.attempt.failed) return shorter
  const failed = { ...shorter.attempt.failed, shortened: true as const }
  return { ...shorter, attempt: { ...shorter.attempt, failed } }
}

/**
 * Guardrails name messages by their places. Where messages have moved while guardrails look, these look again: what they
 * find at the places of before is of no check that is due.
 */
function withChecksRestarted(state: RunState, { seq }: RuntimeEvent, from: number): RunState {
  const { inputCheck } = state
  return inputCheck ? { ...state, inputCheck: { ...inputCheck, seq, from } } : state
}

function requireCut(
  state: RunState,
  event: EventOf<'compaction_started'> | EventOf<'context_compacted'>,
): void {
  const messages = messagesOf(state.history)
  const { replacedMessages } = event
  if (replacedMessages <= messages.length && messages[replacedMessages]?.role !== 'tool') return
  throw illegalTransition(state, event, 'it would part a message from its results')
}

/** Another agent continues, with its own model, instructions and tools. */
export function applyAgentHandedOff(state: RunState, event: EventOf<'agent_handed_off'>): RunState {
  if (state.phase !== 'injecting' || state.handoff?.to !== event.to || state.handoff.back) {
    throw illegalTransition(state, event, `no call asked for ${event.to}`)
  }
  if (event.from !== state.agent) throw illegalTransition(state, event, `the active agent is ${state.agent}`)
  const { handoff: _done, model: _its, ...rest } = state
  const { to: agent, definition, messages } = event
  const next = { ...rest, agent, definition, repairs: 0 }
  if (messages) {
    const history = historyOf(messages)
    requirePaired(state, event, history)
    const exchangeFrom = Math.max(
      0,
      messages.findLastIndex(({ role }) => role === 'user'),
    )
    return withHistory(withChecksRestarted({ ...next, exchangeFrom }, event, 0), history)
  }
  const contextTokens =
    state.contextTokens + estimateDefinitionTokens(definition) - estimateDefinitionTokens(state.definition)
  return { ...next, contextTokens: Math.max(0, contextTokens) }
}

/** Replaces messages whose content is gone. */
function removedMessages(messages: number): readonly Message[] {
  return Array.from({ length: messages }, () => removedMessage)
}

const removedMessage: Message = { role: 'user', parts: [{ type: 'text', text: removedText }] }

/** Messages of which some are gone: what is left of a call, or of its results, without the other half goes too. */
function withoutUnpaired(messages: readonly Message[]): readonly Message[] {
  return messages.map((message, index) => {
    const [before, after] = [messages[index - 1], messages[index + 1]]
    if (message.role === 'tool') return before && isWhole(before, message) ? message : removedMessage
    return isWhole(message, after) ? message : removedMessage
  })
}

function isWhole(message: Message, after: Message | undefined): boolean {
  return pairingFault(after?.role === 'tool' ? [message, after] : [message]) === undefined
}

function requirePaired(state: RunState, event: RuntimeEvent, history: History): void {
  const fault = historyFault(history)
  if (fault) throw illegalTransition(state, event, fault)
}

/** A guardrail's find changes the model's view, or ends the run. */
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
    throw illegalTransition(state, event, `the history holds no input at ${index} that it could replace`)
  }
  return withMessageAt(state, index, { role: 'user', parts: replacement })
}

/** A blocked answer stays in the ledger; the history gets its replacement. */
function replaceAnswer(state: RunState, event: EventOf<'guardrail_tripped'>): CollectingState {
  if (state.phase !== 'collecting' || state.calls.length > 0) {
    throw illegalTransition(state, event, 'there is no answer that it could replace')
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
    throw illegalTransition(state, event, 'there is no result that it could replace')
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
      if (state.phase !== 'collecting') throw illegalTransition(state, event, 'there is no answer')
      return { ...state, reply: { ...state.reply, guarded: true } }
    case 'tool_output':
      if (state.phase !== 'executing') throw illegalTransition(state, event, 'there are no results')
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
    throw illegalTransition(state, event, 'there is no answer')
  const { valid, output, error, repair } = event
  const fit = { valid, ...(error !== undefined && { error }) }
  const next = { ...state, reply: { ...state.reply, fit } }
  if (valid) return output === undefined ? next : withOutput(next, output)
  if (repair === undefined) return next
  return { ...withMessage(next, repair), inputSinceReply: true, repairs: state.repairs + 1 }
}
