import { createAnthropic } from '@ai-sdk/anthropic'
import { createRuntime, defineAgent, memoryLedger, type Model } from '@tallystick/core'
import type { ToolChoice } from '@tallystick/core/vocabulary'
import { expect, it, describe } from 'vitest'
import { fromAiSdk } from '../src/ai-sdk.ts'
import { anthropic } from '../src/anthropic.ts'
import { openai, openaiChat, type OpenAIWarning } from '../src/openai.ts'
import { sseBytes, chatBytes } from './kit/bytes.ts'
import { collect, finished, request, textShown } from './kit/collect.ts'
import { serve, type Answer } from './kit/loopback.ts'
import { completed, counted, created, message, content, finish, role } from './kit/openai-streams.ts'
import { says } from './kit/says.ts'
import { done, start, stop, textBlock } from './kit/streams.ts'

const details = { type: 'refusal', category: 'cyber', explanation: 'It could enable cyber harm.' }
const refusal = done('refusal')
const refused: Answer = {
  pieces: [
    sseBytes([
      start(),
      ...textBlock(0, 'Hello..'),
      {
        ...refusal,
        delta: { ...refusal.delta, stop_details: { ...details, fallback_credit_token: 'worth' } },
      },
      stop,
    ]),
  ],
}

it('Anthropic is not sent again what its model refused', async () => {
  const server = await serve(refused, says.anthropic('Sunny.'))
  const model = anthropic('claude-test-1', { apiKey: 'k', baseURL: server.url })
  const agent = defineAgent({ name: 'helper', instructions: '', model })
  const runtime = createRuntime({ ledger: memoryLedger() })
  const first = await runtime.run(agent, 'Break in.', { sessionId: 's' }).result
  expect(first).toMatchObject({ reason: 'refused', detail: 'cyber: It could enable cyber harm.' })
  const second = await runtime.run(agent, 'Weather?', { sessionId: 's' }).result
  expect(second).toMatchObject({ reason: 'answered', text: 'Sunny.' })
  expect(server.arrivals[1]?.body['messages']).toMatchObject([
    { role: 'user', content: [{ type: 'text', text: 'Weather?' }] },
  ])
})

it('another model takes over from one of Anthropic’s that refuses, of whichever vendor', async () => {
  const server = await serve(refused)
  const elsewhere = await serve({
    pieces: [sseBytes(counted(created(), message(0, 'Here you are.'), completed()))],
  })
  const agent = defineAgent({
    ...{ name: 'helper', instructions: '' },
    model: anthropic('claude-test-1', { apiKey: 'k', baseURL: server.url }),
    fallbacks: [openai('gpt-test-1', { apiKey: 'k', baseURL: elsewhere.url })],
  })
  const { result } = createRuntime({ ledger: memoryLedger() }).run(agent, 'Scan my own host.')
  expect(await result).toMatchObject({ reason: 'answered', text: 'Here you are.' })
  expect(JSON.stringify(elsewhere.arrivals[0]?.body)).not.toContain('Hello..')
})

it.each<[string, (url: string) => Model]>([
  ['its own adapter', (url) => anthropic('claude-test-1', { apiKey: 'k', baseURL: url })],
  ['the AI SDK', (url) => fromAiSdk(createAnthropic({ apiKey: 'k', baseURL: `${url}/v1` })('claude-test-1'))],
])('over %s a refusal says what Anthropic advises', async (_, modelAt) => {
  const server = await serve(refused)
  const { signals } = await collect(modelAt(server.url))
  expect(finished(signals)).toMatchObject({
    ...{ stopReason: 'refused', rawStopReason: 'refusal' },
    refusal: { leaveOut: true, askAnother: true },
  })
  expect(JSON.stringify(finished(signals)?.refusal)).not.toContain('worth')
})

describe('a choice of tools that a model refuses', () => {
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
