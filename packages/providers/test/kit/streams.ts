/** Events of the wire, written by hand: short ways to say the long forms. */
export const start = (message: object = {}) => ({
  type: 'message_start',
  message: {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'claude-test-1',
    content: [],
    stop_reason: null,
    stop_sequence: null,
    usage: { input_tokens: 12, output_tokens: 1 },
    ...message,
  },
})
export const open = (index: number, content_block: object) => ({
  type: 'content_block_start',
  index,
  content_block,
})
export const delta = (index: number, change: object) => ({
  type: 'content_block_delta',
  index,
  delta: change,
})
export const text = (index: number, words: string) => delta(index, { type: 'text_delta', text: words })
export const json = (index: number, partial: string) =>
  delta(index, { type: 'input_json_delta', partial_json: partial })
export const close = (index: number) => ({ type: 'content_block_stop', index })
export const ping = { type: 'ping' }
export const done = (stop_reason: string | null, more: object = {}) => ({
  type: 'message_delta',
  delta: { stop_reason, stop_sequence: null, ...more },
  usage: { output_tokens: 20 },
})
export const stop = { type: 'message_stop' }

export const textBlock = (index: number, ...words: string[]) => [
  open(index, { type: 'text', text: '' }),
  ...words.map((word) => text(index, word)),
  close(index),
]
export const toolBlock = (index: number, id: string, name: string, ...pieces: string[]) => [
  open(index, { type: 'tool_use', id, name, input: {} }),
  ...pieces.map((piece) => json(index, piece)),
  close(index),
]
export const thinkingBlock = (index: number, words: string, signature: string) => [
  open(index, { type: 'thinking', thinking: '', signature: '' }),
  delta(index, { type: 'thinking_delta', thinking: words }),
  delta(index, { type: 'signature_delta', signature }),
  close(index),
]

/** A reply with a bit of everything, multi-byte characters included. */
export const rich: readonly object[] = [
  start(),
  ...thinkingBlock(0, 'The user greets me — in Seoul it is 서울 weather 🌦️.', 'c2lnbmF0dXJl'),
  ping,
  ...textBlock(1, 'Grüß dich! ', 'Let me look', ' … 👋'),
  open(2, { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: {} }),
  json(2, ''),
  json(2, '{"query": "wea'),
  json(2, 'ther"}'),
  close(2),
  open(3, {
    type: 'web_search_tool_result',
    tool_use_id: 'srvtoolu_1',
    content: [{ type: 'web_search_result', url: 'https://example.org/', encrypted_content: 'ZW5j' }],
  }),
  close(3),
  open(4, { type: 'text', text: '', citations: [] }),
  delta(4, {
    type: 'citations_delta',
    citation: { type: 'web_search_result_location', encrypted_index: 'aWR4' },
  }),
  text(4, 'It rains'),
  close(4),
  ...toolBlock(5, 'toolu_1', 'get_weather', '', '{"city": "Se', 'oul", "days"', ': 3}'),
  ping,
  ...toolBlock(6, 'toolu_2', 'get_time', ''),
  {
    type: 'message_delta',
    delta: {
      stop_reason: 'tool_use',
      stop_sequence: null,
      container: { id: 'container_1', expires_at: '2026-01-01T00:10:00Z' },
    },
    usage: {
      input_tokens: 12,
      cache_read_input_tokens: 100,
      cache_creation_input_tokens: 8,
      output_tokens: 64,
    },
  },
  stop,
]
