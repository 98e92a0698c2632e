import type { Message, ToolResult } from '../vocabulary/content.ts'
import { messagesOf } from './history.ts'
import { textContent } from './outcome-text.ts'
import type { Call, RunState } from './state.ts'
import { openTurnCalls } from './state-views.ts'

/**
 * What a model could be shown in this state, whatever the state: the history, and behind a message whose calls are
 * still open their results so far, with `interrupted` or `skipped` standing in for those that are missing. So any
 * prefix of any ledger gives messages that every provider accepts. An allow-list: nothing but messages gets in.
 */
export function transcript(state: RunState): readonly Message[] {
  const messages = messagesOf(state.history)
  if (state.phase !== 'collecting' && state.phase !== 'executing') return messages
  const calls = openTurnCalls(state)
  if (calls.length === 0) return messages
  return [...messages, { role: 'tool', results: calls.map((call) => call.result ?? standIn(call)) }]
}

function standIn({ toolCallId, name, attempts }: Call): ToolResult {
  const outcome = attempts > 0 ? 'interrupted' : 'skipped'
  const text = attempts > 0 ? undefined : 'This call was not run.'
  return { toolCallId, name, outcome, content: textContent(outcome, text) }
}
