import { sseRecord } from '../bytes.ts'
import { start } from '../streams.ts'
import type { Given, Written } from './reading.ts'

/** Events as a body; a string is a line of the stream that is not an event. */
export const bodyOf = (events: readonly (object | string)[]): string =>
  events.map((event) => (typeof event === 'string' ? event : sseRecord(event))).join('')

/** A stream of Anthropic's wire under a name that says its trouble. */
export function stream(file: string, events: readonly (object | string)[], given: Given): Written {
  return ofBody(file, bodyOf(events), given)
}

export function ofBody(file: string, body: string, given: Given): Written {
  return {
    folder: 'anthropic',
    file,
    body,
    id: 'msg_1',
    served: 'claude-test-1',
    parts: [],
    calls: [],
    ...given,
  }
}

/** An answer of another status than 200. */
export function refusal(
  file: string,
  status: number,
  error: readonly [type: string, message: string],
  given: Given,
): Written {
  const [type, message] = error
  const body = JSON.stringify({ type: 'error', error: { type, message }, request_id: 'req_w1' })
  const headers = { 'content-type': 'application/json', 'request-id': 'req_w1', ...given.headers }
  return { folder: 'anthropic', file, body, status, parts: [], calls: [], ...given, headers }
}

/** The beginning of a reply whose prompt has 30 tokens. */
export const begin = (more: object = {}, usage: object = {}) =>
  start({ usage: { input_tokens: 30, output_tokens: 1, ...usage }, ...more })

/** The reason at the end, with 12 tokens of reply. */
export const reason = (stop_reason: string, usage: object = {}, more: object = {}) => ({
  type: 'message_delta',
  delta: { stop_reason, stop_sequence: null, ...more },
  usage: { output_tokens: 12, ...usage },
})

export const counted = { inputTokens: 30, outputTokens: 12 }
