import {
  close,
  delta,
  json,
  open,
  ping,
  stop,
  text,
  textBlock,
  thinkingBlock,
  toolBlock,
} from '../streams.ts'
import { begin, counted, reason, stream } from './anthropic-stream.ts'
import { said, type Written } from './reading.ts'

const end = ['end', 'end_turn'] as const
const toolUse = ['tool_use', 'tool_use'] as const
const harbour = 'The harbour wakes at five: gulls, a tug, then the ferry to Tromsø ⛴️.'

/** Replies of Anthropic that end well: words, thoughts and calls. */
export const anthropicReplies: readonly Written[] = [
  stream(
    'text',
    [
      begin(),
      ping,
      ...textBlock(0, '', harbour.slice(0, 11), '', harbour.slice(11)),
      reason('end_turn'),
      stop,
    ],
    { parts: [said('text', harbour)], usage: counted, stop: end },
  ),
  stream(
    'text-parted-inside-a-character',
    // The vendor sends each half of a surrogate pair as an escape: `\ud83c` in one delta, `\udf0a` in the next.
    [begin(), ...textBlock(0, 'Tide \ud83c', '\udf0a rises.'), reason('end_turn'), stop],
    { parts: [said('text', 'Tide 🌊 rises.')], usage: counted, stop: end },
  ),
  stream('text-empty', [begin(), ...textBlock(0), reason('end_turn'), stop], {
    parts: [['text', 0]],
    usage: counted,
    stop: end,
  }),
  stream('no-content', [begin(), reason('end_turn', { output_tokens: 2 }), stop], {
    usage: { inputTokens: 30, outputTokens: 2 },
    stop: end,
  }),
  stream(
    'stop-sequence',
    [begin(), ...textBlock(0, 'One, two, '), reason('end_turn', {}, { stop_reason: 'stop_sequence' }), stop],
    { parts: [said('text', 'One, two, ')], usage: counted, stop: ['end', 'stop_sequence'] },
  ),
  stream(
    'thinking-signed',
    [
      begin(),
      open(0, { type: 'thinking', thinking: '', signature: '' }),
      delta(0, { type: 'thinking_delta', thinking: 'Low water is at six, ' }),
      ping,
      delta(0, { type: 'thinking_delta', thinking: 'so the sandbank shows.' }),
      delta(0, { type: 'signature_delta', signature: 'RXhhbXBsZVNpZ25hdHVyZS9PbmU9PQ==' }),
      close(0),
      ...textBlock(1, 'Wait for six.'),
      reason('end_turn', { output_tokens_details: { thinking_tokens: 9 } }),
      stop,
    ],
    {
      parts: [
        said('reasoning', 'Low water is at six, so the sandbank shows.'),
        said('text', 'Wait for six.'),
      ],
      usage: { ...counted, reasoningTokens: 9 },
      stop: end,
      carried: { 0: { block: { signature: 'RXhhbXBsZVNpZ25hdHVyZS9PbmU9PQ==' } } },
    },
  ),
  stream(
    'thinking-signature-in-pieces',
    [
      begin(),
      open(0, { type: 'thinking', thinking: '', signature: '' }),
      delta(0, { type: 'thinking_delta', thinking: 'Two knots.' }),
      delta(0, { type: 'signature_delta', signature: 'c2lnbmVk' }),
      delta(0, { type: 'signature_delta', signature: 'LXR3aWNl' }),
      close(0),
      ...textBlock(1, 'Two.'),
      reason('end_turn'),
      stop,
    ],
    {
      parts: [said('reasoning', 'Two knots.'), said('text', 'Two.')],
      usage: counted,
      stop: end,
      carried: { 0: { block: { signature: 'c2lnbmVkLXR3aWNl' } } },
    },
  ),
  stream(
    'thinking-not-shown',
    [begin(), ...thinkingBlock(0, '', 'aGlkZGVu'), ...textBlock(1, 'Yes.'), reason('end_turn'), stop],
    {
      parts: [['reasoning', 0], said('text', 'Yes.')],
      usage: counted,
      stop: end,
      carried: { 0: { block: { signature: 'aGlkZGVu' } } },
    },
  ),
  stream(
    'thinking-redacted',
    [
      begin(),
      open(0, { type: 'redacted_thinking', data: 'cmVkYWN0ZWQtb25l' }),
      close(0),
      open(1, { type: 'redacted_thinking', data: 'cmVkYWN0ZWQtdHdv' }),
      close(1),
      ...textBlock(2, 'I looked into it.'),
      reason('end_turn'),
      stop,
    ],
    {
      parts: [['reasoning', 0], ['reasoning', 0], said('text', 'I looked into it.')],
      usage: counted,
      stop: end,
      carried: { 0: { block: { data: 'cmVkYWN0ZWQtb25l' } }, 1: { block: { data: 'cmVkYWN0ZWQtdHdv' } } },
    },
  ),
  stream(
    'parallel-calls-parted-inside-escapes',
    [
      begin(),
      ...textBlock(0, 'Both at once.'),
      // The first border is inside `\u00fc`, the second inside `\"`, the third inside a surrogate pair's escapes.
      ...toolBlock(
        1,
        'toolu_01',
        'get_tide',
        '',
        '{"port": "L\\u00',
        'fcbeck \\',
        '"Old\\" \\ud83d',
        '\\udea2"}',
      ),
      ...toolBlock(2, 'toolu_02', 'get_wind', '', '{"at": [54', '.1, 10.8e', '0], "un', 'it":null}'),
      reason('tool_use'),
      stop,
    ],
    {
      parts: [said('text', 'Both at once.'), ['tool_call'], ['tool_call']],
      calls: [
        ['toolu_01', 'get_tide', { port: 'Lübeck "Old" 🚢' }],
        ['toolu_02', 'get_wind', { at: [54.1, 10.8], unit: null }],
      ],
      usage: counted,
      stop: toolUse,
    },
  ),
  stream(
    'parallel-calls-interleaved',
    [
      begin(),
      open(0, { type: 'tool_use', id: 'toolu_01', name: 'get_tide', input: {} }),
      open(1, { type: 'tool_use', id: 'toolu_02', name: 'get_wind', input: {} }),
      json(1, '{"knots"'),
      json(0, '{"hour":'),
      json(1, ':7}'),
      json(0, ' 6}'),
      close(1),
      close(0),
      reason('tool_use'),
      stop,
    ],
    {
      parts: [['tool_call'], ['tool_call']],
      // They are asked for in the order in which they were whole.
      calls: [
        ['toolu_02', 'get_wind', { knots: 7 }],
        ['toolu_01', 'get_tide', { hour: 6 }],
      ],
      usage: counted,
      stop: toolUse,
    },
  ),
  stream(
    'call-without-input',
    [begin(), ...toolBlock(0, 'toolu_01', 'list_boats', ''), reason('tool_use'), stop],
    { parts: [['tool_call']], calls: [['toolu_01', 'list_boats', {}]], usage: counted, stop: toolUse },
  ),
  stream(
    'call-with-input-at-its-start',
    [
      begin(),
      open(0, { type: 'tool_use', id: 'toolu_01', name: 'get_tide', input: { hour: 6 } }),
      close(0),
      reason('tool_use'),
      stop,
    ],
    { parts: [['tool_call']], calls: [['toolu_01', 'get_tide', { hour: 6 }]], usage: counted, stop: toolUse },
  ),
  stream(
    'call-that-cannot-be-read',
    [
      begin(),
      ...toolBlock(0, 'toolu_01', 'get_tide', '{"hour": six}'),
      ...toolBlock(1, 'toolu_02', 'get_wind', '[7]'),
      reason('tool_use'),
      stop,
    ],
    {
      parts: [['tool_call'], ['tool_call']],
      calls: [
        ['toolu_01', 'get_tide', {}],
        ['toolu_02', 'get_wind', {}],
      ],
      usage: counted,
      stop: toolUse,
      malformed: { toolu_01: '{"hour": six}', toolu_02: '[7]' },
    },
  ),
  stream(
    'thinking-between-calls',
    [
      begin(),
      ...thinkingBlock(0, 'First the tide.', 'Zmlyc3Q='),
      ...toolBlock(1, 'toolu_01', 'get_tide', '{"hour":6}'),
      ...thinkingBlock(2, 'Then the wind.', 'dGhlbg=='),
      ...toolBlock(3, 'toolu_02', 'get_wind', '{"hour":6}'),
      reason('tool_use'),
      stop,
    ],
    {
      parts: [
        said('reasoning', 'First the tide.'),
        ['tool_call'],
        said('reasoning', 'Then the wind.'),
        ['tool_call'],
      ],
      calls: [
        ['toolu_01', 'get_tide', { hour: 6 }],
        ['toolu_02', 'get_wind', { hour: 6 }],
      ],
      usage: counted,
      stop: toolUse,
      carried: { 0: { block: { signature: 'Zmlyc3Q=' } }, 2: { block: { signature: 'dGhlbg==' } } },
    },
  ),
  stream(
    'events-and-blocks-of-new-kinds',
    [
      begin(),
      { type: 'weather_report', sky: 'clear' },
      open(0, { type: 'chart', places: [1] }),
      delta(0, { type: 'chart_delta', caption: 'Bay' }),
      close(0),
      open(1, { type: 'text', text: '' }),
      delta(1, { type: 'mood_delta', mood: 'calm' }),
      text(1, 'Clear.'),
      close(1),
      reason('end_turn', { moon_tokens: 3 }),
      stop,
    ],
    {
      parts: [['chart'], said('text', 'Clear.')],
      usage: counted,
      stop: end,
      carried: { 0: { block: { type: 'chart', places: [1], caption: 'Bay' } } },
    },
  ),
]
