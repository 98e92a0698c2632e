import type { Usage } from '@tallystick/core'
import type { Expected, Reading } from '../written/reading.ts'
import { memories } from './memories.ts'

const usage = (inputTokens: number, outputTokens: number, more: Usage = {}): Usage => ({
  inputTokens,
  outputTokens,
  reasoningTokens: 0,
  ...more,
})
const uncached = { cacheReadTokens: 0 }
const stop = ['end', 'stop'] as const
const toolCalls = ['tool_use', 'tool_calls'] as const

const chat: readonly (Expected & { readonly file: string })[] = [
  {
    file: 'cut-before-finish.sse',
    id: 'chatcmpl-ABfwAwrNePHUgBBezonVC6MX3zd63',
    served: 'gpt-4o-2024-08-06',
    parts: [],
    calls: [],
    failure: ['truncated', true],
  },
  {
    file: 'gpt5-moderation-chunk.sse',
    id: 'chatcmpl-E4Rjs6IxaJVge9Ntk5keJsaeDy6vS',
    served: 'gpt-5-2025-08-07',
    parts: [['text', 6, 'Paris.']],
    calls: [],
    usage: usage(13, 11, uncached),
    stop,
  },
  {
    file: 'length.sse',
    id: 'chatcmpl-ABfw3Oqj8RD0z6aJiiX37oTjV2HFh',
    served: 'gpt-4o-2024-08-06',
    parts: [['text', 2, '{"']],
    calls: [],
    usage: usage(79, 1),
    stop: ['max_tokens', 'length'],
  },
  {
    file: 'logprobs.sse',
    id: 'chatcmpl-ABfw5EzoqmfXjnnsXY7Yd8OC6tb3c',
    served: 'gpt-4o-2024-08-06',
    parts: [['text', 4, 'Foo!']],
    calls: [],
    usage: usage(9, 2),
    stop,
  },
  {
    file: 'n3-choices.sse',
    id: 'chatcmpl-ABfw2KKFuVXmEJgVwYfBvejMAdWtq',
    served: 'gpt-4o-2024-08-06',
    parts: [['text', 53, '{"city":"San Francisco","temperature":65,"units":"f"}']],
    calls: [],
    usage: usage(79, 42),
    stop,
  },
  {
    file: 'one-tool-many-deltas.sse',
    id: 'chatcmpl-BWlJBDk2xe66hjff60joVYpXi1hh4',
    served: 'gpt-4o-mini-2024-07-18',
    parts: [['tool_call']],
    calls: [['call_1EYWDzueHEp8OsB8jJSEp7WB', 'multiply', { a: 1231, b: 2331 }]],
    usage: usage(54, 20, uncached),
    stop: toolCalls,
  },
  {
    file: 'one-tool-usage.sse',
    id: 'chatcmpl-Dx0XpqH8w09uBXwq1zFGYdETjtnEl',
    served: 'gpt-4o-mini-2024-07-18',
    parts: [['tool_call']],
    calls: [['call_ZR5UUuTt3pf61kjwAJIYdVMj', 'get_capital', { country: 'UK' }]],
    usage: usage(53, 15, uncached),
    stop: toolCalls,
  },
  {
    file: 'parallel-tools.sse',
    id: 'chatcmpl-ABfwAwrNePHUgBBezonVC6MX3zd63',
    served: 'gpt-4o-2024-08-06',
    parts: [['tool_call'], ['tool_call']],
    calls: [
      ['call_JMW1whyEaYG438VE1OIflxA2', 'GetWeatherArgs', { city: 'Edinburgh', country: 'GB', units: 'c' }],
      ['call_DNYTawLBoN8fj3KN6qU9N1Ou', 'get_stock_price', { ticker: 'AAPL', exchange: 'NASDAQ' }],
    ],
    usage: usage(149, 60),
    stop: toolCalls,
  },
  {
    file: 'parallel-tools-otel.sse',
    id: 'chatcmpl-ASYMdbuQwnGMCODejEnbp2ufs6WgR',
    served: 'gpt-4o-mini-2024-07-18',
    parts: [['tool_call'], ['tool_call']],
    calls: [
      ['call_j7L00WV19wwQCvKOIVZewXZm', 'get_current_weather', { location: 'Seattle, WA' }],
      ['call_sAIOI3dvcd1YMsEqD8DI3l8B', 'get_current_weather', { location: 'San Francisco, CA' }],
    ],
    usage: usage(75, 51, uncached),
    stop: toolCalls,
  },
  {
    file: 'refusal.sse',
    id: 'chatcmpl-ABfw4IfQfCCrcuybFm41wJyxjbkz7',
    served: 'gpt-4o-2024-08-06',
    parts: [['text', 44, "I'm sorry, I can't assist with that request."]],
    calls: [],
    usage: usage(79, 11),
    stop: ['refused', 'stop'],
  },
  {
    file: 'text-usage.sse',
    id: 'chatcmpl-Dx0Xq5Xx9rHB2ehcHZCRDsnuymUXc',
    served: 'gpt-4o-mini-2024-07-18',
    parts: [['text', 32, 'The capital of the UK is London.']],
    calls: [],
    usage: usage(78, 9, uncached),
    stop,
  },
]

