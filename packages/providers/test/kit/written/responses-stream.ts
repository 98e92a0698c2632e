import { sseRecord } from '../bytes.ts'
import { counted } from '../openai-streams.ts'
import type { Given, Written } from './reading.ts'

type Fields = Readonly<Record<string, unknown>>

/** A stream of the Responses wire under a name that says its trouble; a string is a line that is not an event. */
export function stream(
  file: string,
  events: readonly (object | string | readonly object[])[],
  given: Given,
): Written {
  const numbered = counted(...events.filter((one) => typeof one !== 'string').flat())
  let place = 0
  const records = events
    .flat()
    .map((event) => (typeof event === 'string' ? event : sseRecord(numbered[place++])))
  return ofBody(file, records.join(''), given)
}

export function ofBody(file: string, body: string, given: Given): Written {
  return {
    folder: 'openai-responses',
    file,
    body,
    id: 'resp_w1',
    served: 'gpt-test-1',
    parts: [],
    calls: [],
    ...given,
  }
}

/** An answer of another status than 200. */
export function refusal(file: string, status: number, error: Fields, given: Given): Written {
  const headers = { 'content-type': 'application/json', 'x-request-id': 'req_w1', ...given.headers }
  const body = JSON.stringify({ error: { param: null, code: null, ...error } })
  return { folder: 'openai-responses', file, body, status, parts: [], calls: [], ...given, headers }
}

const response = (status: string, more: Fields) => ({
  id: 'resp_w1',
  object: 'response',
  created_at: 1_900_000_000,
  model: 'gpt-test-1',
  status,
  error: null,
  incomplete_details: null,
  output: [],
  usage: null,
  service_tier: 'default',
  ...more,
})
export const created = (more: Fields = {}) => ({
  type: 'response.created',
  response: response('in_progress', more),
})
export const inProgress = { type: 'response.in_progress', response: response('in_progress', {}) }

/** Tokens of a prompt of 30 and a reply of 12. */
export const usage = (more: Fields = {}) => ({
  input_tokens: 30,
  input_tokens_details: { cached_tokens: 0 },
  output_tokens: 12,
  output_tokens_details: { reasoning_tokens: 0 },
  total_tokens: 42,
  ...more,
})
export const tokens = { inputTokens: 30, outputTokens: 12, cacheReadTokens: 0, reasoningTokens: 0 }
export const completed = (more: Fields = {}) => ({
  type: 'response.completed',
  response: response('completed', { usage: usage(), ...more }),
})
export const incomplete = (reason: string) => ({
  type: 'response.incomplete',
  response: response('incomplete', { usage: usage(), incomplete_details: { reason } }),
})
export const failed = (code: string, message: string) => ({
  type: 'response.failed',
  response: response('failed', { error: { code, message } }),
})

export const added = (output_index: number, item: Fields) => ({
  type: 'response.output_item.added',
  output_index,
  item,
})
export const done = (output_index: number, item: Fields) => ({
  type: 'response.output_item.done',
  output_index,
  item,
})
/** An item that says nothing while it is made. */
export const item = (output_index: number, fields: Fields) => [
  added(output_index, { ...fields, status: 'in_progress' }),
  done(output_index, { ...fields, status: fields['status'] ?? 'completed' }),
]

const place = (output_index: number, item_id: string) => ({ item_id, output_index, content_index: 0 })
export const saying = (at: number, delta: string) => ({
  type: 'response.output_text.delta',
  ...place(at, `msg_${at}`),
  delta,
  logprobs: [],
  obfuscation: 'x7',
})
export const messageBegins = (at: number, more: Fields = {}) => [
  added(at, {
    type: 'message',
    id: `msg_${at}`,
    role: 'assistant',
    status: 'in_progress',
    content: [],
    ...more,
  }),
  {
    type: 'response.content_part.added',
    ...place(at, `msg_${at}`),
    part: { type: 'output_text', text: '', annotations: [], logprobs: [] },
  },
]
export const messageEnds = (
  at: number,
  text: string,
  more: Fields = {},
  annotations: readonly Fields[] = [],
) => {
  const part = { type: 'output_text', text, annotations, logprobs: [] }
  return [
    { type: 'response.output_text.done', ...place(at, `msg_${at}`), text, logprobs: [] },
    { type: 'response.content_part.done', ...place(at, `msg_${at}`), part },
    done(at, {
      type: 'message',
      id: `msg_${at}`,
      role: 'assistant',
      status: 'completed',
      content: [part],
      ...more,
    }),
  ]
}
/** A message whose text comes in these pieces. */
export const message = (at: number, ...pieces: string[]) => [
  ...messageBegins(at),
  ...pieces.map((piece) => saying(at, piece)),
  ...messageEnds(at, pieces.join('')),
]

export const argument = (at: number, delta: string) => ({
  type: 'response.function_call_arguments.delta',
  item_id: `fc_${at}`,
  output_index: at,
  delta,
})
export const callBegins = (at: number, call_id: string, name: string) =>
  added(at, { type: 'function_call', id: `fc_${at}`, call_id, name, arguments: '', status: 'in_progress' })
export const callEnds = (
  at: number,
  [call_id, name]: readonly [id: string, name: string],
  written: string,
  more: Fields = {},
) => [
  {
    type: 'response.function_call_arguments.done',
    item_id: `fc_${at}`,
    output_index: at,
    name,
    arguments: written,
  },
  done(at, {
    type: 'function_call',
    id: `fc_${at}`,
    call_id,
    name,
    arguments: written,
    status: 'completed',
    ...more,
  }),
]
/** A call whose input comes in these pieces. */
export const call = (at: number, call_id: string, name: string, ...pieces: string[]) => [
  callBegins(at, call_id, name),
  ...pieces.map((piece) => argument(at, piece)),
  ...callEnds(at, [call_id, name], pieces.join('')),
]

/** Reasoning with a summary in paragraphs, each in pieces; its encrypted content is whole at the end only. */
export const reasoning = (at: number, encrypted_content: string, ...paragraphs: (readonly string[])[]) => {
  const summary = paragraphs.map((pieces) => ({ type: 'summary_text', text: pieces.join('') }))
  return [
    added(at, { type: 'reasoning', id: `rs_${at}`, summary: [], encrypted_content: 'bm90IHlldA==' }),
    ...paragraphs.flatMap((pieces, summary_index) => {
      const where = { item_id: `rs_${at}`, output_index: at, summary_index }
      const part = { type: 'summary_text', text: '' }
      return [
        { type: 'response.reasoning_summary_part.added', ...where, part },
        ...pieces.map((delta) => ({ type: 'response.reasoning_summary_text.delta', ...where, delta })),
        { type: 'response.reasoning_summary_text.done', ...where, text: pieces.join('') },
        { type: 'response.reasoning_summary_part.done', ...where, part: summary[summary_index] },
      ]
    }),
    done(at, { type: 'reasoning', id: `rs_${at}`, summary, encrypted_content }),
  ]
}
