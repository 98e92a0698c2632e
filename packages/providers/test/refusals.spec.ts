import { createAnthropic } from '@ai-sdk/anthropic'
import { createRuntime, defineAgent, memoryLedger, type Model } from '@tallystick/core'
import { expect, it } from 'vitest'
import { fromAiSdk } from '../src/ai-sdk.ts'
import { anthropic } from '../src/anthropic.ts'
import { openai } from '../src/openai.ts'
import { sseBytes } from './kit/bytes.ts'
import { collect, finished } from './kit/collect.ts'
import { serve, type Answer } from './kit/loopback.ts'
import { completed, counted, created, message } from './kit/openai-streams.ts'
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
