import { close, delta, json, open, stop, text, textBlock, toolBlock } from '../streams.ts'
import { begin, bodyOf, counted, ofBody, reason, refusal, stream } from './anthropic-stream.ts'
import { cutWithin, said, type Written } from './reading.ts'

const end = ['end', 'end_turn'] as const
const iteration = (type: string, input_tokens: number, output_tokens: number, more: object = {}) => ({
  type,
  input_tokens,
  output_tokens,
  cache_read_input_tokens: 0,
  cache_creation_input_tokens: 0,
  ...more,
})
const half = said('text', 'The light blinks')
const halfWritten = [begin(), open(0, { type: 'text', text: '' }), text(0, 'The light '), text(0, 'blinks')]
const begun = { parts: [half], usage: { inputTokens: 30, outputTokens: 1 } }
const callBegun = [
  begin(),
  ...textBlock(0, 'I note it.'),
  open(1, { type: 'tool_use', id: 'toolu_01', name: 'write_log', input: {} }),
  json(1, '{"line": "Wind'),
]
const note = said('text', 'I note it.')

/** How Anthropic counts, and the ways in which its replies end. */
export const anthropicEndings: readonly Written[] = [
  stream(
    'usage-with-caches',
    [
      begin(
        {},
        {
          input_tokens: 5,
          cache_creation_input_tokens: 300,
          cache_read_input_tokens: 2000,
          cache_creation: { ephemeral_5m_input_tokens: 100, ephemeral_1h_input_tokens: 200 },
        },
      ),
      ...textBlock(0, 'Aye.'),
      reason('end_turn', { output_tokens: 3 }),
      stop,
    ],
    {
      parts: [said('text', 'Aye.')],
      usage: {
        inputTokens: 2305,
        outputTokens: 3,
        cacheReadTokens: 2000,
        cacheWriteTokens: 300,
        cacheWriteLongTokens: 200,
      },
      stop: end,
    },
  ),
  stream(
    'usage-counted-at-the-end-only',
    [
      begin({}, { input_tokens: 0, output_tokens: 0 }),
      ...textBlock(0, 'Aye.'),
      reason('end_turn', { input_tokens: 44, output_tokens: 2 }),
      stop,
    ],
    { parts: [said('text', 'Aye.')], usage: { inputTokens: 44, outputTokens: 2 }, stop: end },
  ),
  stream(
    'usage-of-an-advisor',
    [
      begin(),
      ...textBlock(0, 'I ask.'),
      open(1, { type: 'server_tool_use', id: 'srvtoolu_01', name: 'advisor', input: {} }),
      close(1),
      open(2, {
        type: 'advisor_tool_result',
        tool_use_id: 'srvtoolu_01',
        content: { type: 'advisor_result', text: 'Sail at six.' },
      }),
      close(2),
      ...textBlock(3, 'At six.'),
      reason('end_turn', {
        input_tokens: 70,
        output_tokens: 12,
        cache_read_input_tokens: 0,
        cache_creation_input_tokens: 0,
        iterations: [
          iteration('message', 30, 8),
          iteration('advisor_message', 200, 5, { model: 'claude-other-1' }),
          iteration('message', 40, 4),
        ],
      }),
      stop,
    ],
    {
      parts: [said('text', 'I ask.'), ['server_tool_use'], ['advisor_tool_result'], said('text', 'At six.')],
      usage: { inputTokens: 270, outputTokens: 17, cacheReadTokens: 0, cacheWriteTokens: 0 },
      context: 44,
      stop: end,
      executed: [{ name: 'advisor' }, { name: 'advisor', outcome: 'success' }],
    },
  ),
  stream(
    'usage-of-a-compaction',
    [
      begin({}, { input_tokens: 10, cache_read_input_tokens: 900, cache_creation_input_tokens: 0 }),
      open(0, { type: 'compaction', content: null }),
      delta(0, { type: 'compaction_delta', content: 'They spoke of ' }),
      delta(0, { type: 'compaction_delta', content: 'harbours.' }),
      close(0),
      ...textBlock(1, 'On we go.'),
      reason('end_turn', {
        input_tokens: 60,
        output_tokens: 4,
        cache_read_input_tokens: 0,
        cache_creation_input_tokens: 0,
        iterations: [
          iteration('compaction', 10, 25, { cache_read_input_tokens: 900 }),
          iteration('message', 60, 4),
        ],
      }),
      stop,
    ],
    {
      parts: [['compaction'], said('text', 'On we go.')],
      usage: { inputTokens: 970, outputTokens: 29, cacheReadTokens: 900, cacheWriteTokens: 0 },
      context: 64,
      stop: end,
      carried: { 0: { block: { content: 'They spoke of harbours.' } } },
    },
  ),
  stream(
    'served-by-a-fallback-model',
    [
      begin({ model: 'claude-second-1' }),
      ...textBlock(0, 'Aye.'),
      reason('end_turn', { input_tokens: 33, iterations: [iteration('fallback_message', 33, 12)] }),
      stop,
    ],
    {
      served: 'claude-second-1',
      parts: [said('text', 'Aye.')],
      usage: { inputTokens: 33, outputTokens: 12, cacheReadTokens: 0, cacheWriteTokens: 0 },
      context: 45,
      stop: end,
    },
  ),
  stream(
    'history-edited-by-the-vendor',
    [
      begin(),
      ...textBlock(0, 'Aye.'),
      {
        ...reason('end_turn'),
        context_management: {
          applied_edits: [
            { type: 'clear_tool_uses_20250919', cleared_tool_uses: 2, cleared_input_tokens: 500 },
          ],
        },
      },
      stop,
    ],
    {
      parts: [said('text', 'Aye.'), ['context_management']],
      usage: counted,
      stop: end,
      carried: { 1: { note: { applied_edits: [{ cleared_tool_uses: 2 }] } } },
    },
  ),
  stream(
    'refusal-behind-text',
    [
      begin(),
      ...textBlock(0, 'Well'),
      reason(
        'refusal',
        {},
        {
          stop_details: {
            type: 'refusal',
            category: 'cyber',
            explanation: 'Not this.',
            fallback_credit_token: 'tok_w',
          },
        },
      ),
      stop,
    ],
    {
      parts: [said('text', 'Well'), ['stop_details']],
      usage: counted,
      stop: ['refused', 'refusal'],
      carried: { 1: { note: { type: 'refusal', category: 'cyber', explanation: 'Not this.' } } },
    },
  ),
  stream('refusal-without-a-word', [begin(), reason('refusal'), stop], {
    usage: counted,
    stop: ['refused', 'refusal'],
  }),
  stream(
    'pause-of-a-long-turn',
    [
      begin(),
      open(0, { type: 'server_tool_use', id: 'srvtoolu_01', name: 'web_search', input: {} }),
      json(0, '{"query":"tides"}'),
      close(0),
      reason('pause_turn'),
      stop,
    ],
    {
      parts: [['server_tool_use']],
      usage: counted,
      stop: ['paused', 'pause_turn'],
      executed: [{ id: 'srvtoolu_01', name: 'web_search', input: { query: 'tides' } }],
    },
  ),
  stream('max-tokens-in-text', [begin(), ...textBlock(0, 'The light '), reason('max_tokens'), stop], {
    parts: [said('text', 'The light ')],
    usage: counted,
    stop: ['max_tokens', 'max_tokens'],
  }),
  stream('max-tokens-in-a-call', [...callBegun, close(1), reason('max_tokens'), stop], {
    parts: [note],
    usage: counted,
    stop: ['max_tokens', 'max_tokens'],
  }),
  stream('max-tokens-in-an-open-call', [...callBegun, reason('max_tokens'), stop], {
    parts: [note],
    usage: counted,
    stop: ['max_tokens', 'max_tokens'],
  }),
  stream(
    'context-full-behind-a-call',
    [
      begin(),
      ...toolBlock(0, 'toolu_01', 'get_tide', '{"hour":6}'),
      reason('model_context_window_exceeded'),
      stop,
    ],
    {
      parts: [['tool_call']],
      calls: [['toolu_01', 'get_tide', { hour: 6 }]],
      usage: counted,
      stop: ['context_exceeded', 'model_context_window_exceeded'],
    },
  ),
  stream('a-new-reason', [begin(), ...textBlock(0, 'So.'), reason('moonrise'), stop], {
    parts: [said('text', 'So.')],
    usage: counted,
    stop: ['other', 'moonrise'],
  }),
  stream(
    'error-in-the-middle',
    [...halfWritten, { type: 'error', error: { type: 'overloaded_error', message: 'Too many ships.' } }],
    { ...begun, failure: ['overloaded', true], failureWords: 'Too many ships' },
  ),
  stream(
    'error-of-the-server-in-a-call',
    [...callBegun, { type: 'error', error: { type: 'api_error', message: 'A rope broke.' } }],
    {
      parts: [note, ['tool_call']],
      usage: begun.usage,
      failure: ['server', true],
      failureWords: 'A rope broke',
    },
  ),
  ofBody('cut-in-an-event', cutWithin(bodyOf([...halfWritten, text(0, ' twice')]), ' twice'), {
    ...begun,
    failure: ['truncated', true],
  }),
  stream('cut-without-a-terminator', [...halfWritten, close(0), reason('end_turn')], {
    parts: [half],
    usage: counted,
    failure: ['truncated', true],
  }),
  stream('cut-by-a-reset', halfWritten, { ...begun, failure: ['network', true], ending: 'break' }),
  stream('no-reason-at-the-end', [...halfWritten, close(0), stop], {
    ...begun,
    failure: ['truncated', true],
  }),
  stream('two-replies-spliced', [...halfWritten, begin({ id: 'msg_2' })], {
    ...begun,
    failure: ['protocol', true],
  }),
  stream('block-continued-behind-its-end', [...halfWritten, close(0), text(0, 'twice')], {
    ...begun,
    failure: ['protocol', true],
  }),
  refusal('refused-429-with-a-wait', 429, ['rate_limit_error', 'Slow down, sailor.'], {
    headers: { 'retry-after': '7' },
    failure: ['rate_limited', true],
    failureWords: 'Slow down, sailor',
    retryAfterMs: 7000,
  }),
  refusal('refused-529', 529, ['overloaded_error', 'The port is full.'], {
    failure: ['overloaded', true],
    failureWords: 'The port is full',
  }),
  refusal(
    'refused-400-too-long',
    400,
    ['invalid_request_error', 'prompt is too long: 7 tokens > 6 maximum'],
    {
      failure: ['context_overflow', false],
    },
  ),
  refusal('refused-401', 401, ['authentication_error', 'No such key.'], {
    failure: ['authentication', false],
  }),
  refusal('refused-500', 500, ['api_error', 'A rope broke.'], { failure: ['server', true] }),
]
