import type { Usage, Model } from '@tallystick/core'
import { describe, expect, it } from 'vitest'
import { anthropic } from '../src/anthropic.ts'
import { type Steps, toUsageSignal } from '../src/anthropic/reply.ts'
import { ollama } from '../src/ollama.ts'
import { openaiChat, openai } from '../src/openai.ts'
import { genaiPrices } from '../src/prices.ts'
import { mergeUsageCounts } from '../src/shared/reply.ts'
import { chatBytes, sseBytes } from './kit/bytes.ts'
import { collect, lastContext, lastUsage, finished } from './kit/collect.ts'
import { fold } from './kit/fold.ts'
import { serve, type Answer } from './kit/loopback.ts'
import { answer, done as ollamaDone, lineBytes, text } from './kit/ollama-lines.ts'
import { foldChat, foldResponse } from './kit/openai-fold.ts'
import {
  chunk,
  completed,
  content,
  created,
  finish,
  message,
  webSearch,
  counted,
} from './kit/openai-streams.ts'
import { done, open, close, start, stop, textBlock } from './kit/streams.ts'

const iteration = (type: string, input: number, output: number, more: object = {}) => ({
  ...{ type, input_tokens: input, output_tokens: output },
  ...{ cache_read_input_tokens: 0, cache_creation_input_tokens: 0, ...more },
})
const ended = (usage: object) => ({ ...done('end_turn'), usage })
const found = (index: number, id = `srv_${index}`) =>
  open(index, { type: 'web_search_tool_result', tool_use_id: id, content: [] })
const search = (index: number) => [
  open(index, { type: 'server_tool_use', id: `srv_${index}`, name: 'web_search', input: { query: 'x' } }),
  close(index),
  found(index + 1, `srv_${index}`),
  close(index + 1),
]

describe('what Anthropic bills', () => {
  it('holds every iteration, of whatever kind, and the conversation is as long as the last of the message', async () => {
    const iterations = [
      iteration('compaction', 60_000, 385, { cache_creation_input_tokens: 100 }),
      iteration('message', 300, 20),
      iteration('advisor_message', 85, 7),
      iteration('message', 212, 30, { cache_read_input_tokens: 300 }),
    ]
    const events = [
      start(),
      ...textBlock(0, 'Hi'),
      ended({ input_tokens: 512, output_tokens: 50, iterations }),
      stop,
    ]
    const server = await serve({ pieces: [sseBytes(events)] })
    const { signals } = await collect(anthropic('claude-test-1', { apiKey: 'k', baseURL: server.url }))
    expect(lastUsage(signals)).toMatchObject({
      inputTokens: 60_100 + 300 + 85 + 512,
      outputTokens: 385 + 20 + 7 + 30,
      cacheReadTokens: 300,
      cacheWriteTokens: 100,
    })
    expect(lastContext(signals)).toBe(512 + 30)
  })

  it('is never less than the message’s own numbers, whatever the iterations leave out', () => {
    const usage = {
      input_tokens: 900,
      output_tokens: 70,
      iterations: [iteration('message', 300, 20), null, 'x'],
    }
    const { signals } = fold([start(), ended(usage), stop])
    expect(lastUsage(signals)).toMatchObject({ inputTokens: 900, outputTokens: 70 })
  })

  it('tells apart what is kept in the cache for an hour, and counts searches', () => {
    const cache_creation = { ephemeral_5m_input_tokens: 40, ephemeral_1h_input_tokens: 60 }
    const usage = { input_tokens: 10, cache_creation_input_tokens: 100, cache_creation, output_tokens: 1 }
    const server_tool_use = { web_search_requests: 2, web_fetch_requests: 0 }
    const { signals } = fold([start({ usage }), ended({ output_tokens: 9, server_tool_use }), stop])
    expect(lastUsage(signals)).toEqual({
      ...{
        inputTokens: 110,
        outputTokens: 9,
        cacheWriteTokens: 100,
        cacheWriteLongTokens: 60,
        webSearches: 2,
      },
    })
  })

  it.each([
    ['one search', [...search(0), ...textBlock(2, 'So.')], 2, 3_200],
    ['two in a row', [...search(0), ...search(2), ...textBlock(4, 'So.')], 3, 1_800],
  ])('says of %s without iterations about how long its last prompt was', (_, blocks, steps, lastPrompt) => {
    const total = ((1_000 + lastPrompt) / 2) * steps
    const first = start({ usage: { input_tokens: 1_000, output_tokens: 1 } })
    const { signals } = fold([first, ...blocks, ended({ input_tokens: total, output_tokens: 40 }), stop])
    expect(lastUsage(signals)).toEqual({ inputTokens: total, outputTokens: 40 })
    expect(lastContext(signals)).toBe(lastPrompt + 40)
  })

  it.each([
    ['has no search', textBlock(0, 'Hi'), undefined],
    ['paused after its search', search(0), undefined],
    ['paused after two searches at once', [...search(0).slice(0, 2), ...search(1), found(3)], undefined],
    ['paused after one search and then another', [...search(0), ...search(2)], 2_040],
  ])('counts as one prompt what was read before the first results: a reply that %s', (_, blocks, tokens) => {
    const first = start({ usage: { input_tokens: 1_000, output_tokens: 1 } })
    const { signals } = fold([first, ...blocks, ended({ input_tokens: 3_000, output_tokens: 40 }), stop])
    expect(lastContext(signals)).toBe(tokens)
  })

  it.each<[why: string, input: number, steps: Steps, tokens: number | undefined]>([
    ['whose first prompt is not known', 3_000, { count: 2, firstPrompt: undefined }, undefined],
    ['whose prompts are no more than the first', 1_000, { count: 2, firstPrompt: 1_000 }, undefined],
    ['of one prompt', 3_000, { count: 1, firstPrompt: 1_000 }, undefined],
    ['of two prompts', 1_001, { count: 2, firstPrompt: 1_000 }, 1_040],
    ['of three prompts', 4_000, { count: 3, firstPrompt: 1_000 }, 1_707],
    ['whose later prompts would be shorter', 1_200, { count: 3, firstPrompt: 1_000 }, 1_040],
  ])('estimates the conversation of a reply %s', (_, input, steps, tokens) => {
    const { contextTokens } = toUsageSignal({ input_tokens: input, output_tokens: 40 }, steps)
    expect(contextTokens).toBe(tokens)
  })

  it('estimates without the tokens of a reply that nothing was said of', () => {
    const { contextTokens } = toUsageSignal({ input_tokens: 3_000 }, { count: 2, firstPrompt: 1_000 })
    expect(contextTokens).toBe(2_000)
  })
})

