import { getOwn } from '@tallystick/core/kit'
import type { StopReason } from '@tallystick/core/vocabulary'

const known: { readonly [raw: string]: StopReason } = {
  stop: 'end',
  eos: 'end',
  eos_token: 'end',
  stop_sequence: 'end',
  end_turn: 'end',
  tool_calls: 'tool_use',
  function_call: 'tool_use',
  tool_use: 'tool_use',
  length: 'max_tokens',
  max_tokens: 'max_tokens',
  model_length: 'context_exceeded',
  model_context_window_exceeded: 'context_exceeded',
  content_filter: 'content_filtered',
  sensitive: 'content_filtered',
}

/** Words for an end that was none: the server gave up in the middle. */
const broken = new Set(['error', 'abort', 'cancelled', 'insufficient_system_resource', 'network_error'])
/** Gemini's word, alone or behind a filter's name, for a call that it could not read itself. */
const unreadCall = /malformed_function_call/i

/**
 * Returns a server's finish reason in our words. The calls decide whether the model wants tools: many servers say
 * `stop` after calls.
 */
export function stopReasonOf(raw: string, calls: boolean, refused: boolean): StopReason {
  const reason = getOwn(known, raw) ?? 'other'
  if (reason !== 'end' && reason !== 'tool_use') return reason
  if (calls) return 'tool_use'
  return refused ? 'refused' : 'end'
}

/** Whether the reply was cut where it stood, so that its last call may be half a call. */
export function cutsReply(raw: string): boolean {
  const reason = getOwn(known, raw)
  return reason === 'max_tokens' || reason === 'context_exceeded' || reason === 'content_filtered'
}

/** Whether the reason says that the server broke the reply off. */
export function isBroken(raw: string): boolean {
  return broken.has(raw) || unreadCall.test(raw)
}

/** Whether the reason says that the model waits for tools. */
export function stopsForTools(raw: string): boolean {
  return getOwn(known, raw) === 'tool_use'
}
