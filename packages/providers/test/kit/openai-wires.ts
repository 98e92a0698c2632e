import type { Model } from '@tallystick/core'
import { openai, openaiChat, type OpenAIChatOptions, type OpenAIOptions } from '../../src/openai.ts'
import { chatBytes, dataRecord, sseBytes, sseRecord } from './bytes.ts'
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

/** What both of OpenAI's wires are tested with alike. */
export interface WireUnderTest {
  readonly name: string
  readonly path: string
  readonly make: (options: OpenAIOptions & OpenAIChatOptions, modelId?: string) => Model
  /** One event as a record of the stream. */
  readonly record: (event: unknown) => string
  readonly bytes: (events: readonly object[]) => Uint8Array
  /** A whole reply that says Hello. */
  readonly hello: readonly object[]
  /** A reply with everything, and how many signals it gives. */
  readonly rich: readonly object[]
  readonly richSignals: number
  /** A whole reply that calls a tool. */
  readonly toolCall: (name: string, input: string) => readonly object[]
  /** The beginning of a reply, up to some text. */
  readonly begun: (text: string) => readonly object[]
  /** The beginning of a reply, up to the middle of a call. */
  readonly inCall: readonly object[]
  /** A failure that the stream tells of. */
  readonly failing: (code: string, words: string) => object
}

const responses: WireUnderTest = {
  name: 'Responses',
  path: '/responses',
  make: (options, modelId = 'gpt-test') => openai(modelId, options),
  record: sseRecord,
  bytes: sseBytes,
  hello: counted(created(), message(0, 'Hel', 'lo'), completed()),
  rich: richResponse,
  richSignals: 13,
  toolCall: (name, input) => counted(created(), functionCall(0, 'call_1', name, input), completed()),
  begun: (text) => counted(created(), added(0, { type: 'message', id: 'msg_0' }), said(0, text)),
  inCall: counted(
    created(),
    added(0, { type: 'function_call', id: 'fc_0', call_id: 'call_1', name: 'f', arguments: '' }),
    args(0, '{"a":'),
  ),
  failing: (code, words) => ({ type: 'error', error: { type: code, code, message: words } }),
}

const chat: WireUnderTest = {
  name: 'Chat Completions',
  path: '/chat/completions',
  make: (options, modelId = 'gpt-test') => openaiChat(modelId, options),
  record: dataRecord,
  bytes: chatBytes,
  hello: [role, content('Hel'), content('lo'), finish('stop'), chatUsage(12, 20)],
  rich: richChat,
  richSignals: 12,
  toolCall: (name, input) => [role, ...callPieces(0, 'call_1', name, input), finish('tool_calls')],
  begun: (text) => [role, content(text)],
  inCall: [role, ...callPieces(0, 'call_1', 'f', '{"a":')],
  failing: (code, words) => ({ error: { type: code, code, message: words } }),
}

export const wires: readonly WireUnderTest[] = [responses, chat]