describe('what a server of OpenAI’s kind bills', () => {
  const counted = (usage: object) => foldChat([content('Hi'), finish('stop'), chunk([], { usage })]).signals

  it('holds the reasoning that xAI counts beside the output', async () => {
    const usage = {
      ...{ prompt_tokens: 32, completion_tokens: 26, total_tokens: 254 },
      completion_tokens_details: { reasoning_tokens: 196 },
    }
    const server = await serve({
      pieces: [chatBytes([content('Hi'), finish('stop'), chunk([], { usage })])],
    })
    const { signals } = await collect(openaiChat('grok-test', { apiKey: 'k', baseURL: server.url }))
    expect(lastUsage(signals)).toEqual({ inputTokens: 32, outputTokens: 222, reasoningTokens: 196 })
  })

  it('holds it too where the answer is longer than the reasoning, which only the total shows', () => {
    const details = { reasoning_tokens: 94 }
    const usage = { prompt_tokens: 32, completion_tokens: 900, completion_tokens_details: details }
    expect(lastUsage(counted({ ...usage, total_tokens: 1_026 }))).toMatchObject({ outputTokens: 994 })
    expect(lastUsage(counted({ ...usage, total_tokens: 932 }))).toMatchObject({ outputTokens: 900 })
    expect(lastUsage(counted(usage))).toMatchObject({ outputTokens: 900 })
  })

  it('holds the cached tokens that some gateways count beside the prompt', () => {
    const usage = { prompt_tokens: 12, completion_tokens: 3, prompt_tokens_details: { cached_tokens: 4_000 } }
    expect(lastUsage(counted(usage))).toMatchObject({ inputTokens: 4_012, cacheReadTokens: 4_000 })
  })

  it('counts searches as the response says, or else as they were seen', () => {
    const opened = (at: number) =>
      webSearch(at).map((event) =>
        'item' in event ? { ...event, item: { ...event.item, action: { type: 'open_page' } } } : event,
      )
    const events = [created(), ...webSearch(0), ...opened(1), ...message(2, 'So.')]
    const reported = { tool_usage: { web_search: { num_requests: 4 } } }
    expect(lastUsage(foldResponse([...events, completed()]).signals)).toMatchObject({ webSearches: 1 })
    expect(lastUsage(foldResponse([...events, completed(reported)]).signals)).toMatchObject({
      webSearches: 4,
    })
  })
})

describe('counts that contradict themselves', () => {
  const none = {
    ...{
      inputTokens: undefined,
      outputTokens: undefined,
      cacheReadTokens: undefined,
      cacheWriteTokens: undefined,
    },
    ...{ cacheWriteLongTokens: undefined, reasoningTokens: undefined, webSearches: undefined },
  }
  it.each<[Usage, number | undefined, Usage]>([
    [{ outputTokens: 5, reasoningTokens: 7 }, undefined, { outputTokens: 12, reasoningTokens: 7 }],
    [{ reasoningTokens: 7 }, undefined, { reasoningTokens: 7 }],
    [{ inputTokens: Number.NaN, outputTokens: 3 }, undefined, { outputTokens: 3 }],
    [{}, 12, {}],
  ])('%j of %j in all become %j', (counts, total, usage) => {
    expect(mergeUsageCounts({ ...none, ...counts }, total)).toEqual(usage)
  })
})

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
