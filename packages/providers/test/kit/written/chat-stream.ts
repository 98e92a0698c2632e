import { dataRecord } from '../bytes.ts'
import type { Folder, Given, Written } from './reading.ts'

type Fields = Readonly<Record<string, unknown>>

export const doneLine = 'data: [DONE]\n\n'

/** Chunks as a body; a string is a line of the stream that is not a chunk. */
export const bodyOf = (chunks: readonly (object | string)[]): string =>
  chunks.map((one) => (typeof one === 'string' ? one : dataRecord(one))).join('')

/** A stream of Chat Completions under a name that says its trouble, with the last word of the wire. */
export function stream(
  file: string,
  chunks: readonly (object | string)[],
  given: Given,
  folder: Folder = 'openai-chat',
): Written {
  return ofBody(file, bodyOf([...chunks, doneLine]), given, folder)
}

export function ofBody(file: string, body: string, given: Given, folder: Folder = 'openai-chat'): Written {
  return { folder, file, body, id: 'chatcmpl-w1', served: 'gpt-test-1', parts: [], calls: [], ...given }
}

/** An answer of another status than 200. */
export function refusal(file: string, status: number, body: unknown, given: Given): Written {
  const headers = { 'content-type': 'application/json', ...given.headers }
  return {
    folder: 'openai-chat',
    file,
    body: JSON.stringify(body),
    status,
    parts: [],
    calls: [],
    ...given,
    headers,
  }
}

export const chunk = (choices: readonly object[], more: Fields = {}) => ({
  id: 'chatcmpl-w1',
  object: 'chat.completion.chunk',
  created: 1_900_000_000,
  model: 'gpt-test-1',
  choices,
  ...more,
})
export const choice = (delta: Fields, more: Fields = {}, beside: Fields = {}) =>
  chunk([{ index: 0, delta, finish_reason: null, ...more }], beside)
export const role = choice({ role: 'assistant', content: '' })
export const words = (...pieces: string[]) => pieces.map((content) => choice({ content }))
export const finish = (finish_reason: string, beside: Fields = {}) => choice({}, { finish_reason }, beside)
export const piece = (call: Fields) => choice({ tool_calls: [call] })
/** A call that begins with its name, and whose input comes in these pieces. */
export const call = (index: number, id: string, name: string, ...pieces: string[]) => [
  piece({ index, id, type: 'function', function: { name, arguments: '' } }),
  ...pieces.map((text) => piece({ index, function: { arguments: text } })),
]
/** Tokens of a prompt of 30 and a reply of 12. */
export const usage = (more: Fields = {}) => ({
  prompt_tokens: 30,
  completion_tokens: 12,
  total_tokens: 42,
  ...more,
})
export const counts = (more: Fields = {}) => chunk([], { usage: usage(more) })
export const tokens = { inputTokens: 30, outputTokens: 12 }
