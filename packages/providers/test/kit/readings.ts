import type { FailureClass, StopReason, Usage } from '@tallystick/core'

/** Written down from reading the recordings, not from what the adapter made of them. */
export interface Expected {
  readonly file: string
  readonly id: string
  readonly served: string
  /** What stands in each part: its kind, and how its text begins and ends, or all of it where that is short. */
  readonly parts: readonly (readonly [kind: string, length?: number, begins?: string, ends?: string])[]
  readonly calls: readonly (readonly [id: string, name: string, input: object])[]
  readonly usage: Usage
  /** Tokens of the conversation behind the reply, where several prompts are billed. */
  readonly context?: number
  readonly stop?: readonly [StopReason, raw: string]
  readonly failure?: FailureClass
}

const usage = (inputTokens: number, outputTokens: number, more: Usage = {}): Usage => ({
  inputTokens,
  outputTokens,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
  cacheWriteLongTokens: 0,
  ...more,
})
/** Of a reply from before the vendor told how long it keeps what it wrote into its cache. */
const oldUsage = (inputTokens: number, outputTokens: number): Usage => ({
  ...{ inputTokens, outputTokens, cacheReadTokens: 0, cacheWriteTokens: 0 },
})
const end = ['end', 'end_turn'] as const
const toolUse = ['tool_use', 'tool_use'] as const

