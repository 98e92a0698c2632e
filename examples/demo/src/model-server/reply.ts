import { randomBytes } from 'node:crypto'
import type { MessagesRequest } from './wire.ts'

/** What the model says next: text, tool calls, or both. */
export interface Reply {
  readonly text: string
  readonly calls: readonly { readonly name: string; readonly input: Readonly<Record<string, unknown>> }[]
}

/** Derives the next message from the request alone, so that the same history gets the same reply. */
export type Player = (request: MessagesRequest) => Reply

/** A record of the stream: its `type` is also the name of the SSE event. */
export type WireEvent = { readonly type: string } & Readonly<Record<string, unknown>>

/** An id in the vendor's shape, such as `msg_01…`. */
export function wireId(prefix: 'msg' | 'toolu' | 'req'): string {
  const alphabet = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz'
  const letters = Array.from(randomBytes(22), (byte) => alphabet[byte % alphabet.length])
  return `${prefix}_01${letters.join('')}`
}

/** Estimates the tokens of a text: one for four characters. */
function tokensOf(text: string): number {
  return Math.ceil(text.length / 4)
}

/**
 * Returns the records of a reply, in order. A reply longer than the request's `max_tokens` is cut there, in the middle of
 * its block, and its stop reason says so.
 */
export function* replyEvents(request: MessagesRequest, reply: Reply): Generator<WireEvent> {
  const prompt = JSON.stringify([request.system, request.tools, request.messages])
  const usage = { input_tokens: tokensOf(prompt), cache_creation_input_tokens: 0, cache_read_input_tokens: 0 }
  yield {
    type: 'message_start',
    message: {
      id: wireId('msg'),
      type: 'message',
      role: 'assistant',
      model: request.model,
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: { ...usage, output_tokens: 1, service_tier: 'standard' },
    },
  }
  let outputTokens = 1
  let cut = false
  for (const [index, block] of replyBlocks(reply).entries()) {
    yield { type: 'content_block_start', index, content_block: block.start }
    if (index === 0) yield { type: 'ping' }
    for (const delta of block.deltas) {
      outputTokens += tokensOf(delta.text ?? delta.partial_json)
      cut = outputTokens > request.max_tokens
      if (cut) break
      yield { type: 'content_block_delta', index, delta }
    }
    yield { type: 'content_block_stop', index }
    if (cut) break
  }
  yield {
    type: 'message_delta',
    delta: {
      stop_reason: cut ? 'max_tokens' : reply.calls.length > 0 ? 'tool_use' : 'end_turn',
      stop_sequence: null,
    },
    usage: { ...usage, output_tokens: Math.min(outputTokens, request.max_tokens) },
  }
  yield { type: 'message_stop' }
}

type Delta =
  | { readonly type: 'text_delta'; readonly text: string; readonly partial_json?: never }
  | { readonly type: 'input_json_delta'; readonly partial_json: string; readonly text?: never }

interface ReplyBlock {
  readonly start: object
  readonly deltas: readonly Delta[]
}

function replyBlocks({ text, calls }: Reply): ReplyBlock[] {
  const blocks: ReplyBlock[] = []
  if (text !== '') {
    const deltas = pieces(text, /\S+\s*|\s+/g).map((piece): Delta => ({ type: 'text_delta', text: piece }))
    blocks.push({ start: { type: 'text', text: '' }, deltas })
  }
  for (const { name, input } of calls) {
    // The vendor opens a tool's input with an empty piece, and sends nothing more for an empty object.
    const json = Object.keys(input).length === 0 ? '' : JSON.stringify(input)
    const deltas = ['', ...pieces(json, /[^]{1,14}/g)].map((piece): Delta => ({
      type: 'input_json_delta',
      partial_json: piece,
    }))
    blocks.push({ start: { type: 'tool_use', id: wireId('toolu'), name, input: {} }, deltas })
  }
  return blocks
}

function pieces(text: string, shape: RegExp): string[] {
  return text.match(shape) ?? []
}