const compatible: readonly (Expected & { readonly file: string })[] = [
  {
    file: 'anthropic-compat-index-from-1.sse',
    id: 'msg_sanitized',
    served: 'claude-haiku-4-5-20251001',
    parts: [['text', 11, 'Reading it.'], ['tool_call']],
    calls: [['toolu_sanitized', 'read_file', { path: 'a.txt' }]],
    stop: toolCalls,
  },
  {
    file: 'deepseek-reasoning-tool.jsonl',
    id: 'cca85624-4056-401f-b220-d77601d1f70d',
    served: 'deepseek-reasoner',
    parts: [
      [
        ...(['reasoning', 191] as const),
        'The user is asking for the weather in San Francisco. I need to use the weather tool',
        'with the location parameter set to "San Francisco".',
      ],
      ['tool_call'],
    ],
    calls: [['call_00_ioIn7yN9p1ZOMNpDLwd4MgAF', 'weather', { location: 'San Francisco' }]],
    usage: usage(339, 83, { cacheReadTokens: 320, reasoningTokens: 39 }),
    stop: toolCalls,
  },
  {
    file: 'groq-tool-single-chunk.jsonl',
    id: 'chatcmpl-b610d559-f156-4aca-8827-24b4fe6af54f',
    served: 'llama-3.3-70b-versatile',
    parts: [['tool_call']],
    calls: [['tk85n1k4m', 'weather', {}]],
    usage: { inputTokens: 210, outputTokens: 15 },
    stop: toolCalls,
  },
  {
    file: 'mistral-incremental-tool.jsonl',
    id: '735e434874a24f68a2390b3cab149242',
    served: 'zai-glm-5-2',
    parts: [['tool_call']],
    calls: [['chatcmpl-tool-9f149c74c42f265b', 'webSearchTool', { query: 'current Berlin weather' }]],
    usage: { inputTokens: 171, outputTokens: 14, cacheReadTokens: 128 },
    stop: toolCalls,
  },
  {
    file: 'ollama-v1-gpt-oss-tool.sse',
    id: 'chatcmpl-873',
    served: 'gpt-oss:120b',
    parts: [
      [
        ...(['reasoning', 81] as const),
        'We need to call weather function with latitude and longitude. Provide as strings.',
      ],
      ['tool_call'],
    ],
    calls: [['call_x7rn5sl5', 'weather', { latitude: '52.5200', longitude: '13.4050' }]],
    usage: { inputTokens: 169, outputTokens: 55 },
    stop: toolCalls,
  },
  {
    file: 'openrouter-mid-stream-error.sse',
    id: 'gen-1762179802-UN8pkJI4AGZvryk0kFnb',
    served: 'minimax/minimax-m2:free',
    parts: [['reasoning', 42, 'We need to respond to a greeting. The user']],
    calls: [],
    failure: ['invalid_request', false],
  },
  {
    file: 'vllm-text-length.sse',
    id: 'chat-22c24755532348e6b6ff75297b1a71b3',
    served: 'facebook/opt-125m',
    parts: [['text', 39, '<|im_end|>doctor\n<|im_end|>supervisor\n<']],
    calls: [],
    stop: ['max_tokens', 'length'],
  },
]

/** Every recording of Chat Completions, from OpenAI and from others, by what a person reads in it. */
export const chatReadings: readonly Reading[] = [
  ...chat.map((one): Reading => ({ folder: 'openai-chat', ...one })),
  ...compatible.map((one): Reading => ({
    folder: 'openai-compatible',
    ...one,
    ...memories[`openai-compatible/${one.file}`],
  })),
]
