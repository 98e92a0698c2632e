import type { Usage } from '@tallystick/core'
import type { Expected, Reading } from '../written/reading.ts'
import { memories } from './memories.ts'

const usage = (inputTokens: number, outputTokens: number, more: Usage = {}): Usage => ({
  ...{ inputTokens, outputTokens, cacheReadTokens: 0, reasoningTokens: 0 },
  ...more,
})
const end = ['end', 'completed'] as const
const toolUse = ['tool_use', 'completed'] as const

const responses: readonly (Expected & { readonly file: string })[] = [
  {
    file: 'background-queued.sse',
    id: 'resp_0da443d9ee8333600069950a0635d88196b2d9243b08e8cc01',
    served: 'gpt-4o-2024-08-06',
    parts: [['text', 15, '2 + 2 equals 4.']],
    calls: [],
    usage: usage(15, 9),
    stop: end,
  },
  {
    file: 'code-interpreter.sse',
    id: 'resp_68c35098e6fc819e80fb94b25b7d031b0f2d670b80edc507',
    served: 'gpt-5-2025-08-07',
    parts: [
      [
        'reasoning',
        440,
        '**Calculating a large integer**\n\nI need to compute 123456',
        'go ahead and compute that!',
      ],
      ['code_interpreter_call'],
      ['code_interpreter_call'],
      ['code_interpreter_call'],
      ['text', 646, '123456^123 equals:\n18030210630404480750814092786593857280734', '366854332416'],
    ],
    calls: [],
    usage: usage(3727, 347, { cacheReadTokens: 3200, reasoningTokens: 128 }),
    stop: end,
  },
  {
    file: 'custom-tool.jsonl',
    id: 'resp_custom_tool_test_001',
    served: 'gpt-5.2-codex',
    parts: [['tool_call']],
    calls: [['call_custom_sql_001', 'write_sql', { input: 'SELECT * FROM users WHERE age > 25' }]],
    usage: usage(50, 20),
    stop: toolUse,
  },
  {
    file: 'encrypted-reasoning-turn1.jsonl',
    id: 'resp_01830d662ab3856501693c321345c88190b0de00f3b9975691',
    served: 'gpt-5.1-codex-max',
    parts: [
      [
        'reasoning',
        163,
        '**Calculating step-by-step using calculator**\n\nI',
        'reporting the final product.',
      ],
      ['tool_call'],
    ],
    calls: [['call_AB6AaRZ1FYZB2RwS6A5vbdqn', 'calculator', { a: 12, b: 7, op: 'add' }]],
    usage: usage(134, 28),
    stop: toolUse,
  },
  {
    file: 'encrypted-reasoning-turn2.jsonl',
    id: 'resp_01830d662ab3856501693c3215903881909b710d150ff65014',
    served: 'gpt-5.1-codex-max',
    parts: [['tool_call']],
    calls: [['call_Q6pW65MUgW9vF59BmItYGos3', 'calculator', { a: 19, b: 3, op: 'multiply' }]],
    usage: usage(221, 26),
    stop: toolUse,
  },
  {
    file: 'error-insufficient-quota.jsonl',
    id: 'resp_05500b38c2cd9bfc00691c7c9d222481a3b595421266dab424',
    served: 'gpt-5-nano-2025-08-07',
    parts: [],
    calls: [],
    failure: ['rate_limited', false],
  },
  {
    file: 'incomplete-max-output-tokens.sse',
    id: 'resp_67e554a21aa88191b65876ac5e5bbe0406c52f0e511c76ed',
    served: 'gpt-4o-2024-08-06',
    parts: [['text', 24, 'The capital of France is']],
    calls: [],
    usage: usage(278, 9),
    stop: ['max_tokens', 'max_output_tokens'],
  },
  {
    file: 'lmstudio-tool-call.jsonl',
    id: 'resp_cc7bfe18e2f2eca93006515c0fd19cfed16e46a93a60444a',
    served: 'zai-org/glm-4.7-flash',
    parts: [
      [
        'reasoning',
        242,
        'The user is asking for the weather in San',
        'information to make the function call.',
      ],
      ['text', 67, "I'll get the current weather information for San Francisco for you."],
      ['tool_call'],
    ],
    calls: [['call_2025306790300011', 'weather', { location: 'San Francisco' }]],
    usage: usage(182, 61, { cacheReadTokens: 2, reasoningTokens: 48 }),
    stop: toolUse,
  },
  {
    file: 'mcp-approval-request.jsonl',
    id: 'resp_04a97b4fce127879006949a837a3a48195b37f26ae73f550c0',
    served: 'gpt-5-mini-2025-08-07',
    parts: [['mcp_list_tools'], ['reasoning'], ['tool_call']],
    calls: [
      [
        'mcpr_04a97b4fce127879006949a83ac9308195a7f7b69ea82e91fe',
        'mcp_approval',
        {
          server: 'zip1',
          tool: 'create_short_url',
          input: {
            ...{ alias: '', description: 'Shortened link for ai-sdk.dev', max_clicks: 100 },
            ...{ password: '', url: 'https://ai-sdk.dev/' },
          },
        },
      ],
    ],
    usage: usage(422, 48),
    stop: toolUse,
  },
  {
    file: 'mcp-call.sse',
    id: 'resp_00b9cc7a23d047270068faa0e25934819f9c3bfdec80065bc4',
    served: 'o4-mini-2025-04-16',
    parts: [
      ['mcp_list_tools'],
      ['reasoning'],
      ['mcp_call'],
      ['reasoning'],
      ['text', 687, 'pydantic-ai is a Python “agent” framework', 'scaffold for AI agent development.'],
    ],
    calls: [],
    usage: usage(1401, 480, { reasoningTokens: 256 }),
    stop: end,
  },
  {
    file: 'one-function-call.sse',
    id: 'resp_67e554a155508191900ee113293c4c830794405d35281ae2',
    served: 'gpt-4o-2024-08-06',
    parts: [['tool_call']],
    calls: [['call_kL0PCQV7M2WMoVX8V8OtYSAL', 'get_capital', { country: 'France' }]],
    usage: usage(255, 16),
    stop: toolUse,
  },
  {
    file: 'phase-commentary.sse',
    id: 'resp_0fabc13af1ee0049006a691dfdab8881a1a75f2db7ff78cb83',
    served: 'gpt-5.5-2026-04-23',
    parts: [
      ['reasoning'],
      ['text', 52, 'I’ll check the capital lookup tool for “PotatoLand.”'],
      ['tool_call'],
    ],
    calls: [['call_LabG58Uhrq9kZvR52BYKjToD', 'get_capital', { country: 'PotatoLand' }]],
    usage: usage(63, 69, { cacheWriteTokens: 0, reasoningTokens: 26, webSearches: 0 }),
    stop: toolUse,
  },
  {
    file: 'raw-cot-openrouter.sse',
    id: 'gen-1764265411-Fu1iEX7h5MRWiL79lb94',
    served: 'openai/gpt-oss-20b',
    parts: [
      [
        ...(['reasoning', 85] as const),
        'The user asks: "What is 2+2?" They expect a straightforward answer: 4. Just answer 4.',
      ],
      ['text', 1, '4'],
    ],
    calls: [],
    usage: usage(78, 37, { reasoningTokens: 22 }),
    stop: end,
  },
  {
    file: 'reasoning-function-call.sse',
    id: 'resp_0050471a34b36ae60068c97b94a480819587a9d70cf2979b33',
    served: 'gpt-5-2025-08-07',
    parts: [['reasoning'], ['tool_call']],
    calls: [['call_CWXgs68YprAjp6t0371hiPOI', 'final_result', { result: 6666 }]],
    usage: usage(53, 469, { reasoningTokens: 448 }),
    stop: toolUse,
  },
  {
    file: 'reasoning-web-search.sse',
    id: 'resp_00a60507bf41223d0068c9d2fbf93481a0ba2a7796ae2cab4c',
    served: 'gpt-5-2025-08-07',
    parts: [
      ['reasoning'],
      ['web_search_call'],
      ['reasoning'],
      ['text', 212, 'San Francisco weather today (Tuesday, September 16, 2025)', 'for the cooler evening. '],
    ],
    calls: [],
    usage: usage(9463, 582, { cacheReadTokens: 8320, reasoningTokens: 512, webSearches: 1 }),
    stop: end,
  },
  {
    file: 'refusal.sse',
    id: 'resp_67e554a21aa88191b65876ac5e5bbe0406c52f0e511c76ed',
    served: 'gpt-4o-2024-08-06',
    parts: [['text', 38, "I'm sorry, but I can't help with that."]],
    calls: [],
    usage: usage(278, 9),
    stop: ['refused', 'completed'],
  },
  {
    file: 'text.sse',
    id: 'resp_67e554a21aa88191b65876ac5e5bbe0406c52f0e511c76ed',
    served: 'gpt-4o-2024-08-06',
    parts: [['text', 31, 'The capital of France is Paris.']],
    calls: [],
    usage: usage(278, 9),
    stop: end,
  },
  {
    file: 'tool-search.sse',
    id: 'resp_060f468708eb0ff90069f3e2f104d881938387382c02f5868c',
    served: 'gpt-5.4-2026-03-05',
    parts: [['tool_search_call'], ['tool_search_output'], ['tool_call']],
    calls: [
      ['call_CeXueyTqEJ1rgm84BHSwNPz8', 'get_exchange_rate', { from_currency: 'USD', to_currency: 'EUR' }],
    ],
    usage: usage(600, 47, { reasoningTokens: 21 }),
    stop: toolUse,
  },
]

/** Every recording of the Responses API, by what a person reads in it. */
export const responsesReadings: readonly Reading[] = responses.map((one) => ({
  folder: 'openai-responses',
  ...one,
  ...memories[`openai-responses/${one.file}`],
}))
