import type { ModelRequest } from '@tallystick/core'
import type { AssistantMessage, AssistantPart, ModelRef } from '@tallystick/core/vocabulary'
import * as fc from 'fast-check'
import { carriedAs } from './openai-fold.ts'
import { own as elsewhere, requests } from './transcripts.ts'

/** The wires of OpenAI, as histories name them. */
export const ownModels: { readonly [api in 'responses' | 'chat']: ModelRef } = {
  responses: { provider: 'openai', api: 'responses', modelId: 'gpt-test' },
  chat: { provider: 'openai', api: 'chat', modelId: 'gpt-test' },
}

/**
 * Whole requests around histories that the machine can reach, each reply by one of the two wires of OpenAI, or by
 * another vendor. What a reply carries is as the wire would have left it there: `msg_3_1` is the item after part 1 of
 * message 3.
 */
export function openaiRequests(api: 'responses' | 'chat'): fc.Arbitrary<ModelRequest> {
  return fc
    .record({
      request: requests,
      encrypted: fc.boolean(),
      extra: fc.nat({ max: 7 }),
      schema: fc.constantFrom(undefined, closed, open),
    })
    .map(({ request, encrypted, extra, schema }) => ({
      ...request,
      ...(schema && { outputSchema: schema }),
      messages: request.messages.map((message, place) =>
        message.role === 'assistant' && message.model.provider === elsewhere.provider
          ? ownReply(message, { api, place, encrypted, extra: extra + place })
          : message,
      ),
    }))
}

const closed = { type: 'object', properties: { sum: { type: 'number' } }, required: ['sum'] }
const open = { type: 'object', additionalProperties: { type: 'string' } }

interface Shape {
  readonly api: 'responses' | 'chat'
  readonly place: number
  readonly encrypted: boolean
  readonly extra: number
}

function ownReply(message: AssistantMessage, shape: Shape): AssistantMessage {
  const sameModel = message.model.modelId === elsewhere.modelId
  return {
    ...message,
    model: sameModel ? ownModels[shape.api] : { ...ownModels[shape.api], modelId: 'gpt-test-2' },
    parts: message.parts.map((part, index) =>
      shape.api === 'responses' ? responsesPart(part, index, shape) : chatPart(part, shape),
    ),
  }
}

function responsesPart(part: AssistantPart, at: number, { place, encrypted, extra }: Shape): AssistantPart {
  const remember = (item: object, more: object = {}) => ({
    opaque: carriedAs('responses', { item, at, ...more }),
  })
  const id = (prefix: string) => `${prefix}_${place}_${at}`
  switch (part.type) {
    case 'text': {
      const type = extra % 5 === 0 ? 'refusal' : 'output_text'
      return { ...part, ...remember({ type: 'message', id: id('msg') }, { content: { type } }) }
    }
    case 'reasoning': {
      const item = {
        type: 'reasoning',
        id: id('rs'),
        summary: [],
        ...(encrypted && { encrypted_content: 'ZW5j' }),
      }
      return part.opaque === undefined ? part : { ...part, ...remember(item) }
    }
    case 'provider': {
      const kinds = ['web_search_call', 'compaction', 'computer_call', 'mcp_list_tools'] as const
      const kind = kinds[(extra + at) % kinds.length]!
      return { ...part, kind, ...remember({ type: kind, id: id('it') }) }
    }
    case 'tool_call': {
      const { opaque: _, ...call } = part
      const turn = (extra + at) % 4
      if (turn === 0) return call
      if (turn === 1) {
        const item = { type: 'custom_tool_call', id: id('ctc') }
        return { ...call, input: { sql: 'SELECT 1' }, ...remember(item, { field: 'sql' }) }
      }
      if (turn === 2) {
        const approval = { type: 'mcp_approval_request', id: id('mcpr'), name: 'x', arguments: '{}' }
        return { ...call, providerCallId: id('mcpr'), name: 'mcp_approval', ...remember(approval) }
      }
      return { ...call, ...remember({ type: 'function_call', id: extra % 2 ? id('fc') : 'unfit' }) }
    }
  }
}

function chatPart(part: AssistantPart, { extra }: Shape): AssistantPart {
  const remember = (data: object) => ({ opaque: carriedAs('chat', data) })
  const fields = ['reasoning_content', 'reasoning', 'thinking'] as const
  switch (part.type) {
    case 'text':
      return extra % 5 === 0 ? { ...part, ...remember({ refusal: true }) } : { type: 'text', text: part.text }
    case 'reasoning':
      return { ...part, ...remember({ reasoning: fields[extra % 3], details: [{ type: 'reasoning.text' }] }) }
    case 'provider':
      return part
    case 'tool_call': {
      const { opaque: _, ...call } = part
      if (extra % 3 === 0) return { ...call, ...remember({ call: { extra_content: { signature: 'x' } } }) }
      return extra % 3 === 1 ? { ...call, input: { sql: 'SELECT 1' }, ...remember({ field: 'sql' }) } : call
    }
  }
}
