import {
  call,
  choice,
  chunk,
  counts,
  finish,
  piece,
  refusal as refused,
  role,
  stream as chatStream,
  tokens,
  words,
} from './chat-stream.ts'
import { type Given, said, type Written } from './reading.ts'

const stream = (file: string, chunks: readonly (object | string)[], given: Given) =>
  chatStream(file, chunks, given, 'openai-compatible')
const refusal = (file: string, status: number, body: unknown, given: Given): Written => ({
  ...refused(file, status, body, given),
  folder: 'openai-compatible',
})

const stop = ['end', 'stop'] as const
const toolCalls = ['tool_use', 'tool_calls'] as const
const thought = said('reasoning', 'Low at six, I think.')
const six = said('text', 'Six.')
const tide = ['call_w1', 'get_tide', { hour: 6 }] as const
const wholeCall = { id: 'call_w1', type: 'function', function: { name: 'get_tide', arguments: '{"hour":6}' } }
const uncounted = { parts: [['tool_call']] as const, calls: [tide], stop: toolCalls }
const called = { ...uncounted, usage: tokens }
const processing = ': OPENROUTER PROCESSING\n\n'

/** Streams of gateways and local servers that speak Chat Completions, and ways that no server has to itself. */
export const gatewayReplies: readonly Written[] = [
  stream(
    'openrouter-signed-reasoning',
    [
      processing,
      processing,
      choice({
        role: 'assistant',
        content: '',
        reasoning: 'Low at six, ',
        reasoning_details: [
          { type: 'reasoning.text', text: 'Low at six, ', index: 0, format: 'anthropic-claude-v1' },
        ],
      }),
      processing,
      choice({
        content: '',
        reasoning: 'I think.',
        reasoning_details: [{ type: 'reasoning.text', text: 'I think.', index: 0, signature: 'c2lnbmVk' }],
      }),
      ...words('Six.'),
      finish('stop', { provider: 'Lighthouse' }),
      counts({ cost: 0.001 }),
    ],
    {
      parts: [thought, six],
      usage: tokens,
      stop,
      carried: {
        0: {
          reasoning: 'reasoning',
          details: [{ index: 0, text: 'Low at six, I think.', signature: 'c2lnbmVk' }],
        },
      },
    },
  ),
  stream(
    'openrouter-error-in-the-middle',
    [
      processing,
      choice({ role: 'assistant', content: '', reasoning: 'Low at six, I think.' }),
      choice(
        { content: '' },
        { finish_reason: 'error' },
        { error: { code: 502, message: 'The upstream is gone.' } },
      ),
    ],
    { parts: [thought], failure: ['server', true], failureWords: 'The upstream is gone' },
  ),
  stream(
    'openrouter-refused-in-the-middle',
    [
      choice({ role: 'assistant', content: '', reasoning: 'Low at six, I think.' }),
      choice(
        { content: '' },
        { finish_reason: 'error' },
        { error: { code: 400, message: 'Too few tokens.' } },
      ),
    ],
    { parts: [thought], failure: ['invalid_request', false] },
  ),
  stream(
    'ollama-v1-reasoning-then-call',
    [
      choice({ role: 'assistant', content: '', reasoning: 'Low at six, ' }),
      choice({ content: '', reasoning: 'I think.' }),
      choice({ content: '', tool_calls: [{ ...wholeCall, index: 0 }] }),
      finish('tool_calls'),
      counts(),
    ],
    { ...called, parts: [thought, ['tool_call']], carried: { 0: { reasoning: 'reasoning' } } },
  ),
  stream('vllm-length-without-usage', [role, ...words('Six', '.'), finish('length')], {
    parts: [six],
    stop: ['max_tokens', 'length'],
  }),
  stream(
    'azure-filter-results-first',
    [
      chunk([], { id: '', model: '', created: 0, prompt_filter_results: [{ prompt_index: 0 }] }),
      role,
      ...words('Six.'),
      finish('stop'),
      counts(),
    ],
    { parts: [six], usage: tokens, stop },
  ),
  stream(
    'calls-counted-from-one',
    [role, ...words('Six.'), ...call(1, 'call_w1', 'get_tide', '', '{"hour"', ':6}'), finish('tool_calls')],
    { ...uncounted, parts: [six, ['tool_call']] },
  ),
  stream(
    'call-behind-the-reason-stop',
    [role, choice({ tool_calls: [{ ...wholeCall, index: 0 }] }), finish('stop'), counts()],
    {
      ...called,
      stop: ['tool_use', 'stop'],
    },
  ),
  stream('reason-of-calls-without-a-call', [role, ...words('Six.'), finish('tool_calls'), counts()], {
    parts: [six],
    usage: tokens,
    failure: ['server', true],
  }),
  stream(
    'a-new-id-in-every-chunk',
    [role, ...words('Si', 'x.'), finish('stop'), counts()].map((one, place) => ({
      ...one,
      id: `gen-${place}`,
    })),
    { id: 'gen-0', parts: [six], usage: tokens, stop },
  ),
  stream(
    'nulls-everywhere',
    [
      choice(
        { role: 'assistant', content: null, tool_calls: null, refusal: null, reasoning_content: null },
        {},
        { usage: null },
      ),
      choice(
        { content: 'Six.', function_call: null },
        { logprobs: null },
        { usage: null, system_fingerprint: null },
      ),
      choice({ content: null }, { finish_reason: 'stop' }, { usage: null }),
      counts({ prompt_tokens_details: null, completion_tokens_details: null }),
    ],
    { parts: [six], usage: tokens, stop },
  ),
  stream(
    'call-of-the-first-kind',
    [
      choice({ role: 'assistant', content: null, function_call: { name: 'get_tide', arguments: '' } }),
      choice({ function_call: { arguments: '{"hour"' } }),
      choice({ function_call: { arguments: ':6}' } }),
      finish('function_call'),
      counts(),
    ],
    { ...called, calls: [['', 'get_tide', { hour: 6 }]], stop: ['tool_use', 'function_call'] },
  ),
  stream(
    'pieces-without-places',
    [
      role,
      piece({ id: 'call_w1', type: 'function', function: { name: 'get_tide', arguments: '{"hour"' } }),
      piece({ function: { arguments: ':6}' } }),
      finish('tool_calls'),
      counts(),
    ],
    called,
  ),
  refusal(
    'mistral-refused-429',
    429,
    { object: 'error', message: 'Slow down, sailor.', type: 'rate_limited', code: '1300' },
    {
      headers: { 'retry-after': '3' },
      failure: ['rate_limited', true],
      retryAfterMs: 3000,
    },
  ),
  refusal(
    'llama-server-too-long',
    400,
    {
      error: {
        code: 400,
        message: 'the request exceeds the available context size',
        type: 'exceed_context_size_error',
      },
    },
    { failure: ['context_overflow', false] },
  ),
  refusal(
    'openrouter-refused-402',
    402,
    { error: { code: 402, message: 'The purse is empty.' } },
    {
      failure: ['permission', false],
    },
  ),
]
