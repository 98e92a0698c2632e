import { expect, it } from 'vitest'
import type { Model } from '@tallystick/core'
import { anthropic } from '../src/anthropic.ts'
import { ollama } from '../src/ollama.ts'
import { openai, openaiChat } from '../src/openai.ts'
import { genaiPrices } from '../src/prices.ts'
import { sseBytes } from './kit/bytes.ts'
import { collect, finished, lastUsage } from './kit/collect.ts'
import { serve, type Answer } from './kit/loopback.ts'
import { answer, done as ollamaDone, lineBytes, text } from './kit/ollama-lines.ts'
import { completed, counted, created, message } from './kit/openai-streams.ts'
import { done, start, stop, textBlock } from './kit/streams.ts'

const chat = (usage: object): string =>
  [
    { choices: [{ index: 0, delta: { content: 'Hi' }, finish_reason: null }] },
    { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] },
    { choices: [], usage },
  ]
    .map((chunk) => `data: ${JSON.stringify({ id: 'c', model: 'm', ...chunk })}\n\n`)
    .join('')

it.each<[string, (url: string) => Model, Answer]>([
  [
    'Anthropic',
    (baseURL) => anthropic('m', { apiKey: 'k', baseURL }),
    {
      pieces: [
        sseBytes([
          start(),
          ...textBlock(0, 'Hi'),
          { ...done('end_turn'), usage: { input_tokens: -1, output_tokens: 7 } },
          stop,
        ]),
      ],
    },
  ],
  [
    'OpenAI Responses',
    (baseURL) => openai('m', { apiKey: 'k', baseURL }),
    {
      pieces: [
        sseBytes(
          counted(created(), message(0, 'Hi'), completed({ usage: { input_tokens: -1, output_tokens: 7 } })),
        ),
      ],
    },
  ],
  [
    'a server of Chat Completions',
    (baseURL) => openaiChat('m', { apiKey: 'k', baseURL }),
    { pieces: [`${chat({ prompt_tokens: -1, completion_tokens: 7, total_tokens: -1 })}data: [DONE]\n\n`] },
  ],
  [
    'Ollama',
    (baseURL) => ollama('m', { baseURL }),
    answer([lineBytes([text('Hi'), ollamaDone('stop', { prompt_eval_count: -1, eval_count: 7 })])]),
  ],
])('an invalid count says nothing, and the reply is kept: %s', async (_, modelAt, given) => {
  const server = await serve(given)
  const { signals, failure } = await collect(modelAt(server.url))
  expect(failure).toBeUndefined()
  expect(finished(signals)).toMatchObject({ stopReason: 'end' })
  expect(lastUsage(signals)).toMatchObject({ outputTokens: 7 })
  expect(lastUsage(signals)?.inputTokens ?? 0).toBeGreaterThanOrEqual(0)
})

it('prices that were handed over uncalled say how they are called', () => {
  const asked = genaiPrices as unknown as (model: object) => unknown
  expect(() => asked({ provider: 'openai', api: 'chat', modelId: 'gpt-5' })).toThrow(
    /prices: genaiPrices\(\)/,
  )
})
