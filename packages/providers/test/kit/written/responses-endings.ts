import { dataRecord, sseRecord } from '../bytes.ts'
import { cutWithin, said, type Written } from './reading.ts'
import {
  added,
  argument,
  call,
  callBegins,
  completed,
  created,
  done,
  failed,
  incomplete,
  message,
  messageBegins,
  ofBody,
  refusal,
  saying,
  stream,
  tokens,
  usage,
} from './responses-stream.ts'

const half = [created(), ...messageBegins(0), saying(0, 'The light '), saying(0, 'blinks')]
const seen = { parts: [said('text', 'The light blinks')] }
const refusing = (delta: string) => ({
  type: 'response.refusal.delta',
  item_id: 'msg_0',
  output_index: 0,
  content_index: 0,
  delta,
})
const declined = 'That I will not do.'
const refusalPart = (text: string) => ({ type: 'refusal', refusal: text })
const messageFields = { type: 'message', id: 'msg_0', role: 'assistant' }

/** How the Responses wire counts, and the ways in which its replies end. */
export const responsesEndings: readonly Written[] = [
  stream(
    'usage-with-caches',
    [
      created(),
      message(0, 'Aye.'),
      completed({
        usage: usage({
          input_tokens: 900,
          input_tokens_details: { cached_tokens: 600, cache_write_tokens: 200 },
          output_tokens: 50,
          output_tokens_details: { reasoning_tokens: 44 },
          total_tokens: 950,
        }),
      }),
    ],
    {
      parts: [said('text', 'Aye.')],
      usage: {
        inputTokens: 900,
        outputTokens: 50,
        cacheReadTokens: 600,
        cacheWriteTokens: 200,
        reasoningTokens: 44,
      },
      stop: ['end', 'completed'],
    },
  ),
  stream('usage-left-out', [created(), message(0, 'Aye.'), completed({ usage: null })], {
    parts: [said('text', 'Aye.')],
    stop: ['end', 'completed'],
  }),
  stream(
    'refusal',
    [
      created(),
      added(0, { ...messageFields, status: 'in_progress', content: [] }),
      {
        type: 'response.content_part.added',
        item_id: 'msg_0',
        output_index: 0,
        content_index: 0,
        part: refusalPart(''),
      },
      refusing('That I '),
      refusing('will not do.'),
      {
        type: 'response.refusal.done',
        item_id: 'msg_0',
        output_index: 0,
        content_index: 0,
        refusal: declined,
      },
      done(0, { ...messageFields, status: 'completed', content: [refusalPart(declined)] }),
      completed(),
    ],
    { parts: [said('text', declined)], usage: tokens, stop: ['refused', 'completed'] },
  ),
  stream(
    'max-tokens-in-text',
    [
      ...half,
      done(0, {
        ...messageFields,
        status: 'incomplete',
        content: [{ type: 'output_text', text: 'The light blinks', annotations: [], logprobs: [] }],
      }),
      incomplete('max_output_tokens'),
    ],
    { ...seen, usage: tokens, stop: ['max_tokens', 'max_output_tokens'] },
  ),
  stream(
    'max-tokens-in-a-call',
    [
      created(),
      message(0, 'I note it.'),
      [callBegins(1, 'call_w1', 'write_log'), argument(1, '{"line":"Wi')],
      done(1, {
        type: 'function_call',
        id: 'fc_1',
        call_id: 'call_w1',
        name: 'write_log',
        status: 'incomplete',
        arguments: '{"line":"Wi',
      }),
      incomplete('max_output_tokens'),
    ],
    { parts: [said('text', 'I note it.')], usage: tokens, stop: ['max_tokens', 'max_output_tokens'] },
  ),
  stream('content-filter', [...half, incomplete('content_filter')], {
    ...seen,
    usage: tokens,
    stop: ['content_filtered', 'content_filter'],
  }),
  stream('failed-for-lack-of-credit', [created(), failed('insufficient_quota', 'The purse is empty.')], {
    failure: ['rate_limited', false],
    failureWords: 'The purse is empty',
  }),
  stream('failed-on-a-long-history', [created(), failed('context_length_exceeded', 'Too long a tale.')], {
    failure: ['context_overflow', false],
  }),
  stream('failed-on-the-other-side', [...half, failed('server_error', 'A rope broke.')], {
    ...seen,
    failure: ['server', true],
    failureWords: 'A rope broke',
  }),
  stream(
    'error-in-the-middle',
    [...half, { type: 'error', code: 'rate_limit_exceeded', message: 'Slow down, sailor.', param: null }],
    { ...seen, failure: ['rate_limited', true], failureWords: 'Slow down, sailor' },
  ),
  stream(
    'error-in-an-object-in-the-middle',
    [
      ...half,
      { type: 'error', error: { type: 'overloaded_error', code: 'server_is_overloaded', message: 'Full.' } },
    ],
    { ...seen, failure: ['overloaded', true] },
  ),
  ofBody('cut-in-an-event', cutWithin([...half, saying(0, ' twice')].map(sseRecord).join(''), ' twice'), {
    ...seen,
    failure: ['truncated', true],
  }),
  stream('cut-without-a-terminator', [created(), ...message(0, 'The light blinks')], {
    ...seen,
    failure: ['truncated', true],
  }),
  stream('cut-by-a-reset', half, { ...seen, failure: ['network', true], ending: 'break' }),
  stream('two-replies-spliced', [...half, created({ id: 'resp_w2' })], {
    ...seen,
    failure: ['protocol', true],
  }),
  stream('call-behind-its-end', [created(), ...call(0, 'call_w1', 'get_tide', '{}'), argument(0, '{')], {
    parts: [['tool_call']],
    calls: [['call_w1', 'get_tide', {}]],
    failure: ['protocol', true],
  }),
  refusal(
    'refused-429-with-a-wait',
    429,
    { type: 'requests', code: 'rate_limit_exceeded', message: 'Slow down, sailor.' },
    {
      headers: { 'retry-after-ms': '1500', 'retry-after': '2' },
      failure: ['rate_limited', true],
      failureWords: 'Slow down, sailor',
      retryAfterMs: 1500,
    },
  ),
  refusal(
    'refused-503',
    503,
    { type: 'server_error', code: 'slow_down', message: 'Full.' },
    {
      failure: ['overloaded', true],
    },
  ),
  refusal(
    'refused-400-too-long',
    400,
    { type: 'invalid_request_error', code: 'context_length_exceeded', message: 'Too long a tale.' },
    { failure: ['context_overflow', false] },
  ),
  refusal(
    'refused-400',
    400,
    { type: 'invalid_request_error', code: 'unknown_parameter', message: "Unknown parameter: 'sail'." },
    { failure: ['invalid_request', false] },
  ),
  stream('error-in-a-list', [...half, dataRecord([{ error: { code: 503, message: 'Full.' } }])], {
    ...seen,
    failure: ['overloaded', true],
    failureWords: 'Full',
  }),
]