/** Every recording of Anthropic, by what a person reads in it. */
export const recordings: readonly Expected[] = [
  {
    file: 'advisor.sse',
    id: 'msg_011CdD8kd2BCHcbXAHcYxvaf',
    served: 'claude-sonnet-5',
    parts: [
      ['reasoning', 0],
      ['text', 170, 'The task asks "What\'s 2+2?" — a trivial', 'as instructed before finalizing.'],
      ['server_tool_use'],
      ['advisor_tool_result'],
      ['text', 20, 'The answer is **4**.'],
    ],
    calls: [],
    usage: usage(1128 + 2543 + 1283, 135 + 18 + 10, { reasoningTokens: 47, webSearches: 0 }),
    context: 1283 + 10,
    stop: end,
  },
  {
    file: 'code-execution.sse',
    id: 'msg_01Js8aWE7YbmiaUPneGiCskE',
    served: 'claude-sonnet-4-6',
    parts: [
      ['reasoning', 46, 'Let me calculate this mathematical expression.'],
      ['text', 50, "I'll calculate that expression for you right away!"],
      ['server_tool_use'],
      ['bash_code_execution_tool_result'],
      [
        'text',
        451,
        'Following the standard **order of operations',
        '✅ Final Answer: **-428,330,955.97745**',
      ],
    ],
    calls: [],
    usage: usage(4714, 304, { webSearches: 0 }),
    stop: end,
  },
  {
    file: 'compaction-beta.sse',
    id: 'msg_011CduoCRono7pFKoTWpPAia',
    served: 'claude-sonnet-4-6',
    parts: [['compaction'], ['text', 9, 'Hello! 👋']],
    calls: [],
    usage: usage(100 + 55_096 + 181, 83 + 8, { cacheReadTokens: 55_096 }),
    context: 181 + 8,
    stop: end,
  },
  {
    file: 'cut-without-message-stop.sse',
    id: 'msg_01ALwQ87pTS7hH1PjSdC9wJD',
    served: 'claude-sonnet-4-20250514',
    parts: [
      ['reasoning', 202, 'This is a straightforward question', 'could help prevent accidents.'],
      ['text', 437, 'Here are the basic steps', 'a clear gap in traffic\n- Walk'],
    ],
    calls: [],
    usage: usage(43, 1),
    failure: 'truncated',
  },
  {
    file: 'error-overloaded-mid-stream.sse',
    id: 'msg_01ALwQ87pTS7hH1PjSdC9wJD',
    served: 'claude-sonnet-4-20250514',
    parts: [
      ['reasoning', 202, 'This is a straightforward question', 'could help prevent accidents.'],
      ['text', 437, 'Here are the basic steps', 'a clear gap in traffic\n- Walk'],
    ],
    calls: [],
    usage: usage(43, 1),
    failure: 'overloaded',
  },
  {
    file: 'fallback-model.sse',
    id: 'msg_fixture_b_0001',
    served: 'claude-opus-4-8',
    parts: [['text', 1312, ' there! Happy to explain.', "what's sparking your interest!"]],
    calls: [],
    usage: usage(31, 547, { reasoningTokens: 0 }),
    context: 31 + 547,
    stop: end,
  },
  {
    file: 'gateway-spliced-message-start.jsonl',
    id: 'msg_first',
    served: 'claude-3-haiku-20240307',
    parts: [['reasoning', 21, 'I will call the tool.']],
    calls: [],
    usage: { inputTokens: 17, outputTokens: 1 },
    failure: 'protocol',
  },
  {
    file: 'max-tokens-mid-tool-json.sse',
    id: 'msg_01UdjYBBipA9omjYhicnevgq',
    served: 'claude-3-7-sonnet-20250219',
    parts: [['text', 135, "I'll create a comprehensive tax guide", 'Let me do that for you now.']],
    calls: [],
    usage: oldUsage(450, 124),
    stop: ['max_tokens', 'max_tokens'],
  },
  {
    file: 'mcp-connector.sse',
    id: 'msg_01Xf6SmUVY1mDrSwFc5RsY3n',
    served: 'claude-sonnet-4-5-20250929',
    parts: [
      ['reasoning', 192, 'The user is asking about the pydantic', 'information about this repository.'],
      ['mcp_tool_use'],
      ['mcp_tool_result'],
      ['text', 806, '**Pydantic-AI** is a framework', 'provider-specific complexities.'],
    ],
    calls: [],
    usage: usage(3042, 354, { webSearches: 0 }),
    stop: end,
  },
  {
    file: 'message-delta-input-tokens.jsonl',
    id: 'msg_3196a1cc08de4d76b85b8f5777c0d42b',
    served: 'claude-opus-4-5-20251101',
    parts: [['text', 4, 'pong']],
    calls: [],
    usage: { inputTokens: 61, outputTokens: 2 },
    stop: end,
  },
  {
    file: 'parallel-tools.sse',
    id: 'msg_0138UNF3YbNp49KkqZtUBWqz',
    served: 'claude-3-5-sonnet-20240620',
    parts: [
      ['text', 175, 'Certainly! I can help you', 'Let me fetch that data for you.'],
      ['tool_call'],
      ['tool_call'],
    ],
    calls: [
      ['toolu_014x5X91kx3fvdhpLvwXZWE2', 'get_weather', { location: 'San Francisco, CA', unit: 'celsius' }],
      ['toolu_0121kXsENLvoDZ72LCuAnCCz', 'get_time', { timezone: 'America/Los_Angeles' }],
    ],
    usage: oldUsage(506, 153),
    stop: toolUse,
  },
  {
    file: 'programmatic-1-code-exec-calls-tool.jsonl',
    id: 'msg_01ERcBqAvLTHWQDk9c9qJLWC',
    served: 'claude-sonnet-4-5-20250929',
    parts: [
      ['text', 157, "I'll help you simulate this game", 'until one player wins 3 rounds.'],
      ['server_tool_use'],
      ['tool_call'],
    ],
    calls: [['toolu_019jKkXz4jAdwHweHBw92CVY', 'rollDie', { player: 'player1' }]],
    usage: usage(3369, 725, { webSearches: 0 }),
    stop: toolUse,
  },
  {
    file: 'programmatic-2-prefilled-message-start.jsonl',
    id: 'msg_01KSVw3xmXbMNJPNMt46BC5W',
    served: 'claude-sonnet-4-5-20250929',
    parts: [['tool_call']],
    calls: [['toolu_015dGLMbwBKv1ZRQr6KdJzeH', 'rollDie', { player: 'player2' }]],
    usage: { inputTokens: 0, outputTokens: 0, webSearches: 0 },
    stop: toolUse,
  },
  {
    file: 'programmatic-4-final.jsonl',
    id: 'msg_01CfmDducyrt61n4Q7QS8VFK',
    served: 'claude-sonnet-4-5-20250929',
    parts: [
      ['code_execution_tool_result'],
      ['text', 676, '## Game Results\n\n**Player 2 wins', "of 3 against Player 1's 2."],
    ],
    calls: [],
    usage: usage(4551, 197, { webSearches: 0 }),
    stop: end,
  },
  {
    file: 'refusal-after-text.sse',
    id: 'msg_fixture_a_0001',
    served: 'claude-fable-5',
    parts: [
      ['reasoning', 212, 'Simple educational question', 'just roll with it politely.'],
      ['text', 2, 'Hi'],
      ['stop_details'],
    ],
    calls: [],
    usage: usage(28, 106, { reasoningTokens: 67 }),
    context: 28 + 106,
    stop: ['refused', 'refusal'],
  },
  {
    file: 'refusal-empty.jsonl',
    id: 'msg_01RefusalStreamAbcdefghijk',
    served: 'claude-fable-5',
    parts: [['stop_details']],
    calls: [],
    usage: usage(18, 5),
    stop: ['refused', 'refusal'],
  },
  {
    file: 'text-only.sse',
    id: 'msg_018E1hg8GoVTGEKQY3ovMcSJ',
    served: 'claude-sonnet-4-5-20250929',
    parts: [['text', 1, '2']],
    calls: [],
    usage: usage(20, 5),
    stop: end,
  },
  {
    file: 'text-then-one-tool.jsonl',
    id: 'msg_01K2JbSUMYhez5RHoK9ZCj9U',
    served: 'claude-haiku-4-5-20251001',
    parts: [['text', 35, "I'll invoke the JSON response tool."], ['tool_call']],
    calls: [
      [
        'toolu_01KFbKqPYSuAKujiL6mTfzYA',
        'json',
        { elements: [{ location: 'San Francisco', temperature: 58, condition: 'sunny' }] },
      ],
    ],
    usage: usage(849, 47),
    stop: toolUse,
  },
  {
    file: 'thinking-redacted.sse',
    id: 'msg_018XZkwvj9asBiffg3fXt88s',
    served: 'claude-sonnet-4-5-20250929',
    parts: [
      ['reasoning', 0],
      ['reasoning', 0],
      ['text', 359, "I notice that you've sent", 'a legitimate task or question?'],
    ],
    calls: [],
    usage: usage(92, 189),
    stop: end,
  },
  {
    file: 'thinking-text.sse',
    id: 'msg_01ALwQ87pTS7hH1PjSdC9wJD',
    served: 'claude-sonnet-4-20250514',
    parts: [
      ['reasoning', 202, 'This is a straightforward question', 'could help prevent accidents.'],
      ['text', 1021, 'Here are the basic steps', 'over speed when crossing streets.'],
    ],
    calls: [],
    usage: usage(43, 282),
    stop: end,
  },
  {
    file: 'tool-no-args.jsonl',
    id: 'msg_01GE2RKp1VYsPzdFs3sS9z5S',
    served: 'claude-sonnet-4-5-20250929',
    parts: [['text', 35, "I'll update the issue list for you."], ['tool_call']],
    calls: [['toolu_01QE1WLsSVp5hy5Q3GmGTmjP', 'updateIssueList', {}]],
    usage: usage(565, 48),
    stop: toolUse,
  },
  {
    file: 'tool-search.sse',
    id: 'msg_01E3Wn1NynZw9FALZ68znj9S',
    served: 'claude-sonnet-4-6',
    parts: [
      ['text', 76, 'Let me search for a tool', 'exchange rate information.'],
      ['server_tool_use'],
      ['tool_search_tool_result'],
      ['text', 82, 'I found the right tool!', 'USD to EUR exchange rate for you.'],
      ['tool_call'],
    ],
    calls: [
      ['toolu_01EFn5wTNBYA8Reni8rbmnHT', 'get_exchange_rate', { from_currency: 'USD', to_currency: 'EUR' }],
    ],
    usage: usage(1591, 175, { webSearches: 0 }),
    stop: toolUse,
  },
  {
    file: 'web-fetch-thinking.sse',
    id: 'msg_015eAVGKhBrs95jUkYb2BaDt',
    served: 'claude-sonnet-4-20250514',
    parts: [
      ['reasoning', 194, 'The user wants me to fetch', 'content from this URL.'],
      ['server_tool_use'],
      ['web_fetch_tool_result'],
      ['text', 167, 'Pydantic AI is a Python agent framework', 'workflows with Generative AI.'],
    ],
    calls: [],
    usage: usage(7244, 153, { webSearches: 0 }),
    stop: end,
  },
  {
    file: 'web-search-citations.sse',
    id: 'msg_011CeCGmhWyMqVM1fWyYYKrQ',
    served: 'claude-haiku-4-5-20251001',
    parts: [
      ['server_tool_use'],
      ['web_search_tool_result'],
      ['text', 39, 'The latest stable Ruby version is 4.0.6'],
      ['text', 8, ', which '],
      ['text', 25, 'was released in July 2026'],
      ['text', 1, '.'],
    ],
    calls: [],
    usage: usage(9447, 114, { webSearches: 1 }),
    context: 9447 - 2225 + 114,
    stop: end,
  },
]
