import type { Model } from '@tallystick/core'
import { anthropic } from '../../src/anthropic.ts'
import { ollama } from '../../src/ollama.ts'
import { openai, openaiChat, type OpenAIChatOptions, type OpenAIOptions } from '../../src/openai.ts'
import { chatBytes, dataRecord, sseBytes, sseRecord } from './bytes.ts'
import type { Answer } from './loopback.ts'
import * as lines from './ollama-lines.ts'
import {
  added,
  args,
  callPieces,
  chatUsage,
  completed,
  content,
  counted,
  created,
  finish,
  functionCall,
  message,
  richChat,
  richResponse,
  role,
  said,
} from './openai-streams.ts'
import { done, json, open, rich, start, stop, text, textBlock, toolBlock } from './streams.ts'

/** Options that every adapter has. */
export type CommonOptions = Pick<
  OpenAIOptions & { readonly apiKey?: string },
  'apiKey' | 'baseURL' | 'headers' | 'responseTimeoutMs' | 'idleTimeoutMs'
>

/** What all wires are tested with alike. */
export interface WireUnderTest<Options = CommonOptions> {
  readonly name: string
  readonly path: string
  readonly make: (options: Options, modelId?: string) => Model
  /** One event as a record of the stream. */
  readonly record: (event: unknown) => string
  readonly bytes: (events: readonly object[]) => Uint8Array
  /** What its answers have in common. */
  readonly answer?: Answer
  /** The header with the id of the request, if the service has one. */
  readonly idHeader?: string
  /** A whole reply that says Hello. */
  readonly hello: readonly object[]
  /** What keeps a connection alive before the end of such a reply. */
  readonly signsOfLife: readonly string[]
  /** What is left of the reply after them, if it is not all but its first event. */
  readonly rest?: string
  /** A reply with everything. */
  readonly rich: readonly object[]
  /** A whole reply that calls a tool. */
  readonly toolCall: (name: string, input: string) => readonly object[]
  /** The beginning of a reply, up to some text. */
  readonly begun: (text: string) => readonly object[]
  /** The beginning of a reply, up to the middle of a call, where a call has pieces. */
  readonly inCall?: readonly object[]
  /** A failure that the stream tells of. */
  readonly failing?: (code: string, words: string) => object
}

type OpenAIWire = WireUnderTest<OpenAIOptions & OpenAIChatOptions>

const comments = Array.from({ length: 3 }, () => ': PROCESSING\n\n')

const responses: OpenAIWire = {
  name: 'Responses',
  path: '/responses',
  make: (options, modelId = 'gpt-test') => openai(modelId, options),
  record: sseRecord,
  bytes: sseBytes,
  idHeader: 'x-request-id',
  hello: counted(created(), message(0, 'Hel', 'lo'), completed()),
  signsOfLife: comments,
  rich: richResponse,
  toolCall: (name, input) => counted(created(), functionCall(0, 'call_1', name, input), completed()),
  begun: (words) => counted(created(), added(0, { type: 'message', id: 'msg_0' }), said(0, words)),
  inCall: counted(
    created(),
    added(0, { type: 'function_call', id: 'fc_0', call_id: 'call_1', name: 'f', arguments: '' }),
    args(0, '{"a":'),
  ),
  failing: (code, words) => ({ type: 'error', error: { type: code, code, message: words } }),
}

const chat: OpenAIWire = {
  name: 'Chat Completions',
  path: '/chat/completions',
  make: (options, modelId = 'gpt-test') => openaiChat(modelId, options),
  record: dataRecord,
  bytes: chatBytes,
  idHeader: 'x-request-id',
  hello: [role, content('Hel'), content('lo'), finish('stop'), chatUsage(12, 20)],
  signsOfLife: comments,
  rich: richChat,
  toolCall: (name, input) => [role, ...callPieces(0, 'call_1', name, input), finish('tool_calls')],
  begun: (words) => [role, content(words)],
  inCall: [role, ...callPieces(0, 'call_1', 'f', '{"a":')],
  failing: (code, words) => ({ error: { type: code, code, message: words } }),
}

export const openaiWires: readonly OpenAIWire[] = [responses, chat]

const messages: WireUnderTest = {
  name: 'Messages',
  path: '/v1/messages',
  make: (options, modelId = 'claude-test-1') => anthropic(modelId, options),
  record: sseRecord,
  bytes: sseBytes,
  idHeader: 'request-id',
  hello: [start(), ...textBlock(0, 'Hel', 'lo'), done('end_turn'), stop],
  signsOfLife: Array.from({ length: 3 }, () => 'event: ping\ndata: {"type": "ping"}\n\n'),
  rich,
  toolCall: (name, input) => [start(), ...toolBlock(0, 'toolu_1', name, input), done('tool_use'), stop],
  begun: (words) => [start(), open(0, { type: 'text', text: '' }), text(0, words)],
  inCall: [start(), open(0, { type: 'tool_use', id: 'toolu_1', name: 'f', input: {} }), json(0, '{"a":')],
  failing: (type, words) => ({ type: 'error', error: { details: null, type, message: words } }),
}

const lastLine = JSON.stringify(lines.done())

const ollamaChat: WireUnderTest = {
  name: 'Ollama’s chat',
  path: '/api/chat',
  make: (options, modelId = 'qwen-test') => ollama(modelId, options),
  record: (event) => `${JSON.stringify(event)}\n`,
  bytes: lines.lineBytes,
  answer: lines.answer([]),
  hello: [lines.text('Hello'), lines.done()],
  signsOfLife: [lastLine.slice(0, 10), lastLine.slice(10, 20), lastLine.slice(20, 30)],
  rest: `${lastLine.slice(30)}\n`,
  rich: lines.rich,
  toolCall: (name, input) => [lines.calls(lines.call(name, JSON.parse(input))), lines.done()],
  begun: (words) => [lines.text(words)],
}

export const wires: readonly WireUnderTest[] = [messages, ...openaiWires, ollamaChat]
