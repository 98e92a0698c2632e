import {
  bodyOf,
  call,
  choice,
  chunk,
  counts,
  doneLine,
  finish,
  ofBody,
  piece,
  refusal,
  role,
  stream,
  tokens,
  words,
} from './chat-stream.ts'
import { cutWithin, said, type Written } from './reading.ts'

const stop = ['end', 'stop'] as const
const toolCalls = ['tool_use', 'tool_calls'] as const
const harbour = 'The ferry to Tromsø leaves at six ⛴️.'
const slack = [role, ...words('Slack ', 'water.'), finish('stop'), counts()]
const uncounted = { parts: [said('text', 'Slack water.')], stop }
const given = { ...uncounted, usage: tokens }
const half = [role, ...words('The light ', 'blinks')]
const seen = { parts: [said('text', 'The light blinks')] }

/** Streams of OpenAI's own server of Chat Completions. */
export const chatReplies: readonly Written[] = [
  stream('text', [role, ...words(harbour.slice(0, 9), '', harbour.slice(9)), finish('stop'), counts()], {
    parts: [said('text', harbour)],
    usage: tokens,
    stop,
  }),
  stream(
    'text-parted-inside-a-character',
    [role, ...words('Tide \ud83c', '\udf0a.'), finish('stop'), counts()],
    {
      parts: [said('text', 'Tide 🌊.')],
      usage: tokens,
      stop,
    },
  ),
  stream('no-content', [role, finish('stop'), counts()], { usage: tokens, stop }),
  stream(
    'parallel-calls-parted-inside-escapes',
    [
      choice({ role: 'assistant', content: null }),
      ...call(0, 'call_w1', 'get_tide', '', '{"port":"L\\u00', 'fcbeck \\', '"Old\\" \\ud83d', '\\udea2"}'),
      ...call(1, 'call_w2', 'get_wind', '{"at":[54', '.1,10.8e', '0],"unit":null}'),
      finish('tool_calls'),
      counts(),
    ],
    {
      parts: [['tool_call'], ['tool_call']],
      calls: [
        ['call_w1', 'get_tide', { port: 'Lübeck "Old" 🚢' }],
        ['call_w2', 'get_wind', { at: [54.1, 10.8], unit: null }],
      ],
      usage: tokens,
      stop: toolCalls,
    },
  ),
  stream(
    'parallel-calls-interleaved',
    [
      role,
      ...[call(0, 'call_w1', 'get_tide'), call(1, 'call_w2', 'get_wind')].flat(),
      piece({ index: 1, function: { arguments: '{"knots":' } }),
      piece({ index: 0, function: { arguments: '{"hour":' } }),
      choice({
        tool_calls: [
          { index: 1, function: { arguments: '7}' } },
          { index: 0, function: { arguments: '6}' } },
        ],
      }),
      finish('tool_calls'),
      counts(),
    ],
    {
      parts: [['tool_call'], ['tool_call']],
      calls: [
        ['call_w1', 'get_tide', { hour: 6 }],
        ['call_w2', 'get_wind', { knots: 7 }],
      ],
      usage: tokens,
      stop: toolCalls,
    },
  ),
  stream(
    'call-without-input',
    [role, ...call(0, 'call_w1', 'list_boats', '{}'), finish('tool_calls'), counts()],
    {
      parts: [['tool_call']],
      calls: [['call_w1', 'list_boats', {}]],
      usage: tokens,
      stop: toolCalls,
    },
  ),
  stream(
    'call-that-cannot-be-read',
    [role, ...call(0, 'call_w1', 'get_tide', '{"hour": six}'), finish('tool_calls'), counts()],
    {
      parts: [['tool_call']],
      calls: [['call_w1', 'get_tide', {}]],
      usage: tokens,
      stop: toolCalls,
      malformed: { call_w1: '{"hour": six}' },
    },
  ),
  stream(
    'usage-with-caches-and-reasoning',
    [
      role,
      ...words('Aye.'),
      finish('stop'),
      counts({
        prompt_tokens: 900,
        prompt_tokens_details: { cached_tokens: 600, audio_tokens: 0 },
        completion_tokens: 50,
        completion_tokens_details: { reasoning_tokens: 44 },
        total_tokens: 950,
      }),
    ],
    {
      parts: [said('text', 'Aye.')],
      usage: { inputTokens: 900, outputTokens: 50, cacheReadTokens: 600, reasoningTokens: 44 },
      stop,
    },
  ),
  stream(
    'web-search-with-citations',
    [
      role,
      ...words('Six kinds.'),
      choice({
        annotations: [
          {
            type: 'url_citation',
            url_citation: {
              start_index: 0,
              end_index: 9,
              url: 'https://birds.example/gulls',
              title: 'Gulls',
            },
          },
        ],
      }),
      finish('stop'),
      counts(),
    ],
    {
      parts: [said('text', 'Six kinds.')],
      usage: tokens,
      stop,
      citations: { 0: [{ url: 'https://birds.example/gulls', title: 'Gulls', place: { from: 0, to: 9 } }] },
    },
  ),
  stream(
    'refusal',
    [
      choice({ role: 'assistant', content: null, refusal: null }),
      choice({ refusal: 'That I ' }),
      choice({ refusal: 'will not do.' }),
      finish('stop'),
      counts(),
    ],
    { parts: [said('text', 'That I will not do.')], usage: tokens, stop: ['refused', 'stop'] },
  ),
  stream('max-tokens-in-text', [...half, finish('length'), counts()], {
    ...seen,
    usage: tokens,
    stop: ['max_tokens', 'length'],
  }),
  stream(
    'max-tokens-in-a-call',
    [
      role,
      ...words('I note it.'),
      ...call(0, 'call_w1', 'write_log', '{"line":"Wi'),
      finish('length'),
      counts(),
    ],
    { parts: [said('text', 'I note it.')], usage: tokens, stop: ['max_tokens', 'length'] },
  ),
  stream('content-filter', [...half, finish('content_filter'), counts()], {
    ...seen,
    usage: tokens,
    stop: ['content_filtered', 'content_filter'],
  }),
  stream(
    'several-choices',
    [
      role,
      chunk([{ index: 1, delta: { content: 'Never ' }, finish_reason: null }]),
      ...words('Slack '),
      chunk([{ index: 1, delta: { content: 'shown.' }, finish_reason: null }]),
      ...words('water.'),
      finish('stop'),
      chunk([{ index: 1, delta: {}, finish_reason: 'length' }]),
      counts(),
    ],
    given,
  ),
  stream(
    'moderation-behind-the-usage',
    [...slack, chunk([], { moderation: { input: { results: [{ flagged: false }] } } })],
    given,
  ),
  stream('reason-without-a-last-word', slack.slice(0, -1), uncounted),
  ofBody('no-last-word', bodyOf(slack), given),
  ofBody('lines-that-end-as-on-windows', bodyOf([...slack, doneLine]).replaceAll('\n', '\r\n'), given),
  ofBody('data-without-a-space', bodyOf([...slack, doneLine]).replaceAll('data: ', 'data:'), given),
  stream('comments', [': on\n\n', ...slack.flatMap((one) => [': on\n\n', one])], given),
  stream(
    'error-in-the-middle',
    [...half, { error: { type: 'server_error', message: 'A rope broke.', code: null } }],
    {
      ...seen,
      failure: ['server', true],
      failureWords: 'A rope broke',
    },
  ),
  ofBody('cut-in-an-event', cutWithin(bodyOf([...half, ...words(' twice')]), ' twice'), {
    ...seen,
    failure: ['truncated', true],
  }),
  ofBody('cut-without-a-terminator', bodyOf(half), { ...seen, failure: ['truncated', true] }),
  ofBody('cut-in-a-call', bodyOf([role, ...call(0, 'call_w1', 'get_tide', '{"hour":6}')]), {
    parts: [['tool_call']],
    failure: ['truncated', true],
  }),
  ofBody('cut-by-a-reset', bodyOf(half), { ...seen, failure: ['network', true], ending: 'break' }),
  stream('two-replies-spliced', [...half, { ...role, id: 'chatcmpl-w2' }], {
    ...seen,
    failure: ['protocol', true],
  }),
  refusal(
    'refused-429-with-a-wait',
    429,
    { error: { message: 'Slow down, sailor.', type: 'requests', param: null, code: 'rate_limit_exceeded' } },
    { headers: { 'retry-after': '9' }, failure: ['rate_limited', true], retryAfterMs: 9000 },
  ),
  refusal(
    'refused-400-too-long',
    400,
    {
      error: {
        message: "This model's maximum context length is 6 tokens.",
        type: 'invalid_request_error',
        param: 'messages',
        code: 'context_length_exceeded',
      },
    },
    { failure: ['context_overflow', false] },
  ),
  refusal('refused-404-in-a-list', 404, [{ error: { code: 404, message: 'No such model.' } }], {
    failure: ['not_found', false],
    failureWords: 'No such model',
  }),
]
