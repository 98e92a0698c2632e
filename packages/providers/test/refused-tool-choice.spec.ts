import type { Model } from '@tallystick/core'
import type { ToolChoice } from '@tallystick/core/vocabulary'
import { describe, expect, it } from 'vitest'
import { openai, openaiChat, type OpenAIWarning } from '../src/openai.ts'
import { chatBytes, sseBytes } from './kit/bytes.ts'
import { collect, request, textShown } from './kit/collect.ts'
import { serve, type Answer } from './kit/loopback.ts'
import { completed, content, counted, created, finish, message, role } from './kit/openai-streams.ts'

const refusal = (words: string): Answer => ({
  status: 400,
  headers: { 'content-type': 'application/json' },
  pieces: [JSON.stringify({ error: { type: 'invalid_request_error', message: words } })],
})
const chat: Answer = { pieces: [chatBytes([role, content('Hi'), finish('stop')])] }
const response: Answer = { pieces: [sseBytes(counted(created(), message(0, 'Hi'), completed()))] }
const tools = [{ name: 'a', description: 'A.', inputSchema: { type: 'object' } }]
const asking = (toolChoice: ToolChoice) => ({ ...request, tools, toolChoice })
const any = asking({ type: 'any' })
const named = asking({ type: 'tool', name: 'a' })
const given = (warnings: OpenAIWarning[]) => ({
  apiKey: 'k',
  onWarning: (warning: OpenAIWarning) => void warnings.push(warning),
})

describe('a choice of tools that a model refuses', () => {
  it.each([
    ['DeepSeek', 'Thinking mode does not support this tool_choice'],
    ['Moonshot', "tool_choice 'required' is incompatible with thinking enabled"],
    [
      'Alibaba',
      'The tool_choice parameter does not support being set to required or object in thinking mode',
    ],
  ])(
    'given in the words of %s, then the model is asked at once without it, and so later',
    async (_who, words) => {
      const warnings: OpenAIWarning[] = []
      const wires: readonly (readonly [Answer, (baseURL: string) => Model])[] = [
        [chat, (baseURL) => openaiChat('m', { ...given(warnings), baseURL })],
        [response, (baseURL) => openai('m', { ...given(warnings), baseURL })],
      ]
      for (const [answer, make] of wires) {
        const server = await serve(refusal(words), answer)
        const model = make(server.url)
        for (let call = 0; call < 2; call++) expect(textShown((await collect(model, any)).signals)).toBe('Hi')
        expect(server.arrivals.map(({ body }) => body['tool_choice'])).toEqual([
          'required',
          undefined,
          undefined,
        ])
        expect(server.arrivals.every(({ body }) => body['tools'].length === 1)).toBe(true)
      }
      expect(warnings.map(({ what }) => what)).toEqual(['tool_choice', 'tool_choice'])
    },
  )

  it('given for one kind, then another is still asked for', async () => {
    const server = await serve(refusal('The model does not support this tool_choice.'), chat)
    const model = openaiChat('m', { apiKey: 'k', baseURL: server.url })
    await collect(model, named)
    await collect(model, any)
    expect(server.arrivals.map(({ body }) => body['tool_choice'])).toEqual([
      { type: 'function', function: { name: 'a' } },
      ...[undefined, 'required'],
    ])
  })

  it('given another fault of the request, then the call fails with it', async () => {
    const server = await serve(refusal('tool_choice names a tool that is not in tools'), chat)
    const { failure } = await collect(openaiChat('m', { apiKey: 'k', baseURL: server.url }), any)
    expect(failure).toMatchObject({ class: 'invalid_request' })
    expect(server.arrivals).toHaveLength(1)
  })
})
