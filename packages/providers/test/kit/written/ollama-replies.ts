import { call, calls, done, line, text, thinking } from '../ollama-lines.ts'
import { cutWithin, type Given, said, type Written } from './reading.ts'

const bodyOf = (lines: readonly (object | string)[]): string =>
  lines.map((one) => (typeof one === 'string' ? one : `${JSON.stringify(one)}\n`)).join('')
const stream = (file: string, lines: readonly (object | string)[], given: Given): Written =>
  ofBody(file, bodyOf(lines), given)
const ofBody = (file: string, body: string, given: Given): Written => ({
  folder: 'ollama',
  file,
  body,
  served: 'qwen-test',
  parts: [],
  calls: [],
  ...given,
  headers: { 'content-type': 'application/x-ndjson', ...given.headers },
})
const refusal = (file: string, status: number, error: unknown, given: Given): Written => ({
  folder: 'ollama',
  file,
  body: JSON.stringify({ error }),
  status,
  parts: [],
  calls: [],
  ...given,
  headers: { 'content-type': 'application/json', ...given.headers },
})

const tokens = { inputTokens: 12, outputTokens: 20 }
const end = ['end', 'stop'] as const
const slack = [text('Slack '), text('water.'), done()]
const given = { parts: [said('text', 'Slack water.')], usage: tokens, stop: end }
const half = [text('The light '), text('blinks')]
const seen = { parts: [said('text', 'The light blinks')] }

/** Streams of Ollama's native chat. */
export const ollamaReplies: readonly Written[] = [
  stream('text', [text('The ferry to Troms'), text(''), text('ø leaves ⛴️.'), done()], {
    parts: [said('text', 'The ferry to Tromsø leaves ⛴️.')],
    usage: tokens,
    stop: end,
  }),
  stream('text-parted-inside-a-character', [text('Tide \ud83c'), text('\udf0a.'), done()], {
    parts: [said('text', 'Tide 🌊.')],
    usage: tokens,
    stop: end,
  }),
  stream('no-content', [done()], { usage: tokens, stop: end }),
  stream(
    'thinking-then-parallel-calls',
    [
      thinking('Low at six,'),
      thinking(' I think.'),
      calls(
        call('get_tide', { port: 'Lübeck "Old" 🚢' }, 'call_w1'),
        call('get_wind', { at: [54.1], unit: null }, 'call_w2'),
      ),
      done(),
    ],
    {
      parts: [said('reasoning', 'Low at six, I think.'), ['tool_call'], ['tool_call']],
      calls: [
        ['call_w1', 'get_tide', { port: 'Lübeck "Old" 🚢' }],
        ['call_w2', 'get_wind', { at: [54.1], unit: null }],
      ],
      usage: tokens,
      stop: ['tool_use', 'stop'],
    },
  ),
  stream('calls-without-ids-and-input', [calls(call('list_boats')), calls(call('list_boats', {})), done()], {
    parts: [['tool_call'], ['tool_call']],
    calls: [
      ['', 'list_boats', {}],
      ['', 'list_boats', {}],
    ],
    usage: tokens,
    stop: ['tool_use', 'stop'],
  }),
  stream('input-as-text', [calls(call('get_tide', '{"hour":6}'), call('get_wind', 'west')), done()], {
    parts: [['tool_call'], ['tool_call']],
    calls: [
      ['', 'get_tide', { hour: 6 }],
      ['', 'get_wind', {}],
    ],
    usage: tokens,
    stop: ['tool_use', 'stop'],
    malformed: { '': 'west' },
  }),
  stream(
    'words-around-a-call',
    [text('I look.'), calls(call('get_tide', { hour: 6 }, 'call_w1')), text('So.'), done()],
    {
      parts: [said('text', 'I look.'), ['tool_call'], said('text', 'So.')],
      calls: [['call_w1', 'get_tide', { hour: 6 }]],
      usage: tokens,
      stop: ['tool_use', 'stop'],
    },
  ),
  stream(
    'everything-on-the-last-line',
    [{ ...done(), ...line({ content: 'Six.', thinking: 'Low.' }), done: true }],
    {
      parts: [said('reasoning', 'Low.'), said('text', 'Six.')],
      usage: tokens,
      stop: end,
    },
  ),
  stream(
    'counts-left-out',
    [text('Six.'), done('stop', { prompt_eval_count: undefined, eval_count: undefined })],
    {
      parts: [said('text', 'Six.')],
      stop: end,
    },
  ),
  stream('length', [...half, done('length')], { ...seen, usage: tokens, stop: ['max_tokens', 'length'] }),
  stream('context-full', [...half, done('length', { prompt_eval_count: 4000, eval_count: 96 })], {
    ...seen,
    usage: { inputTokens: 4000, outputTokens: 96 },
    stop: ['context_exceeded', 'length'],
  }),
  stream('a-new-reason', [...half, done('moonrise')], {
    ...seen,
    usage: tokens,
    stop: ['other', 'moonrise'],
  }),
  ofBody('lines-that-end-as-on-windows', bodyOf(slack).replaceAll('\n', '\r\n'), given),
  stream('blank-lines', ['\n', ...slack.flatMap((one) => [one, '\n \n'])], given),
  ofBody('last-line-without-its-end', bodyOf(slack).trimEnd(), given),
  stream('behind-its-end-other-words', [...slack, text('Not said.'), done()], given),
  stream('error-in-the-middle', [...half, { error: 'A rope broke.' }], {
    ...seen,
    failure: ['server', true],
    failureWords: 'A rope broke',
  }),
  stream('error-of-an-overflow-in-the-middle', [...half, { error: 'the input exceeds the context length' }], {
    ...seen,
    failure: ['context_overflow', false],
  }),
  ofBody('cut-in-a-line', cutWithin(bodyOf([...half, text(' twice')]), ' twice'), {
    ...seen,
    failure: ['truncated', true],
  }),
  stream('cut-without-a-last-line', half, { ...seen, failure: ['truncated', true] }),
  stream('cut-by-a-reset', half, { ...seen, failure: ['network', true], ending: 'break' }),
  stream('a-page-among-the-lines', [...half, '<html>\n', ...slack], { ...seen, failure: ['protocol', true] }),
  refusal('refused-429-with-a-wait', 429, 'too many requests, sailor', {
    headers: { 'retry-after': '4' },
    failure: ['rate_limited', true],
    retryAfterMs: 4000,
  }),
  refusal('refused-503', 503, 'server busy, please try again. maximum pending requests exceeded', {
    failure: ['overloaded', true],
  }),
  refusal(
    'refused-400-too-long',
    400,
    { code: 400, type: 'exceed_context_size_error', message: 'Too long a tale.' },
    {
      failure: ['context_overflow', false],
    },
  ),
  refusal('refused-404', 404, "model 'qwen-test' not found", { failure: ['not_found', false] }),
]
