import { stop, textBlock } from '../streams.ts'
import { begin, bodyOf, counted, ofBody, reason, stream } from './anthropic-stream.ts'
import { said, type Written } from './reading.ts'

const shown = { parts: [said('text', 'Slack water.')], usage: counted }
const given = { ...shown, stop: ['end', 'end_turn'] as const }
const events = [begin(), ...textBlock(0, 'Slack ', 'water.'), reason('end_turn'), stop]

/** One reply of Anthropic in every dress that an event stream may wear. */
export const anthropicLines: readonly Written[] = [
  ofBody('lines-that-end-as-on-windows', bodyOf(events).replaceAll('\n', '\r\n'), given),
  ofBody('lines-that-end-in-returns', bodyOf(events).replaceAll('\n', '\r'), given),
  ofBody('data-without-a-space', bodyOf(events).replaceAll('data: ', 'data:'), given),
  ofBody(
    'data-over-two-lines',
    bodyOf(events).replaceAll('"text":"water."', '"text":\ndata: "water."'),
    given,
  ),
  stream(
    'comments-ids-and-retries',
    [': open\n\n', ...events.flatMap((event) => [': still here\n\n', 'id: 7\nretry: 3000\n', event])],
    given,
  ),
  stream(
    'behind-its-end-other-words',
    [...events, ...textBlock(0, 'Not said.'), { type: 'message_stop' }],
    given,
  ),
  // By the standard of event streams, only a blank line ends an event: the proof of the reply never came.
  ofBody('last-blank-line-missing', bodyOf(events).trimEnd(), {
    ...shown,
    failure: ['truncated', true],
  }),
]
