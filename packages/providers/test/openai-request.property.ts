import type { Message } from '@tallystick/core'
import { describe, expect, it } from 'vitest'
import { tries } from '../../../scripts/testing/effort.ts'
import { resolveQuirks, type OpenAIChatServer, quirksByServer } from '../src/openai/options.ts'
import {
  renderRequest as renderChat,
  type RenderSettings as ChatSettings,
} from '../src/openai/chat-request.ts'
import { type RenderSettings, renderRequest } from '../src/openai/responses-request.ts'
import { brokenChatRules } from './kit/chat-rules.ts'
import type { Loose } from './kit/loose.ts'
import { begunOtherwise, testRequests, type Wire } from './kit/any-history.ts'
import { openaiRequests } from './kit/openai-transcripts.ts'
import { brokenResponsesRules } from './kit/responses-rules.ts'
import { chatSettings as chatPlain, responsesSettings as plain } from './kit/openai-requests.ts'
import * as fc from 'fast-check'

const settings: fc.Arbitrary<RenderSettings> = fc
  .record({
    strictTools: fc.boolean(),
    maxOutputTokens: fc.constantFrom(undefined, 4, 9000),
    customTools: fc.constantFrom<RenderSettings['customTools']>({}, { get_weather: { field: 'sql' } }),
    providerTools: fc.constantFrom<RenderSettings['providerTools']>([], [{ type: 'web_search' }]),
  })
  .map((given) => ({ ...plain, ...given }))

const servers = Object.keys(quirksByServer) as OpenAIChatServer[]
const chatSettings: fc.Arbitrary<ChatSettings> = fc
  .record({ server: fc.constantFrom(...servers), strictTools: fc.boolean(), custom: fc.boolean() })
  .map(({ server, strictTools, custom }) => ({
    ...{ ...chatPlain, quirks: resolveQuirks(server, undefined), strictTools },
    customTools: custom ? { get_weather: { field: 'sql' } } : {},
  }))

const strictnessOf = ({ quirks }: ChatSettings) => ({
  ...(quirks.callIds === 'nine_alphanumeric' && { id: /^[a-zA-Z0-9]{9}$/ }),
  alternating: quirks.alternatingRoles,
  anyName: quirks.toolNames === 'any',
})

const responses: Wire<RenderSettings> = {
  requests: openaiRequests('responses'),
  settings,
  renderer: (given) => (request) => renderRequest(request, given).body,
  broken: (body) => brokenResponsesRules(body),
}
const chat: Wire<ChatSettings> = {
  requests: openaiRequests('chat'),
  settings: chatSettings,
  renderer: (given) => (request) => renderChat(request, given).body,
  broken: (body, given) => brokenChatRules(body, strictnessOf(given)),
}

describe('the request that is made of any history for the Responses API', () => {
  testRequests(responses)

  it('keeps what every reply said, called and was answered, in order', () => {
    fc.assert(
      fc.property(responses.requests, (request) => {
        const { input } = responses.renderer(plain)(request)
        const texts = input.flatMap((item: Loose) =>
          item.role === 'assistant' ? item.content.map((one: Loose) => one.text ?? one.refusal) : [],
        )
        const said = textsOf(request.messages, 'assistant')
        expect(texts.filter((text: string) => text.trim() !== '')).toEqual(said)
        const asked = request.messages.flatMap((message) =>
          message.role === 'assistant' ? message.parts.filter((part) => part.type === 'tool_call') : [],
        )
        const kinds = (pattern: RegExp) => input.filter((item: Loose) => pattern.test(item.type ?? ''))
        const calls = kinds(/^(function_call|custom_tool_call|mcp_approval_request)$/)
        const answers = kinds(/^(function_call_output|custom_tool_call_output|mcp_approval_response)$/)
        expect(calls).toHaveLength(asked.length)
        expect(answers.map((item: Loose) => item.call_id ?? item.approval_request_id)).toEqual(
          calls.map((item: Loose) => item.call_id ?? item.id),
        )
      }),
      { numRuns: tries(500) },
    )
  })

  it('never sends an item by the id that it has beside reasoning which stays behind', () => {
    fc.assert(
      fc.property(responses.requests, (request) => {
        const { input } = responses.renderer(plain)(request)
        const ids: string[] = input.map(({ id }: Loose) => id).filter(Boolean)
        request.messages.forEach((message, place) => {
          if (message.role !== 'assistant') return
          const first = message.parts.findIndex(({ type }) => type === 'reasoning')
          const mine = ids.filter((id) => new RegExp(`^(msg|fc|ctc)_${place}_`).test(id))
          const behind = mine.filter((id) => first >= 0 && Number(id.split('_')[2]) > first)
          const proofs = ids.filter((id) => id.startsWith(`rs_${place}_`))
          expect(behind.length > 0 && proofs.length === 0).toBe(false)
        })
      }),
      { numRuns: tries(500) },
    )
  })

  it('begins as the request before it did, so that the prompt cache is found again', () => {
    fc.assert(
      fc.property(responses.requests, (request) => {
        const render = responses.renderer(plain)
        const input = (messages: readonly Message[]) => render({ ...request, messages }).input
        expect(begunOtherwise([hello, ...request.messages], input)).toBeUndefined()
      }),
      { numRuns: tries(300) },
    )
  })
})

describe('the request that is made of any history for Chat Completions', () => {
  testRequests(chat)

  it('keeps what every reply said and called, and what answered it, in order', () => {
    fc.assert(
      fc.property(chat.requests, (request) => {
        const { messages } = chat.renderer(chatPlain)(request)
        const asked = request.messages.flatMap((message) =>
          message.role === 'assistant' ? message.parts.filter((part) => part.type === 'tool_call') : [],
        )
        const calls = messages.flatMap((message: Loose) => message.tool_calls ?? [])
        expect(calls).toHaveLength(asked.length)
        const answers = messages.filter(({ role }: Loose) => role === 'tool')
        expect(answers.map((message: Loose) => message.tool_call_id)).toEqual(
          calls.map(({ id }: Loose) => id),
        )
        const whole = JSON.stringify(messages)
        for (const text of textsOf(request.messages, 'assistant')) {
          expect(whole).toContain(JSON.stringify(text).slice(1, -1))
        }
      }),
      { numRuns: tries(500) },
    )
  })

  it('begins as the request before it did, so that the prompt cache is found again', () => {
    fc.assert(
      fc.property(chat.requests, (request) => {
        // Reasoning goes back in the turn that is under way only, which is what such servers want.
        const quirks = { ...chatPlain.quirks, replayReasoning: 'never' as const }
        const render = chat.renderer({ ...chatPlain, quirks })
        const sent = (messages: readonly Message[]) => render({ ...request, messages }).messages
        expect(begunOtherwise([hello, ...request.messages], sent)).toBeUndefined()
      }),
      { numRuns: tries(300) },
    )
  })
})

const hello: Message = { role: 'user', parts: [{ type: 'text', text: 'Hi' }] }

function textsOf(messages: readonly Message[], role: 'assistant'): string[] {
  return messages.flatMap((message) =>
    message.role === role
      ? message.parts.flatMap((part) =>
          part.type === 'text' && part.text.trim() !== '' ? [part.text.toWellFormed()] : [],
        )
      : [],
  )
}
