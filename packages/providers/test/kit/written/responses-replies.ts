import { sseRecord } from '../bytes.ts'
import { said, type Written } from './reading.ts'
import {
  added,
  call,
  completed,
  created,
  done,
  inProgress,
  message,
  messageBegins,
  messageEnds,
  ofBody,
  reasoning,
  saying,
  stream,
  tokens,
  usage,
} from './responses-stream.ts'

const end = ['end', 'completed'] as const
const toolUse = ['tool_use', 'completed'] as const
const harbour = 'The ferry to Tromsø leaves at six ⛴️.'
const hello = [created(), inProgress, message(0, 'Slack ', 'water.'), completed()]
const slack = { parts: [said('text', 'Slack water.')], usage: tokens, stop: end }
const dressed = (change: (body: string) => string) => change(hello.flat().map(sseRecord).join(''))
const plainReasoning = (delta: string) => ({
  type: 'response.reasoning_text.delta',
  item_id: 'rs_0',
  output_index: 0,
  content_index: 0,
  delta,
})
const plainItem = { type: 'reasoning', id: 'rs_0', summary: [], content: [] as object[] }

/** Replies of the Responses wire that end well: words, thoughts and calls. */
export const responsesReplies: readonly Written[] = [
  stream(
    'text',
    [created(), inProgress, message(0, harbour.slice(0, 9), '', harbour.slice(9)), completed()],
    {
      parts: [said('text', harbour)],
      usage: tokens,
      stop: end,
    },
  ),
  stream('text-parted-inside-a-character', [created(), message(0, 'Tide \ud83c', '\udf0a.'), completed()], {
    parts: [said('text', 'Tide 🌊.')],
    usage: tokens,
    stop: end,
  }),
  stream('two-messages', [created(), message(0, 'I look.'), message(1, 'Six.'), completed()], {
    parts: [said('text', 'I look.'), said('text', 'Six.')],
    usage: tokens,
    stop: end,
  }),
  stream(
    'phases-of-messages',
    [
      created(),
      [...messageBegins(0, { phase: 'commentary' }), saying(0, 'I look.')],
      messageEnds(0, 'I look.', { phase: 'commentary' }),
      call(1, 'call_w1', 'get_tide', '{"hour":6}'),
      completed(),
    ],
    {
      parts: [said('text', 'I look.'), ['tool_call']],
      calls: [['call_w1', 'get_tide', { hour: 6 }]],
      usage: tokens,
      stop: toolUse,
      carried: { 0: { item: { phase: 'commentary' } } },
    },
  ),
  stream(
    'reasoning-with-a-summary',
    [
      created(),
      reasoning(0, 'ZW5jcnlwdGVkLW9uZQ==', ['**Tide', 's**'], ['Low at six.']),
      call(1, 'call_w1', 'get_tide', '{"hour":', '6}'),
      completed({ usage: usage({ output_tokens_details: { reasoning_tokens: 7 } }) }),
    ],
    {
      parts: [said('reasoning', '**Tides**\n\nLow at six.'), ['tool_call']],
      calls: [['call_w1', 'get_tide', { hour: 6 }]],
      usage: { ...tokens, reasoningTokens: 7 },
      stop: toolUse,
      carried: {
        0: {
          item: {
            id: 'rs_0',
            encrypted_content: 'ZW5jcnlwdGVkLW9uZQ==',
            summary: [
              { type: 'summary_text', text: '**Tides**' },
              { type: 'summary_text', text: 'Low at six.' },
            ],
          },
        },
      },
    },
  ),
  stream('reasoning-not-shown', [created(), reasoning(0, 'ZW5jMg=='), message(1, 'Six.'), completed()], {
    parts: [['reasoning'], said('text', 'Six.')],
    usage: tokens,
    stop: end,
    carried: { 0: { item: { encrypted_content: 'ZW5jMg==', summary: [] } } },
  }),
  stream(
    'reasoning-in-the-open',
    [
      created(),
      [added(0, plainItem), plainReasoning('Six, '), plainReasoning('I think.')],
      done(0, { ...plainItem, content: [{ type: 'reasoning_text', text: 'Six, I think.' }] }),
      message(1, 'Six.'),
      completed(),
    ],
    { parts: [said('reasoning', 'Six, I think.'), said('text', 'Six.')], usage: tokens, stop: end },
  ),
  stream(
    'parallel-calls-parted-inside-escapes',
    [
      created(),
      call(0, 'call_w1', 'get_tide', '', '{"port":"L\\u00', 'fcbeck \\', '"Old\\" \\ud83d', '\\udea2"}'),
      call(1, 'call_w2', 'get_wind', '{"at":[54', '.1,10.8e', '0],"unit":null}'),
      completed(),
    ],
    {
      parts: [['tool_call'], ['tool_call']],
      calls: [
        ['call_w1', 'get_tide', { port: 'Lübeck "Old" 🚢' }],
        ['call_w2', 'get_wind', { at: [54.1, 10.8], unit: null }],
      ],
      usage: tokens,
      stop: toolUse,
    },
  ),
  stream('call-without-input', [created(), call(0, 'call_w3', 'list_boats', '{}'), completed()], {
    parts: [['tool_call']],
    calls: [['call_w3', 'list_boats', {}]],
    usage: tokens,
    stop: toolUse,
  }),
  stream(
    'call-that-cannot-be-read',
    [created(), call(0, 'call_w1', 'get_tide', '{"hour": six}'), completed()],
    {
      parts: [['tool_call']],
      calls: [['call_w1', 'get_tide', {}]],
      usage: tokens,
      stop: toolUse,
      malformed: { call_w1: '{"hour": six}' },
    },
  ),
  stream(
    'custom-tool',
    [
      created(),
      added(0, { type: 'custom_tool_call', id: 'ctc_0', call_id: 'call_w1', name: 'write_log', input: '' }),
      ...['Wind "west"', '\nForce 6'].map((delta) => ({
        type: 'response.custom_tool_call_input.delta',
        item_id: 'ctc_0',
        output_index: 0,
        delta,
      })),
      {
        type: 'response.custom_tool_call_input.done',
        item_id: 'ctc_0',
        output_index: 0,
        input: 'Wind "west"\nForce 6',
      },
      done(0, {
        type: 'custom_tool_call',
        id: 'ctc_0',
        call_id: 'call_w1',
        name: 'write_log',
        status: 'completed',
        input: 'Wind "west"\nForce 6',
      }),
      completed(),
    ],
    {
      parts: [['tool_call']],
      calls: [['call_w1', 'write_log', { input: 'Wind "west"\nForce 6' }]],
      usage: tokens,
      stop: toolUse,
    },
  ),
  stream(
    'events-and-items-of-new-kinds',
    [
      created(),
      { type: 'response.weather.delta', sky: 'clear' },
      [added(0, { type: 'chart', id: 'ch_0' }), done(0, { type: 'chart', id: 'ch_0', places: [1] })],
      message(1, 'Clear.'),
      completed(),
    ],
    {
      parts: [['chart'], said('text', 'Clear.')],
      usage: tokens,
      stop: end,
      carried: { 0: { item: { type: 'chart', id: 'ch_0', places: [1] } } },
    },
  ),
  stream(
    'queued-in-the-background',
    [
      created(),
      { type: 'response.queued', response: { id: 'resp_w1', model: 'gpt-test-1' } },
      ...hello.slice(1),
    ],
    slack,
  ),
  stream(
    'events-that-come-twice',
    [
      created(),
      inProgress,
      inProgress,
      ...message(0, 'Slack ', 'water.'),
      done(0, messageItem()),
      completed(),
    ],
    slack,
  ),
  stream(
    'items-that-never-began',
    // Only how the items ended is there, as servers do that stream nothing.
    [created(), done(0, messageItem()), completed()],
    slack,
  ),
  ofBody(
    'lines-that-end-as-on-windows',
    dressed((body) => body.replaceAll('\n', '\r\n')),
    slack,
  ),
  ofBody(
    'data-without-a-space',
    dressed((body) => body.replaceAll('data: ', 'data:')),
    slack,
  ),
  ofBody(
    'last-blank-line-missing',
    dressed((body) => body.trimEnd()),
    slack,
  ),
  stream(
    'comments-and-ids',
    [': open\n\n', ...hello.flatMap((one) => [': on\n\n', 'id: 7\n', one].flat())],
    slack,
  ),
]

/** The message of `slack`, as it ended. */
function messageItem() {
  const content = [{ type: 'output_text', text: 'Slack water.', annotations: [], logprobs: [] }]
  return { type: 'message', id: 'msg_0', role: 'assistant', status: 'completed', content }
}
