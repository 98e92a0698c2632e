import {
  bodyOf,
  call,
  choice,
  chunk,
  counts,
  finish,
  ofBody as bodyStream,
  role,
  stream as chatStream,
  tokens,
  usage,
  words,
} from './chat-stream.ts'
import { type Given, said, type Written } from './reading.ts'

const stream = (file: string, chunks: readonly (object | string)[], given: Given) =>
  chatStream(file, chunks, given, 'openai-compatible')
const ofBody = (file: string, body: string, given: Given) =>
  bodyStream(file, body, given, 'openai-compatible')

const stop = ['end', 'stop'] as const
const toolCalls = ['tool_use', 'tool_calls'] as const
const thought = said('reasoning', 'Low at six, I think.')
const six = said('text', 'Six.')
const tide = ['call_w1', 'get_tide', { hour: 6 }] as const
const wholeCall = { id: 'call_w1', type: 'function', function: { name: 'get_tide', arguments: '{"hour":6}' } }
const uncounted = { parts: [['tool_call']] as const, calls: [tide], stop: toolCalls }
const called = { ...uncounted, usage: tokens }
const ofDeepSeek = (delta: object, more: object = {}) =>
  choice({ content: null, ...delta }, { logprobs: null, ...more })

/** Streams of other servers that speak Chat Completions, each with its own ways. */
export const compatibleReplies: readonly Written[] = [
  stream(
    'deepseek-reasoning-then-call',
    [
      ofDeepSeek({ role: 'assistant', reasoning_content: '' }),
      ofDeepSeek({ reasoning_content: 'Low at six,' }),
      ofDeepSeek({ reasoning_content: ' I think.' }),
      ...call(0, 'call_w1', 'get_tide', '{"hour"', ':6}'),
      finish('tool_calls', {
        usage: usage({
          prompt_tokens_details: { cached_tokens: 20 },
          completion_tokens_details: { reasoning_tokens: 8 },
          prompt_cache_hit_tokens: 20,
          prompt_cache_miss_tokens: 10,
        }),
      }),
    ],
    {
      parts: [thought, ['tool_call']],
      calls: [tide],
      usage: { ...tokens, cacheReadTokens: 20, reasoningTokens: 8 },
      stop: toolCalls,
      carried: { 0: { reasoning: 'reasoning_content' } },
    },
  ),
  stream(
    'deepseek-cache-beside-the-details',
    [
      role,
      ...words('Six.'),
      finish('stop', { usage: usage({ prompt_cache_hit_tokens: 16, prompt_cache_miss_tokens: 14 }) }),
    ],
    { parts: [six], usage: { ...tokens, cacheReadTokens: 16 }, stop },
  ),
  stream('deepseek-gave-up', [role, ...words('Six.'), finish('insufficient_system_resource')], {
    parts: [six],
    failure: ['overloaded', true],
  }),
  ofBody(
    'deepseek-keep-alive',
    `: keep-alive\n\n\n\n: keep-alive\n\n${bodyOf([role, ...words('Six.'), finish('stop')])}`,
    {
      parts: [six],
      stop,
    },
  ),
  stream(
    'xai-reasoning-beside-completion-tokens',
    [
      choice({ role: 'assistant', reasoning_content: 'Low at six, ' }),
      choice({ reasoning_content: 'I think.' }),
      ...words('Six.'),
      finish('stop'),
      // xAI counts 40 tokens of thinking beside the 12 of the reply, as its total says.
      chunk([], {
        usage: usage({
          prompt_tokens_details: { cached_tokens: 4, text_tokens: 30 },
          total_tokens: 82,
          completion_tokens_details: { reasoning_tokens: 40 },
        }),
        citations: ['https://birds.example/gulls'],
      }),
    ],
    {
      parts: [thought, six],
      usage: { inputTokens: 30, outputTokens: 52, cacheReadTokens: 4, reasoningTokens: 40 },
      stop,
      citations: { 1: [{ url: 'https://birds.example/gulls' }] },
    },
  ),
  stream(
    'groq-call-in-one-chunk',
    [
      choice({ role: 'assistant', content: null }, {}, { x_groq: { id: 'req_w1' } }),
      choice({ tool_calls: [{ ...wholeCall, index: 0 }] }),
      finish('tool_calls', { x_groq: { id: 'req_w1', usage: { queue_time: 0.1, ...usage() } } }),
    ],
    called,
  ),
  stream(
    'groq-reasoning',
    [
      role,
      choice({ reasoning: 'Low at six, I think.' }),
      ...words('Six.'),
      finish('stop', { usage: usage() }),
    ],
    { parts: [thought, six], usage: tokens, stop, carried: { 0: { reasoning: 'reasoning' } } },
  ),
  stream(
    'groq-error',
    [role, ...words('Six.'), { error: { message: 'Full.', code: 'over_capacity', status_code: 498 } }],
    {
      parts: [six],
      failure: ['server', true],
    },
  ),
  stream(
    'mistral-call-in-two-pieces',
    [
      choice({
        content: '',
        tool_calls: [{ ...wholeCall, index: 0, function: { name: 'get_tide', arguments: '' } }],
      }),
      choice({ content: '', tool_calls: [{ index: 0, function: { name: '', arguments: '{"hour":6}' } }] }),
      choice({ content: '' }, { finish_reason: 'tool_calls' }, { usage: usage() }),
    ],
    called,
  ),
  stream(
    'mistral-thinking-in-the-content',
    [
      choice({
        role: 'assistant',
        content: [{ type: 'thinking', thinking: [{ type: 'text', text: 'Low at six, ' }] }],
      }),
      choice({ content: [{ type: 'thinking', thinking: [{ type: 'text', text: 'I think.' }] }] }),
      choice({ content: [{ type: 'text', text: 'Si' }] }),
      choice({ content: 'x.' }, { finish_reason: 'stop' }, { usage: usage() }),
    ],
    { parts: [thought, six], usage: tokens, stop, carried: { 0: { reasoning: 'thinking' } } },
  ),
  stream('mistral-context-full', [role, ...words('Six.'), finish('model_length', { usage: usage() })], {
    parts: [six],
    usage: tokens,
    stop: ['context_exceeded', 'model_length'],
  }),
  stream('chunks-in-lists', [[role, ...words('Si')], [...words('x.')], [finish('stop'), counts()]], {
    parts: [six],
    usage: tokens,
    stop,
  }),
  stream('texts-in-a-list', [[role, ...words('Six.'), 'Six.', 6, null], finish('stop'), counts()], {
    parts: [six],
    usage: tokens,
    stop,
  }),
  stream(
    'google-error-in-a-list',
    [role, ...words('Six.'), [{ error: { code: 503, message: 'Full.', status: 'UNAVAILABLE' } }]],
    { parts: [six], failure: ['overloaded', true], failureWords: 'Full' },
  ),
]
