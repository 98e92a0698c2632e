import type { Message, ModelRequest } from '@tallystick/core'
import type { JsonObject } from '@tallystick/core/vocabulary'
import { describe, expect, it } from 'vitest'
import { tries } from '../../../scripts/testing/effort.ts'
import { type RenderSettings, renderRequest } from '../src/anthropic/request.ts'
import { testRequests } from './kit/any-history.ts'
import { brokenRules } from './kit/history-rules.ts'
import { requests as plainRequests } from './kit/transcripts.ts'
import type { Loose } from './kit/loose.ts'
import * as fc from 'fast-check'

const plain: RenderSettings = {
  ...{ modelId: 'claude-test-1', maxOutputTokens: 32_000, promptCache: '5m' },
  warn: () => {},
}
const search = { type: 'web_search_20260318', name: 'web_search' }
const settings: fc.Arbitrary<RenderSettings> = fc.record({
  warn: fc.constant(() => {}),
  modelId: fc.constant('claude-test-1'),
  maxOutputTokens: fc.constant(32_000),
  promptCache: fc.constantFrom('5m', '1h', 'off'),
  thinking: fc.constantFrom<RenderSettings['thinking']>(
    undefined,
    { type: 'adaptive' },
    { type: 'disabled' },
    { type: 'enabled', budget_tokens: 2000 },
  ),
  providerTools: fc.constantFrom<RenderSettings['providerTools']>(
    [],
    [search],
    [{ ...search, cache_control: { type: 'ephemeral' } }],
  ),
  citations: fc.boolean(),
  strictTools: fc.boolean(),
  eagerToolInputs: fc.boolean(),
  toolFields: fc.constantFrom<RenderSettings['toolFields']>(
    {},
    { get_weather: { defer_loading: true }, 'files/read': { cache_control: { type: 'ephemeral' } } },
  ),
  mcpServers: fc.constantFrom<RenderSettings['mcpServers']>(
    [],
    [
      { name: 'wiki', url: 'https://example.org/mcp' },
      { name: 'docs', url: 'https://example.org/docs', authorizationToken: 't' },
    ],
  ),
  contextEdits: fc.constantFrom<RenderSettings['contextEdits']>([], [{ type: 'compact_20260112' }]),
})

/** Schemas that the vendor takes, takes in part, or takes not at all. */
const schemas = fc.constantFrom<JsonObject>(
  {},
  { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  { properties: { city: { type: ['string', 'null'], minLength: 1 }, days: { type: 'integer', maximum: 7 } } },
  { type: 'object', additionalProperties: { type: 'string' } },
  { anyOf: [{ type: 'object', properties: { a: {} } }, { $ref: '#/$defs/b' }], $defs: { b: {} } },
  {
    properties: Object.fromEntries(
      Array.from({ length: 12 }, (_, n) => [`p${n}`, { type: ['string', 'null'] }]),
    ),
  },
)
/** The requests around any history, with schemas of every kind. */
const requests: fc.Arbitrary<ModelRequest> = fc
  .tuple(plainRequests, fc.array(schemas, { minLength: 3, maxLength: 3 }), fc.option(schemas))
  .map(([request, inputs, outputSchema]) => ({
    ...request,
    tools: request.tools.map((tool, place) => ({ ...tool, inputSchema: inputs[place]! })),
    ...(outputSchema && { outputSchema }),
  }))

const body = (request: ModelRequest, given: RenderSettings) => renderRequest(request, given, { now: 0 }).body

describe('the request that is made of any history', () => {
  testRequests({
    ...{ requests, settings, broken: brokenRules },
    renderer: (given) => (request) => body(request, given),
  })

  it('keeps what every reply from here said, called and was answered, in order', () => {
    fc.assert(
      fc.property(requests, (request) => {
        const blocks = body(request, plain).messages.flatMap((message) => message.content as Loose[])
        const said = request.messages.flatMap((message) =>
          message.role === 'tool'
            ? []
            : message.parts.flatMap((part) =>
                part.type === 'text' && part.text.trim() !== '' ? [part.text.trim().toWellFormed()] : [],
              ),
        )
        const texts = blocks.filter((block) => block.type === 'text').map((block) => block.text.trim())
        expect(texts.filter((text) => said.includes(text))).toEqual(said)
        const asked = request.messages.flatMap((message) =>
          message.role === 'assistant' ? message.parts.filter((part) => part.type === 'tool_call') : [],
        )
        const uses = blocks.filter((block) => block.type === 'tool_use')
        const results = blocks.filter((block) => block.type === 'tool_result')
        expect(uses).toHaveLength(asked.length)
        expect(results.map((result) => result.tool_use_id)).toEqual(uses.map((use) => use.id))
        const outcomes = request.messages.flatMap((message) =>
          message.role === 'tool' ? message.results.map((result) => result.outcome !== 'success') : [],
        )
        expect(results.map((result) => result.is_error ?? false)).toEqual(outcomes)
      }),
      { numRuns: tries(500) },
    )
  })

  it('begins as the request before it did, so that the prompt cache is found again', () => {
    fc.assert(
      fc.property(requests, (request) => {
        const messages: Message[] = [
          { role: 'user', parts: [{ type: 'text', text: 'Hi' }] },
          ...request.messages,
        ]
        const blocksUpTo = (place: number) =>
          body(
            { ...request, messages: messages.slice(0, place) },
            { ...plain, promptCache: 'off' },
          ).messages.flatMap(({ role, content }) => content.map((block) => ({ role, block })))
        const whole = blocksUpTo(messages.length)
        for (const [place, message] of messages.entries()) {
          // A call is made when the user, or a tool, has spoken. A server tool that waits may still be given up.
          if (message.role === 'assistant') continue
          if (JSON.stringify(messages.slice(0, place + 1)).includes('server_tool_use')) break
          const before = blocksUpTo(place + 1)
          expect(whole.slice(0, before.length)).toEqual(before)
        }
      }),
      { numRuns: tries(500) },
    )
  })
})
