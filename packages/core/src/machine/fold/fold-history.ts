import type { Message } from '../../vocabulary/model/content.ts'
import {
  removedText,
  type EventOf,
  type HistoryEdit,
  type RuntimeEvent,
} from '../../vocabulary/events/event.ts'
import { omitUndefined } from '../../vocabulary/values/omit-undefined.ts'
import { guardrailsOn } from '../state/due-checks.ts'
import { requireClosed } from './fold-tool-calls.ts'
import { withSummary } from '../prompt/compaction.ts'
import { historyFault, historyOf, messageAt, messagesOf, type History } from '../messages/history.ts'
import { illegal } from './illegal.ts'
import { pairingFault } from '../messages/pairing.ts'
import { withHistory } from '../state/run-base.ts'
import { withSpent } from '../state/totals.ts'
import type { RunState } from '../state/state.ts'
import { definitionTokens } from '../messages/token-estimate.ts'

/** No run has more messages than this; the number may come from a file of unknown origin. */
const maxMissing = 1_000_000

/** The history of an earlier run, before anything is said in this one. */
export function applyHistoryCarried(state: RunState, event: EventOf<'history_carried'>): RunState {
  if (state.history.length > 0) throw illegal(state, event, 'something was said already')
  const { uncheckedFrom } = event
  const { missing = 0 } = event
  if (missing > maxMissing) throw illegal(state, event, `${missing} messages are more than a run can carry`)
  const history = historyOf(missing === 0 ? event.messages : [...removedMessages(missing), ...event.messages])
  requirePaired(state, event, history)
  const next = withHistory(state, history)
  const guardrails = guardrailsOn(state, 'input')
  if (uncheckedFrom === undefined || guardrails.length === 0) return next
  return { ...next, inputCheck: { seq: event.seq, from: uncheckedFrom, guardrails } }
}

/** The history with some of its messages changed or gone. */
export function applyHistoryEdited(state: RunState, event: EventOf<'history_edited'>): RunState {
  const messages = withEdits(messagesOf(state.history), event.edits)
  if (messages === undefined) {
    throw illegal(state, event, 'its places are not in ascending order, or not in the history')
  }
  const paired = historyOf(state.removedFrom === undefined ? messages : withoutUnpaired(messages))
  requirePaired(state, event, paired)
  requireClosed(state, event)
  const exchangeFrom = state.exchangeFrom - removedBefore(event.edits, state.exchangeFrom)
  const next = withHistory({ ...state, exchangeFrom }, paired)
  const { inputCheck } = state
  if (inputCheck === undefined) return next
  return {
    ...next,
    inputCheck: { ...inputCheck, from: inputCheck.from - removedBefore(event.edits, inputCheck.from) },
  }
}

function removedBefore(edits: readonly HistoryEdit[], place: number): number {
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
  if (before && !before.interrupted) throw illegal(state, event, 'a summary is being written already')
  const { model, replacedMessages, grant, maxOutputTokens, interrupted } = event
  if (before && before.replacedMessages !== replacedMessages) {
    throw illegal(state, event, 'the summary that was interrupted replaces other messages')
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
    throw illegal(state, event, 'it replaces other messages than are being summed up')
  }
  const { compacting: _ended, ...rest } = state
  if (
    taskAt !== undefined &&
    (taskAt >= replacedMessages || messageAt(state.history, taskAt)?.role !== 'user')
  ) {
    throw illegal(state, event, `the message ${taskAt} is not one of the user's that it replaces`)
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
  throw illegal(state, event, 'it would part a message from its results')
}

/** Another agent continues, with its own model, instructions and tools. */
export function applyAgentHandedOff(state: RunState, event: EventOf<'agent_handed_off'>): RunState {
  if (state.phase !== 'injecting' || state.handoff?.to !== event.to || state.handoff.back) {
    throw illegal(state, event, `no call asked for ${event.to}`)
  }
  if (event.from !== state.agent) throw illegal(state, event, `the active agent is ${state.agent}`)
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
    state.contextTokens + definitionTokens(definition) - definitionTokens(state.definition)
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
  if (fault) throw illegal(state, event, fault)
}
