import type { Message, ModelRequest } from '@tallystick/core'
import type { JsonObject } from '@tallystick/core/vocabulary'
import { describe, expect, it } from 'vitest'
import { tries } from '../../../scripts/testing/effort.ts'
import { renderRequest } from '../src/ollama/request.ts'
import { toToolSchema } from '../src/ollama/tools.ts'
import { testRequests } from './kit/any-history.ts'
import { brokenRules } from './kit/ollama-history-rules.ts'
import { own, requests as transcripts } from './kit/transcripts.ts'
import type { Loose } from './kit/loose.ts'
import type { RenderSettings } from '../src/ollama/options.ts'
import * as fc from 'fast-check'

const modelId = 'qwen-test'
const here = { provider: 'ollama', api: 'chat', modelId }

/** Half of the replies are from here, by one model or another; the rest from elsewhere. */
const requests: fc.Arbitrary<ModelRequest> = fc
  .tuple(transcripts, fc.constantFrom(undefined, { type: 'object', properties: { a: { const: 1 } } }))
  .map(([request, outputSchema]) => ({
    ...request,
    ...(outputSchema && { outputSchema }),
    messages: request.messages.map((message) =>
      message.role === 'assistant' && message.model.provider === own.provider
        ? { ...message, model: { ...here, modelId: message.model === own ? modelId : 'other' } }
        : message,
    ),
  }))
const settings: fc.Arbitrary<RenderSettings> = fc.record({
  modelId: fc.constant(modelId),
  contextTokens: fc.constant(8192),
  warn: fc.constant(() => {}),
  thinking: fc.constantFrom<RenderSettings['thinking']>(undefined, true, false, 'low'),
})
const plain: RenderSettings = { modelId, contextTokens: 8192, warn: () => {} }
const body = (request: ModelRequest, given = plain): Loose => renderRequest(request, given).body

/** Schemas as people and libraries write them, references, circles and trifles included. */
const { schema } = fc.letrec<{ schema: Loose }>((tie) => ({
  schema: fc.oneof(
    { depthSize: 'small', maxDepth: 3 },
    fc.constantFrom<Loose>(
      true,
      {},
      { type: 'string', pattern: '^a$', minLength: 1 },
      { type: ['integer', 'null'], minimum: 0 },
      { const: 'fixed' },
      { enum: ['a', 1, null] },
      { $ref: '#/$defs/city' },
      { $ref: '#/$defs/tree', description: 'A tree.' },
      { $ref: '#' },
      { $ref: '#/nowhere' },
      { $ref: 'https://example.org/schema' },
    ),
    fc.record({ oneOf: fc.array(tie('schema'), { maxLength: 2 }) }),
    fc.record({ allOf: fc.array(tie('schema'), { maxLength: 2 }), description: fc.constant('All.') }),
    fc.record({ type: fc.constant('array'), items: tie('schema'), maxItems: fc.constant(3) }),
    fc.record({
      type: fc.constant('object'),
      properties: fc.dictionary(fc.constantFrom('a', 'b', '$ref'), tie('schema'), { maxKeys: 2 }),
      additionalProperties: fc.boolean(),
    }),
  ),
}))
const toolSchemas: fc.Arbitrary<JsonObject> = fc
  .dictionary(fc.constantFrom('x', 'y', 'z'), schema, { maxKeys: 3 })
  .map((properties) => ({
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    type: 'object',
    properties,
    additionalProperties: false,
    $defs: {
      city: { type: 'string', maxLength: 80, description: 'A city.' },
      tree: {
        type: 'object',
        properties: { left: { $ref: '#/$defs/tree' }, right: { $ref: '#/$defs/tree' } },
      },
    },
  }))

describe('the request that is made of any history', () => {
  testRequests({
    ...{ requests, settings, broken: brokenRules },
    renderer: (given) => (request) => body(request, given),
  })

  it('breaks none with tools of any schema', () => {
    fc.assert(
      fc.property(requests, toolSchemas, (request, inputSchema) => {
        const tools = [{ name: 'a/tool', description: 'Does it.', inputSchema }]
        expect(brokenRules(body({ ...request, tools, toolChoice: { type: 'auto' } }))).toEqual([])
      }),
      { numRuns: tries(500) },
    )
  })

  it('keeps all that was said, called and answered, in order', () => {
    fc.assert(
      fc.property(requests, (request) => {
        const messages: Loose[] = body(request).messages
        const everything = messages.map(({ content }) => content).join('\u0000')
        let from = 0
        for (const message of request.messages) {
          const parts =
            message.role === 'tool' ? message.results.flatMap(({ content }) => content) : message.parts
          for (const part of parts) {
            if (part.type !== 'text' || part.text.trim() === '') continue
            const at = everything.indexOf(part.text.toWellFormed(), from)
            expect(at).toBeGreaterThanOrEqual(from)
            from = at + part.text.length
          }
        }
        const asked = request.messages.flatMap((message) =>
          message.role === 'assistant' ? message.parts.filter((part) => part.type === 'tool_call') : [],
        )
        const sent = messages.flatMap(({ tool_calls = [] }) => tool_calls)
        expect(sent).toHaveLength(asked.length)
        const failed = request.messages.flatMap((message) =>
          message.role === 'tool' ? message.results.map(({ outcome }) => outcome !== 'success') : [],
        )
        const results = messages.filter(({ role }) => role === 'tool')
        expect(results.map(({ content }) => /^Error \(\w+\): /.test(content))).toEqual(failed)
      }),
      { numRuns: tries(500) },
    )
  })

  it('shows thinking to the model that thought it, and to no other', () => {
    fc.assert(
      fc.property(requests, (request) => {
        const thoughts = request.messages.flatMap((message) =>
          message.role === 'assistant' && message.model.modelId === modelId
            ? [message.parts.map((part) => (part.type === 'reasoning' ? part.text : '')).join('')]
            : [],
        )
        // Thoughts side by side are joined by a blank line, and no thought here has one.
        const sent = body(request).messages.flatMap((message: Loose) => message.thinking?.split('\n\n') ?? [])
        expect(sent.filter((thought: string) => !thoughts.includes(thought))).toEqual([])
      }),
      { numRuns: tries(300) },
    )
  })

  it('begins as the request before it did, so that the server finds what it has computed', () => {
    fc.assert(
      fc.property(requests, (request) => {
        const messages: Message[] = [
          { role: 'user', parts: [{ type: 'text', text: 'Hi' }] },
          ...request.messages,
        ]
        const upTo = (place: number): Loose[] =>
          body({ ...request, messages: messages.slice(0, place) }).messages
        const whole = upTo(messages.length)
        for (const [place, message] of messages.entries()) {
          // A call is made when the user, or a tool, has spoken.
          if (message.role === 'assistant') continue
          const before = upTo(place + 1)
          const last = before.pop()
          expect(whole.slice(0, before.length)).toEqual(before)
          // Another word of the user goes after the last one, in its message.
          expect(whole[before.length].content.startsWith(last.content)).toBe(true)
        }
      }),
      { numRuns: tries(300) },
    )
  })
})

it('a schema is rewritten to the same whenever it is, and an already plain one stays as it is', () => {
  fc.assert(
    fc.property(toolSchemas, (given) => {
      const once = toToolSchema(given).schema
      expect(toToolSchema(structuredClone(given)).schema).toEqual(once)
      expect(toToolSchema(once)).toEqual({ schema: once, inWords: [] })
    }),
  )
})
