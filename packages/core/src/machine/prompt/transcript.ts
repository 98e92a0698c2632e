import type { Message, ToolResult } from '../../vocabulary/model/content.ts'
import { shownResult } from './changed-input.ts'
import { appendMessage, carriedMessages, messagesOf } from '../messages/history.ts'
import { textContent } from '../messages/outcome-text.ts'
import type { Call, RunState } from '../state/state.ts'
import { openTurnCalls } from '../state/state-views.ts'

/**
 * What a model could be shown in this state, whatever the state: the history, and after a message whose calls are
 * still open their results so far, with `interrupted` or `skipped` standing in for those that are missing. So any
 * prefix of any ledger gives messages that every provider accepts. An allow-list: nothing but messages gets in.
 */
export function transcript(state: RunState): readonly Message[] {
  const messages = messagesOf(state.history)
  const results = openResults(state)
  return results ? [...messages, results] : messages
}

/** What another run begins with that follows this state: the transcript, with its running digests. */
export function carriedTranscript(state: RunState): readonly Message[] {
  const results = openResults(state)
  return carriedMessages(results ? appendMessage(state.history, results) : state.history)
}

function openResults(state: RunState): Message | undefined {
  if (state.phase !== 'collecting' && state.phase !== 'executing') return undefined
  const calls = openTurnCalls(state)
  if (calls.length === 0) return undefined
  return { role: 'tool', results: calls.map((call) => shownResult(call) ?? placeholderResult(call)) }
}

function placeholderResult({ toolCallId, name, attempts }: Call): ToolResult {
  const outcome = attempts > 0 ? 'interrupted' : 'skipped'
  const text = attempts > 0 ? undefined : 'This call was not run.'
  return { toolCallId, name, outcome, content: textContent(outcome, text) }
}
