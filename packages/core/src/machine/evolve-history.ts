import type { Message } from '../vocabulary/content.ts'
import type { EventOf, HistoryEdit, RuntimeEvent } from '../vocabulary/event.ts'
import { guardrailsOn } from './due-checks.ts'
import { requireClosed } from './evolve-calls.ts'
import { messagesOf } from './history.ts'
import { illegal } from './illegal.ts'
import { pairingFault } from './pairing.ts'
import { withHistory, withSpent } from './run-facts.ts'
import type { RunState } from './state.ts'
import { definitionTokens } from './token-estimate.ts'

/** The history of an earlier run, before anything is said in this one. */
export function carried(state: RunState, event: EventOf<'history_carried'>): RunState {
  if (state.history.length > 0) throw illegal(state, event, 'something was said already')
  const { messages, uncheckedFrom } = event
  requirePaired(state, event, messages)
  const next = withHistory(state, messages)
  const guardrails = guardrailsOn(state, 'input')
  if (uncheckedFrom === undefined || guardrails.length === 0) return next
  return { ...next, inputCheck: { seq: event.seq, from: uncheckedFrom, guardrails } }
}

/** The history with some of its messages changed or gone. */
export function edited(state: RunState, event: EventOf<'history_edited'>): RunState {
  const messages = withEdits(messagesOf(state.history), event.edits)
  if (messages === undefined) {
    throw illegal(state, event, 'its places are not in ascending order, or not in the history')
  }
  requirePaired(state, event, messages)
  requireClosed(state, event)
  const next = withHistory(state, messages)
  const { inputCheck } = state
  if (inputCheck === undefined) return next
  const gone = event.edits.filter(({ index, message }) => !message && index < inputCheck.from)
  return { ...next, inputCheck: { ...inputCheck, from: inputCheck.from - gone.length } }
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
export function compactionStarted(state: RunState, event: EventOf<'compaction_started'>): RunState {
  requireCut(state, event)
  if (state.compacting) throw illegal(state, event, 'a summary is being written already')
  const { model, replacedMessages, maxOutputTokens } = event
  const compacting = { model, replacedMessages, ...(maxOutputTokens !== undefined && { maxOutputTokens }) }
  return { ...state, compacting }
}

/** The history with its older messages replaced: cut where no call is parted from its result (law 3). */
export function compacted(state: RunState, event: EventOf<'context_compacted'>): RunState {
  requireCut(state, event)
  const { replacedMessages, summary, usage = {}, costUsd } = event
  if (state.compacting && state.compacting.replacedMessages !== replacedMessages) {
    throw illegal(state, event, 'it replaces other messages than are being summed up')
  }
  const { compacting: _ended, ...rest } = state
  const kept = [summary, ...messagesOf(state.history).slice(replacedMessages)]
  const totals = withSpent(state.totals, usage, costUsd)
  const shorter = withHistory<RunState>({ ...rest, totals, compactedTurn: state.turn }, kept)
  if (shorter.phase !== 'streaming' || !shorter.attempt.failed) return shorter
  const failed = { ...shorter.attempt.failed, shortened: true as const }
  return { ...shorter, attempt: { ...shorter.attempt, failed } }
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

/** Another agent goes on, with its own model, instructions and tools. */
export function handedOff(state: RunState, event: EventOf<'agent_handed_off'>): RunState {
  if (state.phase !== 'injecting' || state.handoff?.to !== event.to || state.handoff.back) {
    throw illegal(state, event, `no call asked for ${event.to}`)
  }
  if (event.from !== state.agent) throw illegal(state, event, `the active agent is ${state.agent}`)
  const { handoff: _done, model: _its, ...rest } = state
  const { to: agent, definition, messages } = event
  const next = { ...rest, agent, definition, repairs: 0 }
  if (messages) {
    requirePaired(state, event, messages)
    return withHistory(next, messages)
  }
  const contextTokens =
    state.contextTokens + definitionTokens(definition) - definitionTokens(state.definition)
  return { ...next, contextTokens: Math.max(0, contextTokens) }
}

function requirePaired(state: RunState, event: RuntimeEvent, messages: readonly Message[]): void {
  const fault = pairingFault(messages)
  if (fault) throw illegal(state, event, fault)
}
