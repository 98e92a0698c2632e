import type { Message, ModelRequest } from '@tallystick/core'
import type { AssistantMessage, ModelRef, ToolCallId, ToolResult } from '@tallystick/core/vocabulary'
import type { ContractReply, Scene } from './contract-case.ts'

/** A request that every model can answer. */
export const plainRequest: ModelRequest = {
  instructions: 'Be brief.',
  messages: [{ role: 'user', parts: [{ type: 'text', text: 'Hello' }] }],
  tools: [],
  toolChoice: { type: 'auto' },
  parallelToolCalls: true,
}

const inputSchema = { type: 'object', properties: { city: { type: 'string' } } }

/** The same with two tools. */
export const toolRequest: ModelRequest = {
  ...plainRequest,
  tools: [
    { name: 'get_weather', description: 'Says the weather.', inputSchema },
    { name: 'get_time', description: 'Says the time.', inputSchema: { type: 'object' } },
  ],
}

/** Words of several bytes a character, in several pieces. */
export const spokenReply: ContractReply = {
  text: ['Grüß dich! ', 'In Seoul (서울) it is ', '🌦️.\n'],
  stop: 'end',
  usage: { inputTokens: 12, outputTokens: 34 },
}

/** Words and three calls: one with input, one without, and one more of the first tool. */
export const replyWithCall: ContractReply = {
  text: ['Let me look.'],
  calls: [
    { id: 'call_a1', name: 'get_weather', input: { city: 'Seoul — 서울', nested: { days: [1, 2.5, null] } } },
    { id: 'call_b2', name: 'get_time', input: {} },
    { id: 'call_c3', name: 'get_weather', input: { city: 'Busan' } },
  ],
  stop: 'tool_use',
  usage: { inputTokens: 120, outputTokens: 64 },
}

/** A scene of one reply. */
export const replying = (
  reply: ContractReply,
  more: Partial<Extract<Scene, { type: 'reply' }>> = {},
): Scene => ({
  type: 'reply',
  reply,
  ...more,
})

/** An id of a call, as the runtime mints it. */
export function callIdOf(ordinal: number): ToolCallId {
  return `call_${'0'.repeat(32)}_1_1_${ordinal}` as ToolCallId
}

const elsewhere: ModelRef = { provider: 'elsewhere', api: 'other', modelId: 'other-1' }
const opaque = { provider: 'elsewhere', api: 'other', data: { id: 'rs_1', secret: ['x'] } }

/** A reply as the history holds it, from another vendor where `model` is not said. */
function reply(parts: AssistantMessage['parts'], more: Partial<AssistantMessage> = {}): AssistantMessage {
  return { role: 'assistant', parts, model: elsewhere, stopReason: 'end', partial: false, ...more }
}

function result(ordinal: number, name: string, more: Partial<ToolResult> = {}): ToolResult {
  const content = [{ type: 'text' as const, text: `the result ${ordinal}` }]
  return { toolCallId: callIdOf(ordinal), name, outcome: 'success', content, ...more }
}

function call(ordinal: number, name: string): AssistantMessage['parts'][number] {
  return {
    type: 'tool_call',
    toolCallId: callIdOf(ordinal),
    providerCallId: 'call_0',
    name,
    input: { n: ordinal },
  }
}

const user = (text: string): Message => ({ role: 'user', parts: [{ type: 'text', text }] })
const png = { type: 'image' as const, mediaType: 'image/png', data: 'aGk=' }

/** Histories that the runtime can come to, named by what is hard about them. */
export function hardHistories(
  own: ModelRef,
): readonly (readonly [name: string, messages: readonly Message[]])[] {
  return [
    ['no message at all', []],
    ['a message without a word', [user('')]],
    ['half of a surrogate pair', [user('half \ud83d a pair')]],
    ['two messages of the user in a row', [user('a'), user('b')]],
    ['a reply that comes first', [reply([{ type: 'text', text: 'Hi' }]), user('x')]],
    [
      'a reply in which nothing was said',
      [user('a'), reply([], { partial: true, stopReason: 'cancelled' }), user('b')],
    ],
    [
      'a reply that was cut in its thinking',
      [user('a'), reply([{ type: 'reasoning', text: 'hm' }], { model: own, partial: true }), user('b')],
    ],
    [
      'what another vendor needs back',
      [
        user('a'),
        reply([
          { type: 'reasoning', text: 'hm', opaque },
          { type: 'provider', kind: 'web_search_call', opaque },
          { type: 'text', text: 'b', opaque },
        ]),
        user('c'),
      ],
    ],
    [
      'calls under one id of another vendor, and tools that are no longer offered',
      [
        user('a'),
        reply([call(1, 'files/read'), call(2, 'files.read')], { stopReason: 'tool_use' }),
        { role: 'tool', results: [result(1, 'files/read'), result(2, 'files.read', { outcome: 'failed' })] },
      ],
    ],
    [
      'results that are empty, errors without words, and pictures',
      [
        user('a'),
        reply([call(1, 'f'), call(2, 'f'), call(3, 'f')], { model: own, stopReason: 'tool_use' }),
        {
          role: 'tool',
          results: [
            result(1, 'f', { content: [] }),
            result(2, 'f', { content: [], outcome: 'interrupted' }),
            result(3, 'f', { content: [png, { type: 'text', text: 'see' }] }),
          ],
        },
      ],
    ],
    [
      'a picture, an address of one, and files',
      [
        {
          role: 'user',
          parts: [
            png,
            { type: 'image', mediaType: 'image/png', url: 'https://example.org/a.png' },
            { type: 'file', mediaType: 'application/zip', data: 'aGk=', name: 'a.zip' },
            { type: 'file', mediaType: 'text/plain', data: 'aGk=' },
          ],
        },
      ],
    ],
  ]
}
